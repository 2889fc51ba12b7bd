package minutes

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// UploadOptions tune an upload; the zero value, or nil, is fine.
type UploadOptions struct {
	// Progress is called with the bytes handed to the network so far and the
	// recording's size. Within a try it never runs backwards; a new try begins
	// at 0. It runs on another goroutine, never after Upload has returned, and
	// should be quick, since the upload waits for it.
	Progress func(sent, total int64)
}

// Upload uploads the meeting's recording: it asks for an upload URL and PUTs
// the audio straight to storage, in constant memory at any size, without the
// API key and without the time limit of API calls (section 4.2). An upload of
// which no byte moves for a minute is given up and tried again. Once Upload has
// returned, the recording is read no more; a read under way holds it up. Soon
// after that the meeting moves on by itself; follow it with
// [MeetingsService.Wait].
//
// A broken upload is repeated as [WithRetries] says, with a new upload URL
// where the old one may be spent or has expired. Where the reply was lost, the
// meeting's status tells whether the audio arrived; audio that arrived is never
// sent again and never reported as failed. The upload and the XML of its
// refusals are documented, the store's codes are assumed.
//
// Errors: *ParamError for a recording that is empty, over 1 GiB or without
// content type, before any request; those of [MeetingsService.UploadURL], of
// which ErrBadRequest says that the meeting has audio already (assumed);
// *StorageError where the PUT failed.
func (s *MeetingsService) Upload(ctx context.Context, id string, rec Recording, opts *UploadOptions) error {
	if err := checkID("id", id); err != nil {
		return err
	}
	if err := rec.check(); err != nil {
		return err
	}
	u := &upload{meetings: s, core: s.core, id: id, rec: rec}
	if opts != nil {
		u.progress = opts.Progress
	}
	return u.run(ctx)
}

// upload is one recording on its way to storage, through as many tries as it
// takes.
type upload struct {
	meetings *MeetingsService
	core     *core
	id       string
	rec      Recording
	progress func(sent, total int64)

	target     *url.URL
	expires    time.Time // of the target
	mayBeThere bool      // some try may have put the audio in place
	unasked    bool      // the last of these, and nobody has looked since
	renewed    bool      // an expired target was replaced once
}

func (u *upload) run(ctx context.Context) error {
	if err := u.renew(ctx); err != nil {
		return err
	}
	for try := 1; ; try++ {
		target := u.target
		tried := u.put(ctx)
		failure := tried.failure
		if failure == nil {
			u.log(ctx, target, try, tried, 0)
			u.core.poller.Again(u.id, u.core.poller.Now())
			return nil
		}
		wait := u.core.retries.wait(try, min(failure.retryAfter, maxCoolDown))
		lives := outlives(ctx, wait)
		again := u.judge(failure) && try <= u.core.retries.max && failure.retryAfter <= maxCoolDown && lives
		if !again && !u.mayBeThere || !lives || ctx.Err() != nil {
			wait = 0
		}
		u.log(ctx, target, try, tried, wait)
		if wait > 0 {
			// It also gives the service time to notice audio that did arrive,
			// before it is asked.
			_ = sleep(ctx, wait) // ctx is looked at next
		}
		if ctx.Err() != nil {
			failure.causes = causes(ctx, failure.causes...)
			return failure
		}
		if u.unasked || u.mayBeThere && !again {
			u.unasked = false
			arrived, err := u.core.poller.hasAudio(ctx, u.id)
			if err != nil {
				failure.causes = append(failure.causes, err)
				return failure
			}
			if arrived {
				return nil
			}
		}
		if !again {
			return failure
		}
		if u.target == nil || !time.Now().Before(u.expires) {
			if err := u.renew(ctx); err != nil {
				return u.afterRefusedRenewal(ctx, failure, err)
			}
		}
	}
}

// judge decides whether a failed PUT may be repeated, and whether with the same
// URL. What is left of u.target says so: nil asks for a new one.
func (u *upload) judge(failure *StorageError) (again bool) {
	switch failure.StatusCode {
	case 0:
		switch {
		case errors.Is(failure, errRecording), slices.ContainsFunc(failure.causes, permanent):
			return false
		case slices.ContainsFunc(failure.causes, notDialled):
			return true // the store knows nothing of it
		}
		u.mayBeThere, u.unasked = true, true
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true // refused as a whole: the URL is as good as before
	case http.StatusBadRequest:
		return failure.Code == "RequestTimeout" // what S3 says in place of a 408
	case 499, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		u.mayBeThere, u.unasked = true, true
	case http.StatusForbidden:
		expired := !time.Now().Before(u.expires) || strings.Contains(strings.ToLower(failure.Message), "expired")
		if !expired || u.renewed {
			return false
		}
		u.renewed = true
	default:
		return false
	}
	u.target = nil
	return true
}

