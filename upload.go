package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// UploadOptions configures an upload. A nil pointer or a zero field selects the default.
type UploadOptions struct {
	// Progress is called with the number of bytes passed to the network, and with the size of the
	// recording. Within an attempt, sent only grows; the next attempt starts from 0 again. Progress
	// runs on another goroutine, so a panic in it ends the program. No call of Progress begins
	// after Upload has returned. The upload waits for each call, so a slow Progress makes it
	// slower.
	Progress func(sent, total int64)
}

// Upload uploads the recording of a meeting ([section 4.2]): it requests an upload URL and makes a
// PUT to storage, without the API key. It needs the scopes meetings:read and, for the URL,
// meetings:write (assumed). The codes of storage errors are also assumed.
//
//   - Upload waits for an upload slot (see [WithUploadConcurrency]) before it opens the recording,
//     which it closes at the end.
//   - Upload has no overall timeout, so set a deadline on ctx; [WithUploadTimeouts] limits each
//     attempt.
//   - Upload retries failed attempts for at least a minute, so a short outage ends no upload.
//     WithMaxRetries(0) switches this off. Any other limit, even 1, does not shorten the minute.
//   - If a response is lost, Upload polls the meeting, and returns nil if the audio has arrived.
//   - Upload sends the whole recording three times at most. Rejections before the body do not count.
//   - When ctx is done, Upload returns promptly, even if source, Recording.Audio or Progress
//     blocks. Only the blocked call may then still be running.
//
// When Upload returns, the meeting may keep StatusCreated for some seconds. See [docs/uploads.md]
// for more.
//
// Errors:
//   - The error of source, before any request. [ErrRecordingEmpty], [ErrRecordingTooLarge] (over 1
//     GiB), [ErrRecordingFormat] and an invalid content type are in a *[ParamError].
//   - The errors of [MeetingsService.UploadURL]. [ErrBadRequest] means that the meeting already has
//     audio (assumed).
//   - *[StorageError]: storage did not accept the recording. Its text says if a part may be stored. If it
//     says that the meeting has audio although the whole recording was never sent, that audio is a part
//     or somebody else's: delete the meeting.
//   - An error of reading the recording.
//   - An error that the recording changed during the upload, which is [Retryable].
//
// [section 4.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#42-meetings
// [docs/uploads.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/uploads.md
func (s *MeetingsService) Upload(ctx context.Context, id string, source Source, opts *UploadOptions) error {
	err := cmp.Or(checkGiven("ctx", ctx != nil), s.core.checkID("id", id), checkGiven("source", source != nil))
	if err != nil {
		return err
	}
	progress := cmp.Or(opts, new(UploadOptions)).Progress
	return s.core.withRecording(ctx, source, func(rec Recording) error {
		_, err := s.core.upload(ctx, id, rec, progress, false)
		return err
	})
}

// withRecording waits for an upload slot, opens the recording of source, and calls use with it. By
// the time it closes the recording, the upload is over, so an error from Close is only logged.
func (c *core) withRecording(ctx context.Context, source Source, use func(Recording) error) error {
	uploading := slot{tokens: c.uploadSlots}
	err := uploading.acquire(ctx)
	if err != nil {
		return &StorageError{Err: fmt.Errorf("waiting for an upload slot: %w", err)}
	}
	defer uploading.free()
	rec, err := openRecording(ctx, source)
	if err != nil {
		return rest.WithCause(ctx, err)
	}
	defer c.closeRecording(ctx, rec)
	return use(rec)
}

// closeRecording closes rec, and waits for that as long as for a read, because it still holds an upload
// slot.
func (c *core) closeRecording(ctx context.Context, rec Recording) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.uploadTimeouts.Stall, errCloseBlocked)
	defer cancel()
	_, err := storage.Run(ctx, func() (any, error) { return nil, rec.Close() }, func(any) {})
	if err != nil {
		problem := slog.String("error", singleLine(err.Error()))
		c.log.LogAttrs(ctx, slog.LevelWarn, "minutes: closing a recording failed", problem)
	}
}

var errCloseBlocked = errors.New("it blocked")

