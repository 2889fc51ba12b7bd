package minutes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Request is a request of [Client.Do].
type Request struct {
	Method string // GET, POST, PUT, PATCH or DELETE
	// Path begins with a slash, follows the base URL, and is escaped (see [url.PathEscape]):
	// "/v1/meetings/mtg_1/notes".
	Path   string
	Query  url.Values  // may be nil
	Header http.Header // is sent, too, except for Authorization; may be nil
	Body   any         // is sent as JSON, unless nil
	// Idempotent means that two equal requests have the same effect as one. If Idempotent is set,
	// the Client retries the request like a GET.
	Idempotent bool
}

// Response is a response of the service, for fields and headers that this package does not know.
// [Client.Do] returns it, and [ContextWithResponse] gets it from every other call.
type Response struct {
	StatusCode int
	Header     http.Header // without cookies, the API key and the query of a Location
	Body       []byte      `json:"-"` // at most 4 MiB, or 8 MiB for minutes and a transcript
}

// Format prints the Response without its body, which may contain an upload URL, for every verb. The
// packages slog and encoding/json leave the body out, too.
func (r Response) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "minutes.Response(%d, body of %d bytes)", r.StatusCode, len(r.Body))
}

// LogValue keeps the body out of structured logs.
func (r Response) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(r)) }

// response returns a copy of r for the caller.
func (c *core) response(r *rest.Response) Response {
	return Response{r.Status, c.Mask.Header(r.Header), bytes.Clone(r.Body)}
}

type responseKey struct{}

// ContextWithResponse returns a context for one call. During the call, resp receives status, header
// and body of each response of the API, so that it has the last one when the call returns, even if
// the call fails. If the call gets no response, resp stays as it is. Use resp for one call at a time.
//
// WaitAll, ProcessAll and Follow never fill resp, because their requests run concurrently. Neither
// do the requests that many waits share.
func ContextWithResponse(ctx context.Context, resp *Response) context.Context {
	return context.WithValue(ctx, responseKey{}, resp)
}

type headerKey struct{}

// ContextWithHeader returns a context for calls whose API requests have h as well, for example a
// trace id. It cannot change Authorization. Uploads to storage and the requests that waits share do
// not get h.
func ContextWithHeader(ctx context.Context, h http.Header) context.Context {
	merged := http.Header{}
	maps.Copy(merged, headerOf(ctx))
	for name, values := range h {
		merged[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return context.WithValue(ctx, headerKey{}, merged)
}

// headerOf returns the header of ContextWithHeader, or nil.
func headerOf(ctx context.Context) http.Header {
	h, _ := ctx.Value(headerKey{}).(http.Header)
	return h
}

// Do makes a request to an endpoint that this package does not cover. Authentication, rate limit
// and errors are the same as for every other call. If out is not nil, Do decodes the response into
// out, which must be a pointer. To read fields that a type of this package lacks, embed the type
// in a struct; see the example.
//
// [WithMaxRetries] says after which failures the Client retries a GET. The Client retries a request
// with Request.Idempotent after the same failures. It retries other requests only after a 429, or if
// there was no connection.
//
// Errors: *[Error] as for every call, and *[ParamError] if r or out is invalid. With an error, the
// Response is nil; [ContextWithResponse] gets it in that case, too.
func (c *Client) Do(ctx context.Context, r Request, out any) (*Response, error) {
	if err := cmp.Or(r.check(out), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	if c.Meetings == nil || c.Meetings.core == nil {
		return nil, errNotNew
	}
	core := c.Meetings.core
	in := rest.Request{
		Operation: route.Operation(OpDo), Method: r.Method, Path: r.Path, Query: r.Query,
		Repeatable: r.Method == http.MethodGet || r.Idempotent,
	}
	if r.Header != nil {
		ctx = ContextWithHeader(ctx, r.Header)
	}
	if r.Body != nil {
		body, err := json.Marshal(r.Body)
		if err != nil {
			return nil, &ParamError{Param: "Body", Reason: "cannot be written as JSON", Err: err}
		}
		in.Body = json.RawMessage(body)
	}
	resp, err := core.send(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := core.decode(resp, out); err != nil {
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
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return &ParamError{Param: "out", Reason: "must be a pointer or nil"}
	}
	return nil
}
