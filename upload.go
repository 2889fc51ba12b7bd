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
	// recording. Within an attempt, sent only grows; the next attempt starts from 0 again. Progress runs
	// on another goroutine, and no call of it begins after Upload has returned. The upload waits for each
	// call, so a slow Progress makes it slower.
	Progress func(sent, total int64)
}

// Upload uploads the recording of a meeting (section 4.2): it requests an upload URL and makes a PUT to
// storage, without the API key. It needs the scopes meetings:read and, for the URL, meetings:write
// (assumed). The codes of storage errors are assumed, too.
//
//   - Upload waits for an upload slot (see [WithUploadConcurrency]) before it opens the recording, which it
//     closes at the end.
//   - Upload has no overall timeout, so set a deadline on ctx; [WithUploadTimeouts] limits an attempt.
//   - Upload retries failed attempts for at least a minute, so a short outage ends no upload. Only
//     WithMaxRetries(0) switches this off, and a low limit does not shorten it.
//   - If a response is lost, Upload polls the meeting, and returns nil if the audio has arrived.
//   - When ctx is done, Upload returns promptly, even if source, Recording.Audio or Progress blocks. Only
//     the blocked call may then still be running.
//
// When Upload returns, the meeting may keep StatusCreated for some seconds. See docs/uploads.md for more.
//
// Errors:
//   - The error of source, before any request. [ErrRecordingEmpty], [ErrRecordingTooLarge] (over 1 GiB) and
//     an invalid content type are in a *[ParamError].
//   - The errors of [MeetingsService.UploadURL]. [ErrBadRequest] means that the meeting already has audio
//     (assumed).
//   - *[StorageError]: storage did not accept the recording.
//   - The error of reading the recording.
func (s *MeetingsService) Upload(ctx context.Context, id string, source Source, opts *UploadOptions) error {
	if err := cmp.Or(checkGiven("ctx", ctx != nil), s.core.checkID("id", id), checkGiven("source", source != nil)); err != nil {
		return err
	}
	return s.withRecording(ctx, source, func(rec Recording) error {
		return s.upload(ctx, id, rec, cmp.Or(opts, new(UploadOptions)).Progress, false)
	})
}

// withRecording waits for an upload slot, opens the recording of source, and calls use with it. An
// error of closing the recording is only logged, because the recording is no longer needed then.
func (s *MeetingsService) withRecording(ctx context.Context, source Source, use func(Recording) error) error {
	c := s.core
	select {
	case c.uploadSlots <- struct{}{}:
		defer func() { <-c.uploadSlots }()
	case <-ctx.Done():
		return &StorageError{Err: rest.WithCause(ctx, errors.New("waiting for an upload slot"))}
	}
	opening, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	rec, err := openRecording(opening, abort, source, c.uploadTimeouts.Stall)
	if err != nil {
		return rest.WithCause(ctx, err)
	}
	defer func() {
		if _, err := storage.Run(ctx, func() (any, error) { return nil, rec.Close() }, func(any) {}); err != nil {
			c.log.LogAttrs(ctx, slog.LevelWarn, "minutes: closing a recording failed", slog.String("error", singleLine(err.Error())))
		}
	}()
	return use(rec)
}

// upload is one upload under way.
type upload struct {
	*MeetingsService
	id       string
	put      storage.Put // its URL is nil before the first upload URL
	state    storage.State
	lastErr  error           // of the last attempt
	response storage.Outcome // the last one with a response
}

// upload uploads rec; the caller has an upload slot. shared means that other workers may upload to
// the meeting, and that their audio counts, too.
func (s *MeetingsService) upload(ctx context.Context, id string, rec Recording, progress func(sent, total int64), shared bool) error {
	c := s.core
	u := &upload{MeetingsService: s, id: id, state: storage.State{MaxRetries: c.maxRetries, Shared: shared}}
	u.state.Deadline, _ = ctx.Deadline()
	u.put = storage.Put{
		Audio: rec.Audio, Size: rec.Size, ContentType: rec.ContentType, UserAgent: c.userAgent, Progress: progress,
		Transport: c.storageTransport, Stall: c.uploadTimeouts.Stall, Response: c.uploadTimeouts.Response,
	}
	for next := (storage.Decision{Step: storage.Renew}); next.Step != storage.Stored; next = u.attempt(ctx) {
		err := rest.Sleep(ctx, next.Wait)
		if err == nil && next.Ask {
			err = u.ask(ctx)
		}
		if err == nil && next.Step != storage.GiveUp {
			err = u.prepare(ctx, next.Step == storage.Renew)
		}
		switch {
		case errors.Is(err, errArrived):
			return nil
		case err != nil || next.Step == storage.GiveUp:
			return u.failure(ctx, err)
		}
	}
	c.poller.Ask(id, true)
	return nil
}

