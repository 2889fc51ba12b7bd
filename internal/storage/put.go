// Package storage sends a recording to a presigned URL with one PUT. It knows
// HTTP and the errors of S3; it knows no service, no meeting and no repeats.
package storage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

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
	UserAgent []string
	Mask      secret.Mask // what must not show, the target's query included
	Recording Recording
	Limits    Limits
	// NoExpect sends the body without asking for leave. With leave, an early
	// refusal costs no body and is not lost in a reset.
	NoExpect bool
	Progress func(sent, total int64) // or nil
}

// Result is what became of a Put.
type Result struct {
	Status  int      // of the store's reply; 0 where none came
	Sent    int64    // how much of the recording was handed to the transport
	Failure *Failure // nil: the store has taken the recording
}

// Failure is a Put that did not succeed, as far as anybody knows.
type Failure struct {
	Kind Kind
	// Of the store's reply, where there was one.
	StatusCode               int
	Code, Message, RequestID string
	RetryAfter               time.Duration
	Err                      error // what went wrong, where there was no reply
	Stalled                  bool  // it came to a standstill, and was given up
}

// Kind is what a failure says about the recording.
type Kind int

const (
	// Lost: no reply came. The store may have the recording.
	Lost Kind = iota
	// Refused: the store, or something before it, answered other than 2xx.
	Refused
	// NeverSent: no connection was made.
	NeverSent
	// Untrusted: the certificate is not the store's.
	Untrusted
	// Unreadable: the recording could not be read.
	Unreadable
)

// Do makes the request. It returns soon after ctx has ended, even where
// Recording.Audio or Progress blocks; such a call is left to end by itself, and
// no other begins.
func (p *Put) Do(ctx context.Context) Result {
	sent := new(atomic.Int64)
	result, ok := obey(ctx, func() Result { return p.exchange(ctx, sent) })
	if !ok {
		err := p.Mask.Err(context.Cause(ctx))
		result = Result{Sent: sent.Load(), Failure: &Failure{Err: err}}
	}
	return result
}

// exchange is Do that does not return before all of it has ended.
func (p *Put) exchange(ctx context.Context, sent *atomic.Int64) Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := newBody(ctx, p.Recording, p.Progress, sent)
	stopWatching := p.Limits.watch(body, cancel)
	defer stopWatching()

	conn := new(connection)
	req := p.request(conn.watch(ctx), body)
	resp, err := p.Transport.RoundTrip(req)
	if err == nil && resp == nil {
		err = errNoReply
	}
	var result Result
	if err == nil {
		result.Status = resp.StatusCode
		result.Failure = readReply(resp, p.Mask)
	}
	stopWatching()
	late, stalled := errors.AsType[*timeoutError](context.Cause(ctx))
	if stalled = stalled && err != nil; stalled {
		err = late
	}
	cancel(nil)
	readErr := body.detach()
	result.Sent = sent.Load()
	switch {
	case err == nil && result.Failure == nil:
	case readErr != nil:
		result.Failure = &Failure{Kind: Unreadable, Err: fmt.Errorf("the recording could not be read: %w", p.Mask.Err(readErr))}
	case err != nil:
		result.Failure = p.lost(err, req, conn, result.Sent)
		result.Failure.Stalled = stalled
	}
	return result
}

var errNoReply = errors.New("the transport returned neither a reply nor an error")

func (p *Put) request(ctx context.Context, body io.ReadCloser) *http.Request {
	header := http.Header{
		"Content-Type": {p.Recording.ContentType},
		"User-Agent":   p.UserAgent,
	}
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

// connection is what net/http tells of the connection of a request, from
// goroutines that may outlive the request.
type connection struct {
	asked, got atomic.Bool
	dialled    atomic.Pointer[string] // address
}

func (c *connection) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { c.asked.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { c.got.Store(true) },
		ConnectStart: func(_, addr string) { c.dialled.Store(&addr) },
	})
}

// lost is the failure of a request without a reply.
func (p *Put) lost(err error, req *http.Request, conn *connection, sent int64) *Failure {
	kind, clean := Lost, p.Mask.Err(err)
	via, badProxy := p.proxy(req)
	switch {
	case conn.got.Load() || sent > 0:
	case badProxy: // its text may show the proxy's password
		return &Failure{Kind: NeverSent, Err: errors.New("the proxy's address cannot be used")}
	case untrusted(err):
		kind = Untrusted
	case conn.asked.Load() || notDialled(err):
		kind = NeverSent
		if addr := conn.dialled.Load(); via == "" && addr != nil {
			via = *addr
		}
		if via != "" && !strings.Contains(clean.Error(), via) {
			clean = fmt.Errorf("no connection by way of %s: %w", via, clean)
		}
	}
	return &Failure{Kind: kind, Err: clean}
}

// proxy is the host of the proxy that stands before the store, if the transport
// tells, or "". bad: there is one whose address cannot be used.
func (p *Put) proxy(req *http.Request) (host string, bad bool) {
	t, ok := p.Transport.(*http.Transport)
	if !ok || t.Proxy == nil {
		return "", false
	}
	u, err := t.Proxy(req)
	if err != nil || u == nil {
		return "", err != nil
	}
	return u.Host, false
}

func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// notDialled reports that no connection was made, by the error alone.
func notDialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// grace is how long what has seen its context end may take to return.
const grace = 100 * time.Millisecond

// obey calls f on another goroutine and returns what f does. Where f has not
// returned soon after ctx has ended, it is left alone, and ok is false.
func obey[T any](ctx context.Context, f func() T) (out T, ok bool) {
	type end struct {
		value    T
		returned bool
		panicked any
	}
	done := make(chan end, 1)
	go func() {
		var e end
		defer func() {
			e.panicked = recover() // it is the caller's to deal with
			done <- e
		}()
		e.value = f()
		e.returned = true
	}()
	finish := func(e end) (T, bool) {
		if e.panicked != nil {
			panic(e.panicked)
		}
		return e.value, e.returned
	}
	select {
	case e := <-done:
		return finish(e)
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case e := <-done:
		return finish(e)
	case <-timer.C:
		return out, false
	}
}
