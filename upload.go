package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// UploadOptions configures an upload. A nil pointer or a zero field selects the default.
type UploadOptions struct {
	// Progress is called with the number of bytes passed to the network, and with the size of the
	// recording. Within an attempt, sent only grows; the next attempt starts from 0 again. Progress
	// runs on another goroutine, but never after Upload has returned. The upload waits for each call.
	Progress func(sent, total int64)
}

// Upload uploads the recording of a meeting (section 4.2): it requests an upload URL and makes a PUT
// to storage, without the API key. The key needs the scopes meetings:write (assumed) and
// meetings:read. The API reference describes the upload. Assumed: the codes of storage errors.
//
//   - Upload waits for an upload slot (see [WithUploadConcurrency]), and only then opens the
//     recording. It closes the recording at the end.
//   - Upload has no overall timeout: set a deadline on ctx. [WithUploadTimeouts] limits an attempt.
//   - Unless retries are switched off, Upload retries failed attempts for at least a minute, so a
//     short outage ends no upload.
//   - If a response is lost, Upload polls the meeting, because the audio may have arrived. If it has,
//     Upload returns nil.
//   - When ctx is done, Upload returns promptly, even if source, Recording.Audio or Progress blocks.
//     Only the blocked call may then still be running.
//
// When Upload returns, the meeting may keep StatusCreated for some seconds. See docs/uploads.md for
// more.
//
// Errors:
//   - The error of source, before any request. [ErrRecordingEmpty], [ErrRecordingTooLarge] (over 1
//     GiB) and an invalid content type are in a *[ParamError].
//   - The errors of [MeetingsService.UploadURL]. [ErrBadRequest] means that the meeting already
//     has audio (assumed).
//   - *[StorageError]: storage did not accept the recording.
//   - The error of reading or closing the recording.
func (s *MeetingsService) Upload(ctx context.Context, id string, source Source, opts *UploadOptions) (err error) {
	if err := cmp.Or(checkGiven("ctx", ctx != nil), s.core.checkID("id", id)); err != nil {
		return err
	}
	rec, done, err := s.open(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = withCloseError(err, id, done()) }()
	return s.upload(ctx, id, rec, cmp.Or(opts, new(UploadOptions)), false)
}

// uploadSlots limits a Client's concurrent uploads. It contains a token for each.
type uploadSlots chan struct{}

func (s uploadSlots) release() { <-s }

// acquire waits for a slot. It takes a free slot even if ctx is done.
func (s uploadSlots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &StorageError{Err: rest.WithCause(ctx, errors.New("waiting for an upload slot"))}
	}
}

// open acquires an upload slot and opens the recording of source. done closes the recording and
// releases the slot.
func (s *MeetingsService) open(ctx context.Context, source Source) (rec Recording, done func() error, err error) {
	if err := checkGiven("source", source != nil); err != nil {
		return Recording{}, nil, err
	}
	slots := s.core.slots
	if err := slots.acquire(ctx); err != nil {
		return Recording{}, nil, err
	}
	rec, err = openRecording(context.WithValue(ctx, stallKey{}, s.core.uploads.Stall), source)
	if err != nil {
		slots.release()
		return Recording{}, nil, rest.WithCause(ctx, err)
	}
	return rec, func() error {
		defer slots.release()
		_, err := storage.Run(ctx, func() (struct{}, error) { return struct{}{}, rec.Close() }, func(struct{}) {})
		return err
	}, nil
}

// withCloseError joins err with closeErr, unless closeErr is nil.
func withCloseError(err error, id string, closeErr error) error {
	if closeErr == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("minutes: closing the recording of meeting %s: %w", singleLine(id), closeErr))
}

// upload uploads rec; the caller has an upload slot. shared means that other workers may upload to
// the meeting, and that their audio counts, too.
func (s *MeetingsService) upload(ctx context.Context, id string, rec Recording, opts *UploadOptions, shared bool) error {
	c := s.core
	u := &upload{meetings: s, core: c, id: id, rec: rec, progress: opts.Progress}
	u.past = storage.History{MaxRetries: c.MaxRetries, Shared: shared}
	arrived, err := u.newURL(ctx)
	for !arrived && err == nil {
		if err = c.storagePause.wait(ctx); err != nil {
			break
		}
		next := u.attempt(ctx)
		if next.Step == storage.Stored {
			return nil
		}
		err = rest.Sleep(ctx, next.Wait)
		if err == nil && (next.Step == storage.Ask || next.Step == storage.AskLast) {
			arrived, err = u.hasAudio(ctx)
		}
		if next.Step == storage.GiveUp || next.Step == storage.AskLast {
			break
		}
		if !arrived && err == nil && next.Step != storage.Retry {
			arrived, err = u.newURL(ctx)
		}
	}
	if arrived {
		return nil
	}
	return u.failure(ctx, err)
}

// upload is one upload under way.
type upload struct {
	meetings *MeetingsService
	core     *core
	id       string
	rec      Recording
	progress func(sent, total int64)

	target   *url.URL // a secret; nil before the first upload URL
	expires  time.Time
	past     storage.History
	last     storage.Outcome // of the last attempt
	response storage.Outcome // the last one with a response
}

