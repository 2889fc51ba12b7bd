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
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/upload"
)

// UploadOptions tune an upload; the zero value, or nil, is fine.
type UploadOptions struct {
	// Progress is called with the bytes handed to the network so far and the
	// recording's size. Within an attempt sent never decreases; a new attempt begins
	// at 0. Progress runs on another goroutine and should be quick, since the upload
	// waits for it. No call begins after Upload has returned. A panic in it crashes
	// the program; if it ends its goroutine (a test's FailNow), the upload fails.
	Progress func(sent, total int64)
	// WithoutContentMD5 leaves out the header Content-MD5. With the header, a store
	// rejects a part of the recording (assumed). Upload sends it if the upload URL has a
	// signature of AWS version 4, which allows it, and retries without it if the store
	// rejects it. It costs another read of the recording before anything is sent.
	WithoutContentMD5 bool
}

// Upload uploads the meeting's recording: it requests an upload URL and PUTs the
// audio straight to storage, without the API key and without the time limit of API
// calls (section 4.2). It uses the same memory at any size: less than 1 MiB over
// HTTP/1.1, about 3 MiB over HTTP/2. Upload gives up an attempt and retries it if no
// byte moves for a minute, or if there is no response five minutes after the last
// byte; [WithUploadTimeouts] sets both. Soon after the upload the meeting moves on by
// itself; follow it with [MeetingsService.Wait].
//
// Upload retries a failed attempt as [WithRetries] says: first with the same upload
// URL, which writes the same object, then with a new one. If a response was lost,
// the meeting's status shows whether the audio arrived. Audio that arrived is not
// sent again and not reported as failed, even if the service notices it some seconds
// late. The upload and the XML of storage errors are documented, the error codes are
// assumed.
//
// An upload may wait for an upload slot ([WithUploadConcurrency]). It needs the scope
// meetings:write (assumed), and meetings:read to check whether the audio arrived.
//
// Once it has the slot, Upload opens the recording, and closes it at the end. Upload
// returns soon after ctx has ended, even if Recording.Audio or Progress blocks. That one
// call may then continue; no other begins. After any other end, nothing reads the
// recording any more.
//
// Errors: those of source, and *ParamError for a recording that is empty
// (ErrRecordingEmpty), over 1 GiB (ErrRecordingTooLarge) or without content type, all
// before any request; those of [MeetingsService.UploadURL], where ErrBadRequest means
// that the meeting has audio already (assumed); *StorageError if the PUT failed, with
// ErrPartialAudio if the meeting has audio although no attempt handed over the whole
// recording; that of closing the recording, joined with any other.
func (s *MeetingsService) Upload(ctx context.Context, id string, source Source, opts *UploadOptions) (err error) {
	if err := cmp.Or(checkGiven("ctx", ctx != nil), checkID("id", id)); err != nil {
		return err
	}
	rec, done, err := s.open(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = withCloseError(err, id, done()) }()
	return s.upload(ctx, id, rec, cmp.Or(opts, new(UploadOptions)), false)
}

// open acquires an upload slot and opens the recording of source. done closes the recording
// and releases the slot.
func (s *MeetingsService) open(ctx context.Context, source Source) (rec Recording, done func() error, err error) {
	if err := checkGiven("source", source != nil); err != nil {
		return Recording{}, nil, err
	}
	slots := &s.core().slots
	if err := slots.acquire(ctx); err != nil {
		return Recording{}, nil, err
	}
	opened := false
	defer func() { // also if source ends its goroutine
		if !opened {
			slots.release()
		}
	}()
	if rec, err = source(ctx); err != nil {
		return Recording{}, nil, err
	}
	if err := rec.check(); err != nil {
		return Recording{}, nil, errors.Join(err, rec.Close())
	}
	opened = true
	return rec, func() error {
		defer slots.release()
		return rec.Close()
	}, nil
}

// withCloseError joins err with why the recording could not be closed, if it could not.
func withCloseError(err error, id string, closeErr error) error {
	if closeErr == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("minutes: closing the recording of meeting %s: %w", singleLine(id), closeErr))
}