// upload is one upload under way.
type upload struct {
	core *core
	// id is that of the meeting.
	id string
	// put is what to send. Its URL is nil before the first upload URL.
	put storage.Put
	// state is what decides how the upload goes on.
	state storage.State
	// lastErr is why the last attempt got no response, or nil.
	lastErr error
	// brokeOff means that an attempt ended, after it had sent a part of the recording or all of it,
	// without a response.
	brokeOff bool
	// response is the outcome of the latest attempt that got a response. It is zero if none did.
	response storage.Outcome
}

// upload uploads rec; the caller has an upload slot. shared means that other workers may upload to
// the meeting, and that their audio counts, too. Without an error, the meeting has audio; confirmed
// means that storage said that it has the whole of rec.
func (c *core) upload(
	ctx context.Context, id string, rec Recording, progress func(sent, total int64), shared bool,
) (confirmed bool, err error) {
	u := &upload{core: c, id: id, state: storage.State{
		Size: rec.Size, MaxRetries: c.maxRetries, Shared: shared,
	}}
	u.state.Deadline, _ = ctx.Deadline()
	u.put = storage.Put{
		Audio: rec.Audio, Size: rec.Size, ContentType: rec.ContentType, UserAgent: c.userAgent, Progress: progress,
		Transport: c.storageTransport, Stall: c.uploadTimeouts.Stall, Response: c.uploadTimeouts.Response,
	}
	step := storage.Renew
	for {
		arrived, err := u.prepare(ctx, step == storage.Renew)
		if arrived {
			return false, nil
		}
		if err != nil {
			return false, u.failure(ctx, err)
		}
		next := u.send(ctx)
		if next.Step == storage.Stored {
			c.lastStored.Store(new(time.Now()))
			c.poller.Ask(id, true) // so that whoever waits for the meeting sees its audio soon
			return true, nil
		}
		err = rest.Sleep(ctx, next.Delay)
		if err != nil {
			return false, u.failure(ctx, err)
		}
		if !next.AudioBy.IsZero() {
			arrived, err = u.pollForAudio(ctx, next.AudioBy)
			if arrived {
				return false, nil
			}
			if err != nil {
				return false, u.failure(ctx, err)
			}
		}
		if next.Step == storage.GiveUp {
			return false, u.failure(ctx, nil)
		}
		step = next.Step
	}
}

// prepare waits until storage may get the next attempt. Then it gets an upload URL, if renew is set
// or the last one has expired. It waits first, so that a new URL does not expire during the wait.
//
// If it fails although the recording may have arrived, prepare polls the meeting. That is so if the
// response to an earlier attempt was lost, or if the service rejects the request for the URL while
// other workers may upload the same recording.
func (u *upload) prepare(ctx context.Context, renew bool) (arrived bool, err error) {
	err = u.core.storageThrottle.Wait(ctx, false)
	if err == nil && (renew || !time.Now().Before(u.state.URLExpires)) {
		err = u.newURL(ctx)
	}
	mayHaveAudio := u.state.MayHaveArrived || u.state.Shared && errors.Is(err, ErrBadRequest)
	if err == nil || !mayHaveAudio {
		return false, err
	}
	arrived, askErr := u.pollForAudio(ctx, u.state.AudioBy(time.Now()))
	if arrived {
		return true, nil
	}
	return false, cmp.Or(askErr, err)
}

// newURL gets an upload URL. It asks again while the service does not know a meeting that it has
// just created.
func (u *upload) newURL(ctx context.Context) error {
	sentAt := time.Now()
	t, resp, err := u.core.uploadURL(ctx, u.id, u.put.ContentType, storage.Patience)
	for retries := 0; u.core.unknownYet(u.id, err) && rest.Sleep(ctx, rest.Delay(retries, 0)) == nil; retries++ {
		sentAt = time.Now()
		t, resp, err = u.core.uploadURL(ctx, u.id, u.put.ContentType, storage.Patience)
	}
	if err != nil {
		return err
	}
	target, err := url.Parse(t.UploadURL.Reveal())
	if err != nil || target.Hostname() == "" {
		return u.core.requestError(resp, "the response's upload_url is not a URL with a host")
	}
	if target.Scheme != "https" && !(target.Scheme == "http" && u.core.allowsHTTP(target)) {
		return u.core.requestError(resp,
			"the response's upload_url is neither https nor loopback for a loopback service")
	}
	u.put.URL = target
	u.put.Mask = u.core.mask.With(rest.QuerySecrets(target)...)
	u.state.URLExpires = sentAt.Add(time.Duration(min(t.ExpiresIn, 1<<30)) * time.Second) // min prevents an overflow
	return nil
}

