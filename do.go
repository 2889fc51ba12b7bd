package minutes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Request is an HTTP request that [Client.Do] makes to an endpoint without a method of its own.
type Request struct {
	Method string // GET, POST, PUT, PATCH or DELETE
	// Path follows the base URL, as in "/v1/meetings/mtg_1/notes", and must be escaped (see
	// [url.PathEscape]).
	Path   string
	Query  url.Values  // may be nil
	Header http.Header // additional headers; Authorization is ignored; may be nil
	// Body is sent as JSON, unless it is nil. If you have JSON already, make it a json.RawMessage.
	Body any
	// Idempotent says that two equal requests have the same effect as one, so that the Client
	// retries the request like a GET.
	Idempotent bool
}

// Response holds what the service sent, for fields and headers that this package does not know.
// [Client.Do] returns it, and [ContextWithResponse] captures that of most other calls.
type Response struct {
	StatusCode int
	Header     http.Header // without cookies, the API key and the query of a Location
	Body       []byte      `json:"-"` // at most 4 MiB, or 8 MiB for minutes and a transcript
}

// Format leaves out the body, as the packages slog and encoding/json do, because the body may contain
// an upload URL.
func (r Response) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "minutes.Response(%d, body of %d bytes)", r.StatusCode, len(r.Body))
}

// response returns a copy of r for the caller.
func (c *core) response(r *rest.Response) Response {
	return Response{r.Status, c.mask.Header(r.Header), bytes.Clone(r.Body)}
}

type responseKey struct{}

// ContextWithResponse returns a context that captures the response of a call: when a call made with
// it returns, *resp is the last response of the API that the call received, even if the call
// failed. If there was none, *resp is unchanged. Do not use the context for concurrent calls, because
// all of them would write to resp.
//
// WaitAll, ProcessAll and Follow never set resp, because their requests run concurrently. A poll does
// not set it either, because many waits share one poll.
func ContextWithResponse(ctx context.Context, resp *Response) context.Context {
	return context.WithValue(ctx, responseKey{}, resp)
}

type headerKey struct{}

// ContextWithHeader returns a context that adds the headers h to the API requests of every call
// made with it, for example a trace id or the header that a gateway wants. A header of h replaces
// one that the Client or an outer context sets, except Authorization. Uploads and poller requests do
// not get these headers. To add a header to every request, wrap a transport: see [docs/gateways.md].
//
// [docs/gateways.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/gateways.md#a-gateways-own-header
func ContextWithHeader(ctx context.Context, h http.Header) context.Context {
	merged := http.Header{}
	outer, _ := ctx.Value(headerKey{}).(http.Header)
	maps.Copy(merged, outer)
	for name, values := range h {
		merged[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return context.WithValue(ctx, headerKey{}, merged)
}

// Do makes a request to an endpoint that this package does not cover, with the same authentication,
// rate limit and errors as every other call. If out is not nil, Do decodes the response into out,
// which must be a pointer. An empty 2xx leaves out unchanged.
//
// To read fields that one of our types lacks, let out point to a struct that embeds the type (see
// the example). Or call the normal method with [ContextWithResponse], and decode Response.Body;
// that keeps the checks of the method.
//
// A GET, or a request with Request.Idempotent, is retried after every failure that [WithMaxRetries]
// lists. Any other request is retried only after a 429, or if there was no connection, because
// otherwise the service may have received it.
//
// Errors: *[Error] as for every call, and *[ParamError] if r or out is invalid. The Response is
// then nil.
func (c *Client) Do(ctx context.Context, r Request, out any) (*Response, error) {
	err := cmp.Or(r.check(out), checkGiven("ctx", ctx != nil))
	if err != nil {
		return nil, err
	}
	core := c.Meetings.core
	in := rest.Request{
		Method:     r.Method,
		Path:       r.Path,
		Query:      r.Query,
		Repeatable: r.Method == http.MethodGet || r.Idempotent,
	}
	if r.Body != nil {
		body, err := json.Marshal(r.Body)
		if err != nil {
			return nil, &ParamError{Param: "Body", Reason: "cannot be written as JSON", Err: err}
		}
		in.Body = json.RawMessage(body)
	}
	resp, err := core.callInto(ContextWithHeader(ctx, r.Header), OpDo, in, out)
	if err != nil {
		return nil, err
	}
	return new(core.response(resp)), nil
}

func (r *Request) check(out any) error {
	if !slices.Contains(methods, r.Method) {
		return &ParamError{Param: "Method", Reason: methodReason}
	}
	if problem := pathProblem(r.Path); problem != "" {
		return &ParamError{Param: "Path", Reason: problem}
	}
	_, isMarshaler := r.Body.(json.Marshaler)
	_, isReader := r.Body.(io.Reader)
	if !isMarshaler && (isReader || isBytes(r.Body)) { // encoding/json would write {} or base64
		reason := "is sent as JSON; if it is JSON already, make it a json.RawMessage"
		return &ParamError{Param: "Body", Reason: reason}
	}
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return &ParamError{Param: "out", Reason: "must be a pointer or nil"}
	}
	return nil
}

// isBytes reports whether v is a []byte, or of a type like it, such as sql.RawBytes.
func isBytes(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
