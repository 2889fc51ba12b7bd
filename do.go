package minutes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	// Path follows the base URL, begins with a slash and is escaped (see
	// [url.PathEscape]): "/v1/meetings/mtg_1/notes".
	Path  string
	Query url.Values // may be nil
	Body  any        // is sent as JSON, unless nil
	// Idempotent says that making the request twice has the same effect as making it
	// once. The Client then retries it like a GET.
	Idempotent bool
}

// Response is the response to a successful request of [Client.Do].
type Response struct {
	StatusCode int
	Header     http.Header // without cookies, the API key and the query of a Location
	Body       []byte
}

// Do makes a request to an endpoint that this package does not cover. It has the same
// authentication, rate limit, retries and errors as every other call. Observers receive
// it as OpDo. Do decodes the response into out, a pointer, unless out is nil. To read
// fields that a type of this package lacks, embed the type in a struct; see the example.
//
// The Client retries a GET like its own. It retries other methods only if the request
// certainly had no effect (a 429, or no connection), or if Request.Idempotent is set. A
// response over 4 MiB is an error. Waits do not learn from Do: if you poll a meeting with
// it, keep thirty seconds between two requests yourself.
//
// Errors: *Error as for every call; *ParamError for values that cannot be sent, or if out
// is not a pointer. The Response is nil if there is an error.
func (c *Client) Do(ctx context.Context, r Request, out any) (*Response, error) {
	row := route.Route{Operation: route.Operation(OpDo), Method: r.Method, Path: r.Path}
	if r.Method == http.MethodGet || r.Idempotent {
		row.Repeat = route.Always
	}
	problem := pathProblem(r.Path)
	if err := cmp.Or(checkThat("Method", slices.Contains(methods, r.Method), methodReason),
		checkThat("Path", problem == "", problem),
		checkThat("out", out == nil || reflect.ValueOf(out).Kind() == reflect.Pointer && !reflect.ValueOf(out).IsNil(), "must be a pointer or nil")); err != nil {
		return nil, err
	}
	request := rest.Request{Operation: row.Operation, Route: &row, Query: r.Query}
	if r.Body != nil {
		body, err := json.Marshal(r.Body)
		if err != nil {
			return nil, &ParamError{Param: "Body", Reason: "cannot be written as JSON"}
		}
		request.Body = json.RawMessage(body)
	}
	core := c.core()
	resp, err := core.request(ctx, request)
	if err != nil {
		return nil, err
	}
	defer resp.Release()
	if err := core.decode(request, resp, out); err != nil {
		return nil, err
	}
	return &Response{resp.Status, core.Mask.Header(resp.Header), bytes.Clone(resp.Body())}, nil
}
