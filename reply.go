package minutes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lastReply is the last reply that any try of a call received.
type lastReply struct {
	status  int
	header  http.Header
	body    *bodyBuffer // pooled; nil: no reply
	tooLong bool        // there was more than is read
}

// bodyBuffer is a pooled buffer for replies; decoding copies out of it.
type bodyBuffer struct {
	bytes.Buffer
	limited io.LimitedReader
}

var bodies = sync.Pool{New: func() any { return new(bodyBuffer) }}

// keepBuffer is the size up to which a buffer goes back to the pool.
const keepBuffer = 1 << 20

// release gives the reply's buffer back.
func (c *call) release() {
	if b := c.last.body; b != nil && b.Cap() <= keepBuffer {
		bodies.Put(b)
	}
	c.last.body = nil
}

// decode reads a reply of 2xx.
func (c *call) decode(into any, missing func() string) error {
	switch {
	case c.last.tooLong:
		return c.unusable("the reply is longer than " + strconv.Itoa(maxReply) + " bytes")
	case c.last.body.Len() == 0:
		return c.unusable("the reply is empty")
	}
	if err := json.Unmarshal(c.last.body.Bytes(), into); err != nil {
		return c.unusable("the reply is not what the interface promises: " + c.describeBody(err))
	}
	if field := missing(); field != "" {
		return c.unusable("the reply lacks " + field)
	}
	return nil
}

// describeBody says what is wrong with a body without quoting it.
func (c *call) describeBody(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ") // what follows "number" is its digits
		if wrong.Field == "" {
			return "a JSON " + found + " where an object should be"
		}
		return "a JSON " + found + " that does not fit the field " + strconv.Quote(wrong.Field)
	}
	kind, _, err := mime.ParseMediaType(c.last.header.Get("Content-Type"))
	if err != nil {
		kind = "no content type"
	}
	return "no valid JSON (" + c.core.mask.Text(kind) + ", " + strconv.Itoa(c.last.body.Len()) + " bytes)"
}

// unusable is the error for a reply of 2xx that cannot be used.
func (c *call) unusable(why string) *Error {
	e := c.bare()
	e.StatusCode, e.Message = c.last.status, why
	e.RequestID = c.headerRequestID()
	return e
}

// bare is an error that knows only the request.
func (c *call) bare() *Error {
	return &Error{Method: c.row.Method, Path: c.path}
}

// headerRequestID is what gateways in front of a service commonly send; the
// interface itself has the request id in the envelope.
func (c *call) headerRequestID() string {
	return c.core.mask.Text(c.last.header.Get("X-Request-Id"))
}

// envelope is the form of every refusal (section 7).
type envelope struct {
	Error struct {
		Code      Code           `json:"code"`
		Message   string         `json:"message"`
		RequestID string         `json:"request_id"`
		Details   map[string]any `json:"details"`
	} `json:"error"`
}

// refusal maps the last reply to an error; without one it is bare.
func (c *call) refusal() *Error {
	e := c.bare()
	if c.last.body == nil {
		return e
	}
	e.StatusCode = c.last.status
	e.RetryAfter, _ = c.retryAfter()
	var env envelope
	err := json.Unmarshal(c.last.body.Bytes(), &env)
	mask := c.core.mask
	switch {
	case env.Error.Code != "":
		// Fields of a wrong type are left out; what is right is kept.
		e.Code = Code(mask.Text(string(env.Error.Code)))
		e.Message = mask.Text(env.Error.Message)
		e.RequestID = mask.Text(env.Error.RequestID)
		if env.Error.Details != nil {
			mask.Tree(env.Error.Details)
			e.Details = env.Error.Details
		}
	case c.last.status/100 == 2:
		// It broke off; what ended the call says so.
	case c.last.status/100 == 3:
		e.Message = "redirects are refused"
	case c.last.status == http.StatusTooManyRequests:
		e.Code, e.Message = ErrRateLimited, "too many requests"
	case c.last.body.Len() == 0:
		e.Message = cmp.Or(http.StatusText(c.last.status), "the reply is empty")
	case err != nil:
		e.Message = "the reply is not the service's error envelope: " + c.describeBody(err)
	default:
		e.Message = "the reply is not the service's error envelope"
	}
	if e.RequestID == "" {
		e.RequestID = c.headerRequestID()
	}
	return e
}

// fail is the error of a call that cause ended, whatever reply came before.
func (c *call) fail(cause error) *Error {
	e := c.refusal()
	if soon, ok := errors.AsType[*tooSoon](cause); ok && soon.wait > 0 {
		e.RetryAfter = soon.wait
		if e.Code == "" {
			e.Code = ErrRateLimited
		}
	}
	e.causes = causes(c.Context, c.core.mask.Err(cause))
	return e
}

// causes lists errs and, where ctx is done, its error and its cause, each once.
// The transport returns the cause alone of a context made with
// context.WithCancelCause, which is no context.Canceled.
func causes(ctx context.Context, errs ...error) []error {
	list := errs
	if ctx.Err() != nil {
		for _, more := range []error{context.Cause(ctx), ctx.Err()} {
			if !errors.Is(errors.Join(list...), more) {
				list = append(list, more)
			}
		}
	}
	return list
}

// ctxError is the error of a context that is done, and its cause.
func ctxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// retryAfter reads the Retry-After of a 429 or a 503: seconds or a date.
func (c *call) retryAfter() (time.Duration, bool) {
	switch c.last.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return parseRetryAfter(c.last.header.Get("Retry-After"), time.Now())
	}
	return 0, false
}

func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	} else if errors.Is(err, strconv.ErrRange) {
		return time.Duration(1<<31) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
