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
	// Path begins with a slash, follows the base URL, and is escaped (see [url.PathEscape]):
	// "/v1/meetings/mtg_1/notes".
	Path  string
	Query url.Values // may be nil
	Body  any        // is sent as JSON, unless nil
	// Idempotent means that two equal requests have the same effect as one. If Idempotent is set,
	// the Client retries the request like a GET.
	Idempotent bool
}

// Response is the response to a successful request of [Client.Do].
type Response struct {
	StatusCode int
	Header     http.Header // without cookies, the API key and the query of a Location
	Body       []byte      // at most 4 MiB; a longer response is an error
}

// Do makes a request to an endpoint that this package does not cover. Authentication, rate limit
// and errors are the same as for every other call. If out is not nil, Do decodes the response into
// out, which must be a pointer. To read fields that a type of this package lacks, embed the type
// in a struct; see the example.
//
// [WithRetries] says after which failures the Client retries a GET. The Client retries a request with
// Request.Idempotent after the same failures. The Client retries other requests only after a 429, or
// if there was no connection.
//
// Errors: *[Error] as for every call, and *[ParamError] if r or out is invalid. With an error, the
// Response is nil.
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