// renew asks for an upload URL.
func (u *upload) renew(ctx context.Context) error {
	asked := time.Now()
	t, err := u.meetings.UploadURL(ctx, u.id, u.rec.ContentType)
	if err != nil {
		return err
	}
	target, why := parseTarget(t)
	if why != "" {
		row := u.core.routes[route.MeetingsUploadURL]
		return &Error{StatusCode: http.StatusOK, Message: "the reply's " + why, Method: row.Method, Path: row.before + u.id + row.after}
	}
	u.target = target
	const most = 1 << 30 // seconds, so that no number overflows
	u.expires = asked.Add(time.Duration(min(t.ExpiresIn, most)) * time.Second)
	return nil
}

// afterRefusedRenewal: a service that refuses a new URL because the meeting has
// audio tells that the try whose reply was lost arrived after all.
func (u *upload) afterRefusedRenewal(ctx context.Context, failure *StorageError, err error) error {
	if u.mayBeThere && errors.Is(err, ErrBadRequest) {
		if arrived, lookErr := u.core.poller.hasAudio(ctx, u.id); lookErr == nil && arrived {
			return nil
		}
	}
	failure.causes = append(failure.causes, err)
	return failure
}

// parseTarget says what is wrong with an upload target, never quoting its URL.
func parseTarget(t *UploadTarget) (*url.URL, string) {
	target, err := url.Parse(t.UploadURL)
	switch {
	case err != nil:
		return nil, "upload_url is not a URL"
	case target.Scheme != "https" && !(target.Scheme == "http" && isLoopback(target.Hostname())):
		return nil, "upload_url is neither https nor loopback"
	case target.Hostname() == "":
		return nil, "upload_url names no host"
	case t.Method != "" && t.Method != http.MethodPut:
		return nil, "method is not PUT"
	}
	return target, ""
}

// tried is what became of one try.
type tried struct {
	status  int           // of the store's reply, 0 where none came
	sent    int64         // how much of the recording was handed to the network
	failure *StorageError // nil: it succeeded
}

// put is one try.
func (u *upload) put(ctx context.Context) tried {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := u.body()
	stopWatching := watchStall(body.sentSoFar, func() { cancel(errStalled) })
	req := (&http.Request{
		Method: http.MethodPut, URL: u.target, Host: u.target.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {u.rec.ContentType},
			"User-Agent":   u.core.userAgent,
			// An early refusal then costs no body and is not lost in a reset.
			"Expect": {"100-continue"},
		},
		Body:          asFile(body),
		ContentLength: u.rec.Size,
	}).WithContext(ctx)
	resp, err := u.core.storage.RoundTrip(req)
	if err == nil && resp == nil {
		err = errNoReply
	}
	var failure *StorageError
	if err == nil {
		failure = storageReply(resp, u.core.mask.WithQuery(u.target))
	}
	stopWatching()
	readErr := body.detach()
	switch {
	case err == nil && failure == nil:
	case readErr != nil:
		failure = &StorageError{causes: []error{errRecording, u.core.mask.Err(readErr)}}
	case err != nil:
		if context.Cause(ctx) == errStalled {
			err = errStalled
		}
		failure = &StorageError{causes: []error{u.core.mask.WithQuery(u.target).Err(err)}}
	}
	out := tried{sent: body.sentSoFar(), failure: failure}
	if failure == nil {
		out.sent = u.rec.Size // a file that the kernel sent is closed by now
	}
	if err == nil {
		out.status = resp.StatusCode
	}
	return out
}

// errRecording marks a failure that lies with the recording, not the network.
var errRecording = errors.New("the recording could not be read")

// log tells a debug log about a try that ended.
func (u *upload) log(ctx context.Context, target *url.URL, try int, t tried, wait time.Duration) {
	log := u.core.log
	if log == nil || !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("operation", "upload"), slog.String("meeting", u.id),
		slog.String("method", http.MethodPut), slog.String("host", target.Host), slog.String("path", target.EscapedPath()),
		slog.Int("attempt", try), slog.Int64("sent", t.sent), slog.Int64("size", u.rec.Size),
	)
	if t.status != 0 {
		attrs = append(attrs, slog.Int("status", t.status))
	}
	if f := t.failure; f != nil {
		attrs = append(attrs, slog.String("error", f.Error()), slog.String("request_id", f.RequestID))
	}
	if wait > 0 {
		attrs = append(attrs, slog.Duration("wait", wait))
	}
	log.LogAttrs(ctx, slog.LevelDebug, "minutes: try of an upload", attrs...)
}