// upload does the work of Upload; the caller has an upload slot. shared: other workers may
// upload to the meeting, too, and their audio is as good.
func (s *MeetingsService) upload(ctx context.Context, id string, rec Recording, opts *UploadOptions, shared bool) error {
	c := s.core()
	var sentAt time.Duration // of the last attempt
	u := &upload.Upload{
		API: uploadAPI{s, id, rec.ContentType}, Recording: upload.Recording(rec),
		Shared: shared, Progress: opts.Progress, WithoutMD5: opts.WithoutContentMD5,
		Transport: c.storage, UserAgent: c.UserAgent, Mask: c.Mask, Timeouts: c.uploads, Retries: c.Retries,
		Begin: func(ctx context.Context, number int) (context.Context, error) {
			err := c.uploadBegins(ctx, id)
			sentAt = c.poller.Now()
			return rest.WithAttempt(ctx, rest.AttemptInfo{Operation: route.Upload, ID: c.Mask.Text(id), Number: number}), err
		},
		Observe: c.uploadAttempted,
	}
	f := u.Do(ctx)
	switch {
	case f == nil:
		c.poller.Invalidate(id, sentAt)
		return nil
	case f.Host == "": // there was no upload URL
		return fmt.Errorf("minutes: upload for meeting %s: %w", singleLine(c.Mask.Text(id)), nested{f.Causes[0]})
	}
	return &StorageError{
		StatusCode: f.StatusCode, Code: f.Code, Message: f.Message, RequestID: f.RequestID, RetryAfter: f.RetryAfter,
		meeting: c.Mask.Text(id), host: f.Host, causes: f.Causes, retryable: f.Retryable,
	}
}

// uploadAPI is the API as an upload sees it.
type uploadAPI struct {
	meetings        *MeetingsService
	id, contentType string
}

// UploadURL implements upload.API. Its errors never quote the URL.
func (a uploadAPI) UploadURL(ctx context.Context) (*url.URL, time.Duration, error) {
	t, resp, err := a.meetings.uploadURL(ctx, a.id, a.contentType)
	if err != nil {
		return nil, 0, err
	}
	c, problem := a.meetings.core(), ""
	target, err := url.Parse(t.UploadURL.Reveal())
	switch {
	case err != nil:
		problem = "upload_url is not a URL"
	case target.Scheme != "https" && !(target.Scheme == "http" && c.local && isLoopback(target.Hostname())):
		problem = "upload_url is neither https nor loopback for a loopback service"
	case target.Hostname() == "":
		problem = "upload_url names no host"
	case t.Method != http.MethodPut:
		problem = "method is not PUT"
	}
	if problem != "" {
		return nil, 0, c.requestError(resp, "the response's "+problem)
	}
	return target, time.Duration(min(t.ExpiresIn, 1<<30)) * time.Second, nil // min prevents an overflow
}

// HasAudio implements upload.API. It waits for the poller's next poll, which keeps the poll
// interval. A meeting has audio in every status except created.
func (a uploadAPI) HasAudio(ctx context.Context) (bool, error) {
	w, _ := newWaiter(&WaitOptions{Until: StatusAudioUploaded})
	c := a.meetings.core()
	w.after = c.poller.Now()
	m, err := c.wait(ctx, a.id, w)
	switch err := err.(type) {
	case *WaitError:
		return false, err.Err
	case *MeetingFailedError: // which has audio, too
		return true, nil
	}
	return err == nil && m.Status != StatusCreated, err
}

// uploadAttempted reports an attempt that has ended, and the wait before a retry.
func (c *core) uploadAttempted(ctx context.Context, o upload.Outcome, retry bool, wait time.Duration) {
	if c.Observe == nil {
		return
	}
	e, _ := AttemptFromContext(ctx)
	e.StatusCode, e.Code, e.Err, e.Stalled = o.StatusCode, ErrorCode(o.Code), o.Err, o.Stalled
	e.RequestID, e.Sent, e.Duration, e.WillRetry = o.RequestID, o.Sent, o.Took, retry
	if retry {
		e.RetryIn = wait
	}
	c.reportAttempt(ctx, e, slog.String("meeting", singleLine(e.MeetingID)), slog.String("method", http.MethodPut),
		slog.String("host", o.Target.Host), slog.String("path", o.Target.EscapedPath()),
		slog.Int64("sent", o.Sent), slog.Int64("size", o.Size))
}
