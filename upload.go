package minutes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// UploadOptions tune an upload; the zero value, or nil, is fine.
type UploadOptions struct {
	// Progress is called with the bytes handed to the network so far and the
	// recording's size. Within an attempt it never runs backwards; a new attempt
	// begins at 0. It runs on another goroutine and should be quick, since the
	// upload waits for it. No call begins after Upload has returned.
	Progress func(sent, total int64)
	// ContentMD5 reads the recording once more, before anything is sent, and sends
	// its MD5 in the header Content-MD5. A store of the S3 kind then never takes a
	// part of the recording for the whole (assumed).
	ContentMD5 bool
}

// Upload uploads the meeting's recording: it asks for an upload URL and PUTs
// the audio straight to storage, without the API key and without the time limit
// of API calls (section 4.2). It uses the same memory at any size: less than 1
// MiB over HTTP/1.1, about 3 MiB over HTTP/2. An attempt of which no byte
// moves for a minute, or which has no reply five minutes after its last byte,
// is given up and repeated; [WithUploadTimeouts] sets both. Soon after the upload
// the meeting moves on by itself; follow it with [MeetingsService.Wait].
//
// A broken upload is repeated as [WithRetries] says, first with the same upload
// URL, which writes the same object, then with a new one. If the reply was
// lost, the meeting's status tells whether the audio arrived; audio that arrived
// is not sent again and not reported as failed, even if the service notices
// it some seconds late. The upload and the XML of its refusals are documented,
// the store's codes are assumed.
//
// A Client has four uploads under way at a time, or as many as [WithUploads] says;
// the others wait for their turn. An upload needs the scope meetings:write (assumed),
// and meetings:read if the meeting has to be looked at.
//
// Upload returns soon after ctx has ended, even if rec.Audio or Progress
// blocks. That one call may then still be under way, and may read on; no other
// begins. After any other end, nothing reads the recording any more.
//
// Errors: *ParamError for a recording that is empty (ErrRecordingEmpty), over 1 GiB
// (ErrRecordingTooLarge) or without content type, before any request; those of
// [MeetingsService.UploadURL], of which ErrBadRequest says that the meeting has audio
// already (assumed); *StorageError if the PUT failed, with ErrPartialAudio if the meeting has
// audio although no attempt handed over the whole recording.
func (s *MeetingsService) Upload(ctx context.Context, id string, rec Recording, opts *UploadOptions) error {
	if err := cmp.Or(checkGiven("ctx", ctx != nil), checkID("id", id), rec.check()); err != nil {
		return err
	}
	places := &s.core().places
	if err := places.enter(ctx); err != nil {
		return err
	}
	defer places.leave()
	return s.upload(ctx, id, rec, cmp.Or(opts, new(UploadOptions)))
}

// places limits a Client's uploads, first come, first served. The channel is made by
// the first upload when no other is under way, since a Client may be used in another
// synctest bubble than it was made in.
type places struct {
	all int // how many uploads at a time

	mu    sync.Mutex
	users int           // uploads that have a place or wait for one
	taken chan struct{} // one token per taken place; its capacity is all
}

// enter waits for a place.
func (p *places) enter(ctx context.Context) error {
	p.mu.Lock()
	if p.users == 0 {
		p.taken = make(chan struct{}, p.all)
	}
	p.users++
	taken := p.taken
	p.mu.Unlock()
	select {
	case taken <- struct{}{}: // take a free place even if ctx is done: the first request reports it
		return nil
	default:
	}
	select {
	case taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.forget()
		return &StorageError{causes: []error{fmt.Errorf("while it waited for other uploads of the Client: %w", backoff.ContextError(ctx))}}
	}
}

// leave gives a place back.
func (p *places) leave() {
	<-p.taken
	p.forget()
}

func (p *places) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
}