// prepare gets a new upload URL, if renew is set, and waits until storage may get the next attempt. If
// that fails, the meeting may have the audio of an earlier attempt, or, if the service rejects the
// request for the URL because there is audio, that of another worker.
func (u *upload) prepare(ctx context.Context, renew bool) (err error) {
	if renew {
		err = u.newURL(ctx)
	}
	if err == nil {
		err = u.core.storageThrottle.Wait(ctx, false)
	}
	if err != nil && u.state.Arrived || errors.Is(err, ErrBadRequest) && u.state.Shared {
		err = cmp.Or(u.ask(ctx), err)
	}
	return err
}

// newURL gets an upload URL.
func (u *upload) newURL(ctx context.Context) error {
	sentAt := time.Now()
	t, resp, err := u.uploadURL(ctx, u.id, u.put.ContentType, storage.Patience)
	if err != nil {
		return err
	}
	target, err := url.Parse(t.UploadURL.Reveal())
	switch {
	case err != nil || target.Hostname() == "":
		return u.core.requestError(resp, "the response's upload_url is not a URL with a host")
	case target.Scheme != "https" && !(target.Scheme == "http" && u.core.allowsHTTP(target)):
		return u.core.requestError(resp, "the response's upload_url is neither https nor loopback for a loopback service")
	}
	u.put.URL, u.put.Mask = target, u.core.mask.With(rest.QuerySecrets(target)...)
	u.state.URLExpires = sentAt.Add(time.Duration(min(t.ExpiresIn, 1<<30)) * time.Second) // min prevents an overflow
	return nil
}

var errArrived = errors.New("the meeting has audio")

// ask polls the meeting. It returns nil if the meeting has no audio, and otherwise errArrived. Like a
// wait, it outlasts outages of the service: if it gave up, an upload whose audio has arrived would fail.
func (u *upload) ask(ctx context.Context) error {
	m, err := u.core.look(ctx, u.id, true)
	switch e := err.(type) {
	case *WaitError:
		return fmt.Errorf("checking whether the audio arrived: %w", e.Err)
	case *MeetingFailedError: // which has audio, too
		return errArrived
	}
	if err == nil && m.Status != StatusCreated {
		return errArrived
	}
	return err
}

// attempt makes one PUT, reports it, and returns what follows it.
func (u *upload) attempt(ctx context.Context) storage.Decision {
	c, number := u.core, u.state.Attempts+1
	sentAt, info := time.Now(), &rest.Attempt{Request: &rest.Request{Operation: string(OpUpload), ID: u.id}, Number: number}
	o := u.put.Do(rest.WithAttempt(ctx, info))
	wait := rest.Delay(u.state.Attempts, min(o.RetryAfter, rest.MaxRetryAfter))
	if o.StatusCode == http.StatusTooManyRequests || o.StatusCode == http.StatusServiceUnavailable {
		c.storageThrottle.Limited(sentAt, wait)
	}
	next, state := storage.Decide(u.state, o, time.Now(), wait)
	u.state, u.lastErr, u.put.WithoutExpect = state, o.Err, state.WithoutExpect
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
		a.WillRetry, a.RetryIn = true, next.Wait
	}
	c.observe(ctx, a)
	return next
}

// failure returns the error of an upload that failed. err is what ended it after the last attempt, or
// nil.
func (u *upload) failure(ctx context.Context, err error) error {
	err = rest.WithCause(ctx, rest.Join(u.lastErr, err))
	_, api := errors.AsType[*Error](err)
	if api && u.state.Attempts == 0 || errors.Is(u.lastErr, storage.ErrUnreadable) { // storage has not failed
		return fmt.Errorf("minutes: upload for meeting %s: %w", singleLine(u.id), unprefixedError{err})
	}
	r := u.response
	e := &StorageError{
		StatusCode: r.StatusCode, Code: ErrorCode(r.Code), Message: r.Message, RequestID: r.RequestID, RetryAfter: r.RetryAfter,
		MeetingID: u.id, Err: err,
	}
	if u.put.URL != nil { // otherwise ctx was done before
		e.Host = u.core.mask.Text(u.put.URL.Host)
	}
	return e
}