// pollForAudio polls the meeting until it has audio, or until a poll at a time or later shows none.
// Like a wait, it outlasts outages of the service: if it gave up, an upload whose audio has arrived
// would fail. Since uploadURL called Ask, the next poll of the meeting, by this upload or any wait, is
// made at once; a later one waits for the interval.
//
// Unless other workers may upload, the audio is a part if no attempt has sent the whole recording.
func (u *upload) pollForAudio(ctx context.Context, by time.Time) (arrived bool, err error) {
	m, err := u.core.look(ctx, u.id, true, by)
	if e, ok := errors.AsType[*WaitError](err); ok { // the only type of error that look returns
		return false, fmt.Errorf("checking whether the audio arrived: %w", e.Err)
	}
	arrived = m.Status != StatusCreated // a failed meeting has audio, too
	if arrived && !u.state.Shared && u.state.Whole == 0 {
		return false, errPart
	}
	return arrived, nil
}

// errPart means that storage has taken an upload that broke off for the whole recording.
var errPart = errors.New("the meeting has audio, although the whole recording was never sent; delete the meeting")

// errMayBePart is added to the error of an upload that broke off.
var errMayBePart = errors.New("a part of the recording may be stored")

// send makes one attempt, reports it, and returns what follows it.
func (u *upload) send(ctx context.Context) storage.Decision {
	c := u.core
	number := u.state.Attempts + 1
	sentAt := time.Now()
	request := &rest.Request{Operation: string(OpUpload), MeetingID: u.id}
	o := u.put.Send(rest.WithAttempt(ctx, &rest.AttemptReport{Request: request, Number: number}))
	delay := rest.Delay(u.state.Attempts, min(o.RetryAfter, rest.MaxRetryAfter))
	if o.Busy() {
		c.storageThrottle.Limited(rest.Rejection{
			SentAt: sentAt, RetryAfter: min(o.RetryAfter, rest.MaxRetryAfter), Delay: delay,
		})
	} else if o.StatusCode != 0 {
		c.storageThrottle.Accepted()
	}
	if at := c.lastStored.Load(); at != nil {
		u.state.LastStored = *at
	}
	next, state := storage.Decide(u.state, o, time.Now(), delay)
	u.state = state
	u.put.WithoutExpect = state.WithoutExpect
	u.lastErr = o.Err
	u.brokeOff = u.brokeOff || o.StatusCode == 0 && o.Sent > 0
	if o.StatusCode != 0 {
		u.response = o
	}
	a := Attempt{
		AttemptInfo: AttemptInfo{Operation: OpUpload, MeetingID: u.id, Number: number},
		Method:      http.MethodPut, URL: c.mask.Text(withoutQuery(u.put.URL)),
		StatusCode: o.StatusCode, Code: ErrorCode(o.Code), RequestID: o.RequestID, Err: o.Err,
		Stalled: errors.Is(o.Err, storage.ErrStalled), Sent: o.Sent, Duration: o.Took,
	}
	if next.Step == storage.Retry || next.Step == storage.Renew {
		a.WillRetry = true
		a.RetryIn = next.Delay
	}
	c.observe(ctx, a)
	return next
}

// failure returns the error of an upload that failed. err is what ended it after the last attempt,
// or nil.
func (u *upload) failure(ctx context.Context, err error) error {
	err = rest.WithCause(ctx, rest.Join(u.lastErr, err))
	if u.brokeOff && !errors.Is(err, errPart) {
		err = rest.Join(err, errMayBePart)
	}
	_, api := errors.AsType[*Error](err)
	storageFailed := !api || u.state.Attempts > 0
	if !storageFailed || errors.Is(u.lastErr, storage.ErrUnreadable) {
		return fmt.Errorf("minutes: upload for meeting %s: %w", singleLine(u.id), unprefixedError{err})
	}
	r := u.response
	e := &StorageError{
		StatusCode: r.StatusCode, Code: ErrorCode(r.Code), Message: r.Message, RequestID: r.RequestID,
		RetryAfter: r.RetryAfter, MeetingID: u.id, Err: err,
	}
	if u.put.URL != nil { // otherwise it ended while it waited for storage
		e.Host = u.core.mask.Text(u.put.URL.Host)
	}
	return e
}