// upload does Upload's work. The caller holds a place.
func (s *MeetingsService) upload(ctx context.Context, id string, rec Recording, opts *UploadOptions) error {
	c := s.core()
	u := &upload{
		meetings: s,
		core:     c,
		id:       id,
		put: storage.Put{
			Transport: c.storage, UserAgent: c.UserAgent, Mask: c.Mask, Limits: c.uploads, Progress: opts.Progress,
			Recording: storage.Recording{Audio: rec.Audio, Size: rec.Size, ContentType: rec.ContentType},
		},
		known: storage.State{Repeats: c.Retries.Max},
	}
	if opts.ContentMD5 {
		if err := u.put.Digest(ctx); err != nil {
			return &StorageError{causes: backoff.Causes(ctx, err)}
		}
	}
	err := u.renew(ctx)
	for arrived := false; err == nil && !arrived; {
		arrived, err = u.try(ctx)
	}
	return err
}

// upload is the upload of one recording, in one or more attempts.
type upload struct {
	meetings      *MeetingsService
	core          *core
	id            string
	put           storage.Put   // for the next attempt
	began         time.Time     // when the current attempt began
	lookNotBefore time.Time     // hasAudio would wait until then; zero with a new URL
	known         storage.State // of the attempts so far
	refusal       StorageError  // the last reply to any attempt
}

// try makes an attempt. Without arrived or an error, all is prepared for another one.
func (u *upload) try(ctx context.Context) (arrived bool, _ error) {
	u.known.Attempt++
	sentAt := u.core.poller.Now()
	u.began = time.Now()
	result := u.put.Do(u.trying(ctx))
	if result.Outcome == storage.Stored {
		u.tell(ctx, result, false, 0)
		u.core.poller.Invalidate(u.id, sentAt)
		return true, nil
	}
	failure := u.failure(result)
	if result.StatusCode == http.StatusExpectationFailed && !u.put.NoExpect { // RFC 9110, section 10.1.1
		u.tell(ctx, result, true, 0)
		u.put.NoExpect = true
		u.known.Attempt-- // this attempt does not count
		return false, nil
	}
	wait := u.core.Retries.Wait(u.known.Attempt, min(result.RetryAfter, backoff.Longest))
	hurried := ctx.Err() != nil || result.RetryAfter > backoff.Longest || !backoff.Outlives(ctx, wait)
	if hurried {
		u.known.Repeats = 0 // there is no time for another attempt
	}
	step := u.known.Next(result)
	if hurried || !step.Again && step.Looks == 0 {
		wait = 0
	} // else the service also has time to notice audio that did arrive
	u.tell(ctx, result, step.Again, wait)
	_ = backoff.Sleep(ctx, wait) // ctx is checked next
	if ctx.Err() != nil {
		failure.causes = backoff.Causes(ctx, failure.causes...)
		return false, failure
	}
	return u.prepare(ctx, step, failure)
}

// prepare looks for the audio and renews the URL, as step says, after a failed attempt.
func (u *upload) prepare(ctx context.Context, step storage.Step, failure *StorageError) (arrived bool, _ error) {
	renews := step.Again && (step.Fresh || !time.Now().Before(u.put.Expires))
	// If the meeting probably has no audio, ask for the new URL first: after that a look
	// may be made at once, not after 30 s.
	if renews && !u.known.Whole {
		if arrived, err := u.replace(ctx, failure); arrived || err != nil {
			return arrived, err
		}
		renews = false
	}
	arrived, err := u.look(ctx, step.Looks, failure)
	switch {
	case arrived || err != nil:
		return arrived, err
	case !step.Again:
		return false, failure
	case renews:
		return u.replace(ctx, failure)
	}
	return false, nil
}

// trying returns the context of the current attempt; see FromContext.
func (u *upload) trying(ctx context.Context) context.Context {
	return context.WithValue(ctx, rest.Try{}, rest.Try{Operation: route.Upload, ID: u.core.Mask.Text(u.id), Number: u.known.Attempt})
}

