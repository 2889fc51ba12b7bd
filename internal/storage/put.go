// Package storage sends a recording to a presigned URL with one PUT. It knows
// HTTP and the errors of S3; it knows no service, no meeting and no repeats.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// Recording is what is sent.
type Recording struct {
	Audio       io.ReaderAt
	Size        int64
	ContentType string
	MD5         string // in base64, for the header Content-MD5; "" leaves that out
}

// Put is one PUT of a recording to a presigned URL.
type Put struct {
	Transport http.RoundTripper
	Target    *url.URL
	Expires   time.Time // of Target
	UserAgent []string
	Mask      secret.Mask // what must not show, the target's query included
	Recording Recording
	Limits    Limits
	// NoExpect sends the body without asking for leave. With leave, an early
	// refusal costs no body and is not lost in a reset.
	NoExpect bool
	Progress func(sent, total int64) // or nil
}

// Limits end a request that has come to a standstill.
type Limits struct {
	Stall time.Duration // while the body is sent: the transport asks for no more of it for so long
	Reply time.Duration // once all of it was handed over: no reply for so long
}

// Result is what became of a Put.
type Result struct {
	Outcome Outcome
	Sent    int64 // how much of the recording was handed to the transport
	Whole   bool  // all of it was
	// Of the store's reply. StatusCode is 0 where none came, the others are of a
	// refusal alone.
	StatusCode               int
	Code, Message, RequestID string
	RetryAfter               time.Duration
	Err                      error // what went wrong, where there was no reply
	Stalled                  bool  // it came to a standstill, and was given up
}

// Do makes the request. It returns soon after ctx has ended, even where
// Recording.Audio or Progress blocks; such a call is left to end by itself, and
// no other begins.
func (p *Put) Do(ctx context.Context) Result {
	sent := new(atomic.Int64)
	result, err := obey(ctx, func() Result { return p.exchange(ctx, sent) })
	if err != nil {
		return Result{Sent: sent.Load(), Err: p.Mask.Err(err)}
	}
	return result
}

// exchange makes one request, and does not return before all of it has ended.
func (p *Put) exchange(caller context.Context, sent *atomic.Int64) Result {
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	limit := time.AfterFunc(p.Limits.Stall, func() {
		why := fmt.Sprintf("no byte of the upload moved for %v", p.Limits.Stall)
		if sent.Load() >= p.Recording.Size {
			why = fmt.Sprintf("no reply for %v after the whole recording was handed over", p.Limits.Reply)
		}
		cancel(fmt.Errorf("%s: %w", why, os.ErrDeadlineExceeded)) // a net.Error; the caller's context is not done
	})
	defer limit.Stop()
	body := newBody(ctx, p.Recording, sent, func(at, size int64) {
		next := p.Limits.Stall
		if at == size {
			next = p.Limits.Reply
		}
		limit.Reset(next)
		if p.Progress != nil {
			p.Progress(at, size)
		}
	})
	conn := new(backoff.Conn)
	resp, err := backoff.RoundTrip(p.Transport, p.request(conn.Trace(ctx), body))
	var result Result
	if err == nil {
		result = readReply(resp, p.Mask)
	}
	stalled := err != nil && ctx.Err() != nil && caller.Err() == nil
	if stalled {
		err = context.Cause(ctx)
	}
	cancel(nil)
	readErr := body.detach()
	handed := sent.Load()
	switch {
	case result.Outcome == Stored:
	case readErr != nil:
		result = Result{Err: p.unreadable(readErr)}
	case err != nil:
		result = p.lost(err, conn, handed)
		result.Stalled = stalled
	default:
		result.Outcome = result.refused(!time.Now().Before(p.Expires))
	}
	result.Sent, result.Whole = handed, handed == p.Recording.Size
	return result
}

func (p *Put) request(ctx context.Context, body io.ReadCloser) *http.Request {
	header := http.Header{"Content-Type": {p.Recording.ContentType}, "User-Agent": p.UserAgent}
	if !p.NoExpect {
		header.Set("Expect", "100-continue")
	}
	if p.Recording.MD5 != "" {
		header.Set("Content-MD5", p.Recording.MD5)
	}
	return (&http.Request{
		Method: http.MethodPut, URL: p.Target, Host: p.Target.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          body,
		ContentLength: p.Recording.Size,
	}).WithContext(ctx)
}

// lost is the result of a request without a reply, after so many bytes of the body.
func (p *Put) lost(err error, conn *backoff.Conn, handed int64) Result {
	r := Result{Outcome: Ambiguous, Err: p.Mask.Err(err)}
	if handed > 0 || !conn.NeverMade(err) {
		return r
	}
	r.Outcome = Untouched
	if backoff.Untrusted(err) {
		r.Outcome = Hopeless
	}
	if hop := conn.Hop(); !strings.Contains(r.Err.Error(), hop) { // a proxy seldom names itself
		r.Err = fmt.Errorf("no connection to %s: %w", hop, r.Err)
	}
	return r
}

// obey returns what f does, which runs on another goroutine. Where that has not
// ended soon after ctx has, it is left alone, and goes on.
func obey[T any](ctx context.Context, f func() T) (T, error) {
	var result, none T
	err := errors.New("a callback ended its goroutine")
	var panicked any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }() // it is the caller's to deal with
		result, err = f(), nil
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(100 * time.Millisecond): // f has seen ctx end, and may take a moment to return
			return none, context.Cause(ctx)
		}
	}
	if panicked != nil {
		panic(panicked)
	}
	return result, err
}
