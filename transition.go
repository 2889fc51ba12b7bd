package minutes

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// What the upload and the poller take from here until they have rooms of their
// own.

const maxCoolDown = backoff.Longest

func sleep(ctx context.Context, d time.Duration) error     { return backoff.Sleep(ctx, d) }
func outlives(ctx context.Context, d time.Duration) bool   { return backoff.Outlives(ctx, d) }
func causes(ctx context.Context, errs ...error) []error    { return backoff.Causes(ctx, errs...) }
func ctxError(ctx context.Context) error                   { return backoff.ContextError(ctx) }
func retryAfterOf(status int, h http.Header) time.Duration { return backoff.RetryAfter(status, h) }

func permanent(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

func notDialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func refuseSwitch(resp *http.Response) {
	if resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil {
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
}

type tryTimeoutError struct{ after time.Duration }

func (e *tryTimeoutError) Error() string   { return "no reply within " + e.after.String() }
func (e *tryTimeoutError) Timeout() bool   { return true }
func (e *tryTimeoutError) Temporary() bool { return true }

var errNoReply = errors.New("the transport returned neither a reply nor an error")