// replace asks for another URL. If that fails and the meeting may have the audio, it
// looks before it reports the failure.
func (u *upload) replace(ctx context.Context, failure *StorageError) (arrived bool, _ error) {
	err := u.renew(ctx)
	if err == nil {
		return false, nil
	}
	failure.causes = append(failure.causes, err)
	if arrived, _ = u.look(ctx, u.known.Looks(), failure); arrived {
		return true, nil
	}
	return false, failure
}

// failure returns the error for an attempt, in case no other follows.
func (u *upload) failure(r storage.Result) *StorageError {
	if r.StatusCode != 0 {
		u.refusal = StorageError{StatusCode: r.StatusCode, Code: r.Code, Message: r.Message, RequestID: r.RequestID, RetryAfter: r.RetryAfter}
	}
	err := u.refusal
	err.passes = r.Outcome != storage.Hopeless
	if r.Err != nil {
		err.causes = []error{r.Err}
	}
	return &err
}

// look asks up to n times whether the audio has arrived after all; hasAudio waits for
// the floor each time. If a look fails or finds only a part, the upload fails.
func (u *upload) look(ctx context.Context, n int, failure *StorageError) (arrived bool, _ error) {
	for range n {
		if !backoff.Outlives(ctx, time.Until(u.lookNotBefore)) {
			break // ctx would end before the meeting may be looked at
		}
		there, err := u.core.hasAudio(ctx, u.id)
		u.lookNotBefore = time.Now().Add(30 * time.Second)
		switch {
		case there && u.known.Whole:
			return true, nil
		case there:
			err = ErrPartialAudio
		}
		if err != nil {
			failure.causes = append(failure.causes, err)
			return false, failure
		}
	}
	return false, nil
}

// renew asks for an upload URL.
func (u *upload) renew(ctx context.Context) error {
	sentAt := time.Now()
	t, err := u.meetings.UploadURL(ctx, u.id, u.put.Recording.ContentType)
	if err != nil {
		return err
	}
	target, why := parseTarget(t, u.core.local)
	if why != "" {
		in := rest.Request{Operation: route.MeetingsUploadURL, ID: u.id}
		return u.core.unusable(in, &rest.Reply{Status: http.StatusOK}, "the reply's "+why)
	}
	u.put.Target, u.put.Mask, u.known.Uses = target, u.core.Mask.WithQuery(target), 0
	u.lookNotBefore = time.Time{}
	u.put.Expires = sentAt.Add(time.Duration(min(t.ExpiresIn, 1<<30)) * time.Second) // min prevents an overflow
	return nil
}

// parseTarget returns the URL of an upload target, or what is wrong with the target,
// never quoting its URL. local: the service is on this machine, and so may its storage be.
func parseTarget(t *UploadTarget, local bool) (*url.URL, string) {
	target, err := url.Parse(t.UploadURL.Reveal())
	switch {
	case err != nil:
		return nil, "upload_url is not a URL"
	case target.Scheme != "https" && !(target.Scheme == "http" && local && isLoopback(target.Hostname())):
		return nil, "upload_url is neither https nor loopback for a loopback service"
	case target.Hostname() == "":
		return nil, "upload_url names no host"
	case t.Method != "" && t.Method != http.MethodPut:
		return nil, "method is not PUT"
	}
	return target, ""
}

// tell reports an attempt that ended, and the wait before another.
func (u *upload) tell(ctx context.Context, result storage.Result, again bool, wait time.Duration) {
	c := u.core
	if c.api.Observe == nil {
		return
	}
	ctx = u.trying(ctx)
	e, _ := FromContext(ctx)
	e.StatusCode, e.Code, e.Err, e.Stalled = result.StatusCode, Code(result.Code), result.Err, result.Stalled
	e.Sent, e.Duration, e.Again = result.Sent, time.Since(u.began), again
	if again {
		e.Wait = wait
	}
	c.tried(ctx, e, result.RequestID, slog.String("meeting", plain(e.MeetingID)), slog.String("method", http.MethodPut),
		slog.String("host", u.put.Target.Host), slog.String("path", u.put.Target.EscapedPath()),
		slog.Int64("sent", e.Sent), slog.Int64("size", u.put.Recording.Size))
}
