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

// UploadOptions tune an upload. Zero fields, and nil, mean the defaults.
type UploadOptions struct {
	// Progress is called with the number of bytes passed to the network, and with the size of the
	// recording. sent grows during an attempt. The next attempt starts from 0 again. Progress runs on
	// another goroutine, and the upload waits for each call. A panic in Progress crashes the program.
	Progress func(sent, total int64)
	// WithoutContentMD5 omits the header Content-MD5. With the header, storage rejects an
	// incomplete recording instead of keeping it (assumed). To compute the header, Upload first
	// reads the whole recording. See docs/uploads.md.
	WithoutContentMD5 bool
}

// Upload uploads the recording of a meeting (section 4.2). It requests an upload URL and makes a PUT
// to storage, without the API key. The key needs the scopes meetings:write (assumed) and
// meetings:read. The interface document describes the upload. Assumed: the codes of storage errors.
//
//   - Upload waits for an upload slot (see [WithUploadConcurrency]), and then opens the recording.
//     It closes the recording at the end.
//   - Only ctx limits the whole upload. [WithUploadTimeouts] limits one attempt.
//   - Upload retries failed attempts; see [WithRetries].
//   - If a response is lost, Upload polls the meeting. If the audio has arrived, Upload returns nil.
//   - When ctx ends, Upload returns soon, even if Recording.Audio or Progress blocks. The blocked
//     call may still run.
//
// When Upload returns, the meeting may still have StatusCreated for some seconds. See
// docs/uploads.md for more.
//
// Errors:
//   - The error of source, before any request. [ErrRecordingEmpty], [ErrRecordingTooLarge] (over 1
//     GiB) and an invalid content type are in a *[ParamError].
//   - The errors of [MeetingsService.UploadURL]. [ErrBadRequest] means that the meeting already
//     has audio (assumed).
//   - *[StorageError]: the upload failed. If it wraps [ErrPartialAudio], the meeting has audio that
//     may be incomplete.
//   - The error of closing the recording, joined with any other error.
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

// open acquires an upload slot and opens the recording of source. done closes the recording and
// releases the slot.
func (s *MeetingsService) open(ctx context.Context, source Source) (rec Recording, done func() error, err error) {
	if err := checkGiven("source", source != nil); err != nil {
		return Recording{}, nil, err
	}
	slots := s.core().slots
	if err := slots.acquire(ctx); err != nil {
		return Recording{}, nil, err
	}
	opened := false
	defer func() { // also if source calls runtime.Goexit
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
	c := s.core()
	var sentAt time.Duration // of the last attempt
	u := &upload.Upload{
		API: uploadAPI{s, id, rec.ContentType}, Recording: upload.Recording(rec),
		Shared: shared, Progress: opts.Progress, WithoutMD5: opts.WithoutContentMD5,
		Transport: c.storage, UserAgent: c.UserAgent, Mask: c.Mask, Timeouts: c.uploads, Retries: c.Retries,
		Begin: func(ctx context.Context, number int) (context.Context, error) {
			sentAt = c.poller.Now()
			return rest.WithAttempt(ctx, rest.AttemptInfo{Operation: route.Upload, ID: c.Mask.Text(id), Number: number}), nil
		},
		Observe: c.uploadAttempted,
	}
	f := u.Do(ctx)
	switch {
	case f == nil:
		c.poller.Invalidate(id, sentAt)
		return nil
	case f.Host == "": // there was no upload URL
		return fmt.Errorf("minutes: upload for meeting %s: %w", singleLine(c.Mask.Text(id)), unprefixedError{f.Causes[0]})
	}
	return &StorageError{
		StatusCode: f.StatusCode, Code: f.Code, Message: f.Message, RequestID: f.RequestID, RetryAfter: f.RetryAfter,
		meeting: c.Mask.Text(id), host: f.Host, causes: f.Causes, retryable: f.Retryable,
	}
}

// uploadAPI implements upload.API.
type uploadAPI struct {
	meetings        *MeetingsService
	id, contentType string
}

// UploadURL implements upload.API. No error quotes the URL.
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

// HasAudio implements upload.API. It waits for the poller's next poll of the meeting. A meeting
// has audio in every status except created.
func (a uploadAPI) HasAudio(ctx context.Context) (bool, error) {
	w, _ := newWaiter(&WaitOptions{Until: StatusAudioUploaded})
	c := a.meetings.core()
	w.after = c.poller.Now()
	m, err := c.wait(ctx, a.id, w)
	switch err := err.(type) {
	case *WaitError:
		return false, err.Err
	case *MeetingFailedError: // a failed meeting has audio, too
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