// newURL gets an upload URL. If the service rejects the request because the meeting has audio, that
// may be the audio of an earlier attempt or of another worker.
func (u *upload) newURL(ctx context.Context) (arrived bool, err error) {
	sentAt := time.Now()
	t, resp, err := u.meetings.uploadURL(ctx, u.id, u.rec.ContentType)
	if err != nil {
		if errors.Is(err, ErrBadRequest) && (u.past.Arrived || u.past.Shared) {
			if arrived, askErr := u.hasAudio(ctx); arrived || askErr != nil {
				return arrived, askErr
			}
		}
		return false, err
	}
	problem := ""
	target, err := url.Parse(t.UploadURL.Reveal())
	switch {
	case err != nil:
		problem = "upload_url is not a URL"
	case target.Scheme != "https" && !(target.Scheme == "http" && u.core.local && isLoopback(target.Hostname())):
		problem = "upload_url is neither https nor loopback for a loopback service"
	case target.Hostname() == "":
		problem = "upload_url names no host"
	case t.Method != http.MethodPut:
		problem = "method is not PUT"
	}
	if problem != "" {
		return false, u.core.requestError(resp, "the response's "+problem)
	}
	u.target, u.expires = target, sentAt.Add(time.Duration(min(t.ExpiresIn, 1<<30))*time.Second) // min prevents an overflow
	return false, nil
}

// attempt makes one PUT and returns what follows it.
func (u *upload) attempt(ctx context.Context) storage.Decision {
	c := u.core
	ctx = rest.WithAttempt(ctx, &rest.Attempt{Request: &rest.Request{Operation: route.Upload, ID: c.Mask.Text(u.id)}, Number: u.past.Attempts + 1})
	put := &storage.Put{
		URL: u.target, Audio: u.rec.Audio, Size: u.rec.Size, ContentType: u.rec.ContentType,
		UserAgent: c.UserAgent, WithoutExpect: u.past.WithoutExpect, Progress: u.progress,
		Transport: c.storage, Mask: rest.NewMask(append(rest.QuerySecrets(u.target), c.Key.Reveal())...), Stall: c.uploads.Stall, Response: c.uploads.Response,
	}
	o := put.Do(ctx)
	times := storage.Times{Now: time.Now(), URLExpires: u.expires}
	times.Wait = rest.Delay(u.past.Attempts, min(o.RetryAfter, rest.MaxRetryAfter))
	times.Deadline, _ = ctx.Deadline()
	next, past := storage.Decide(u.past, o, times)
	u.past, u.last = past, o
	if o.StatusCode != 0 {
		u.response = o
	}
	if o.StatusCode == http.StatusTooManyRequests || o.StatusCode == http.StatusServiceUnavailable {
		c.storagePause.extend(times.Now.Add(times.Wait))
	}
	if next.Step == storage.Stored {
		c.poller.Changed(u.id)
	}
	u.report(ctx, next)
	return next
}

// hasAudio polls the meeting, and reports whether it has audio, as in every status except created. Like a
// wait, it outlasts outages of the service: if it gave up, an upload whose audio has arrived would fail.
func (u *upload) hasAudio(ctx context.Context) (bool, error) {
	m, err := u.core.look(ctx, u.id, time.Now())
	switch err := err.(type) {
	case nil:
		return m.Status != StatusCreated, nil
	case *MeetingFailedError: // a failed meeting has audio, too
		return true, nil
	case *WaitError:
		return false, fmt.Errorf("checking whether the audio arrived: %w", err.Err)
	default:
		return false, err
	}
}

// failure returns the error of an upload that failed. err is what ended it after the last attempt, or
// nil.
func (u *upload) failure(ctx context.Context, err error) error {
	r, id := u.response, u.core.Mask.Text(u.id)
	err = rest.WithCause(ctx, rest.Join(u.last.Err, err))
	_, api := errors.AsType[*Error](err)
	if api && u.target == nil || u.last.Unreadable { // storage has not failed
		return fmt.Errorf("minutes: upload for meeting %s: %w", singleLine(id), unprefixedError{err})
	}
	e := &StorageError{
		StatusCode: r.StatusCode, Code: r.Code, Message: r.Message, RequestID: r.RequestID, RetryAfter: r.RetryAfter,
		MeetingID: id, Err: err,
	}
	if u.target != nil {
		e.Host = u.core.Mask.Text(u.target.Host)
	}
	return e
}

// report reports an attempt that has ended, and the wait before a retry.
func (u *upload) report(ctx context.Context, next storage.Decision) {
	info, _ := AttemptFromContext(ctx)
	o, mask := u.last, u.core.Mask
	a := Attempt{
		AttemptInfo: info, Method: http.MethodPut, Path: mask.Text(u.target.EscapedPath()), Host: mask.Text(u.target.Host),
		StatusCode: o.StatusCode, Code: ErrorCode(o.Code), RequestID: o.RequestID, Err: o.Err,
		Stalled: o.Stalled, Sent: o.Sent, Duration: o.Took, WillRetry: next.Retries(),
	}
	if a.WillRetry {
		a.RetryIn = next.Wait
	}
	u.core.observe(ctx, a)
}

// uploadPause holds back all uploads of a Client after a 429 or 503 from storage.
type uploadPause struct {
	mu    sync.Mutex
	until time.Time
}

func (p *uploadPause) extend(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) {
		p.until = until
	}
}

// wait waits for the end of the pause. It may be extended meanwhile.
func (p *uploadPause) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		left := time.Until(p.until)
		p.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if err := rest.Sleep(ctx, left); err != nil {
			return err
		}
	}
}
