package minutes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// maxText limits the bytes of minutes or of a transcript.
const maxText = 8 << 20

// decode decodes a 2xx response into out. If out is nil, it only returns an error for a page, which
// another server sent. For Client.Do, whose endpoint and out are the caller's, it then returns none; an
// empty body leaves out unchanged, and no field is required.
func (c *core) decode(resp *rest.Response, out any) error {
	isDo := resp.Request.Operation == string(OpDo)
	if resp.CutAt > 0 {
		e := c.requestError(resp, fmt.Sprintf("the response is longer than %d bytes", resp.CutAt))
		e.unusable = failure.Oversized
		if !isDo && isPage(resp) {
			e.unusable = failure.ForeignPage
		}
		return e
	}
	wantsNothing := out == nil || isDo && len(bytes.TrimSpace(resp.Body)) == 0
	if wantsNothing && (isDo || !isPage(resp)) {
		return nil
	}
	err := unmarshal(resp.Body, out, isDo)
	missing := ""
	if v, ok := out.(required); ok && !isDo && err == nil {
		missing = v.missing(received{resp.Body, c.mask})
	}
	if err == nil && missing == "" {
		return nil
	}
	if !isDo {
		partial := c.salvage(resp, out, received{withWholeNumbers(resp.Body), c.mask})
		if partial != nil {
			return partial
		}
	}
	if missing != "" {
		return c.requestError(resp, "the response lacks "+missing)
	}
	e := c.requestError(resp, "the response does not match the API reference: "+c.describeBody(resp, err, out))
	if isPage(resp) {
		e.unusable = failure.ForeignPage
	}
	return e
}

// unmarshal is json.Unmarshal, but a whole number fits an integer even if it is written like 61.0. If
// keep is set, out keeps what it held.
func unmarshal(body []byte, out any, keep bool) error {
	err := json.Unmarshal(body, out)
	_, unfit := errors.AsType[*json.UnmarshalTypeError](err)
	if !unfit {
		return err
	}
	if !keep {
		reflect.ValueOf(out).Elem().SetZero()
	}
	return json.Unmarshal(withWholeNumbers(body), out)
}

// required is a type of response with required fields. missing returns the path of the first one
// that the response lacks, or "".
type required interface {
	missing(r received) string
}

// received is a response, which is a JSON object.
type received struct {
	body []byte
	mask *rest.Mask
}

// has reports whether the object has a field. A null counts only if that is allowed.
func (r received) has(name string, nullAllowed bool) bool {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(r.body, &all) // which worked before
	value, ok := all[name]
	return ok && (nullAllowed || string(value) != "null")
}

// lacks returns the name of a field if the response lacks it, or "".
func lacks(field string, missing bool) string {
	if missing {
		return field
	}
	return ""
}

// missingList is missing for a list. The list may be null, as many servers write an empty one, but
// an element may not.
func missingList[T required](name string, list []T, r received) string {
	for i, element := range list {
		if field := element.missing(r); field != "" {
			return fmt.Sprintf("%s[%d].%s", name, i, field)
		}
	}
	return lacks(name, list == nil && !r.has(name, true))
}

// describeBody says why a body cannot be decoded. It quotes a page, because pages come from other
// servers, but no JSON, because the service's response may contain the names of people.
func (c *core) describeBody(resp *rest.Response, err error, out any) string {
	if isPage(resp) {
		return c.mask.Page(c.base.Host, resp.Header, resp.Body)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return describeUnfit(wrong, out, "the response")
	}
	return fmt.Sprintf("invalid JSON (%d bytes)", len(resp.Body))
}

// declaredPath returns the part of path that consists of fields which out's type declares. Since Go
// 1.27, the path of an UnmarshalTypeError also has the indexes of lists and the keys of maps, which
// are content. The part ends at a map.
func declaredPath(path string, out any) string {
	var declared []string
	within := reflect.TypeOf(out)
	for name := range strings.SplitSeq(path, ".") {
		_, notIndex := strconv.Atoi(name)
		if notIndex == nil {
			continue
		}
		field := fieldNamed(within, name)
		if field == nil {
			break
		}
		within = field.Type
		if !field.Anonymous { // only Go 1.26 names embedded structs
			declared = append(declared, jsonName(field))
		}
	}
	return strings.Join(declared, ".")
}

// fieldNamed returns the field that has this name in JSON, of a struct or of the elements of a list of
// structs, or nil.
func fieldNamed(of reflect.Type, name string) *reflect.StructField {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array}, of.Kind()) {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(of) {
		if strings.EqualFold(jsonName(&field), name) { // as encoding/json compares
			return &field
		}
	}
	return nil
}

func jsonName(field *reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return cmp.Or(name, field.Name)
}

// isPage reports whether the body is a page or another text, and not JSON. The service sends only
// JSON.
func isPage(resp *rest.Response) bool {
	body := bytes.TrimLeft(resp.Body, " \t\r\n\ufeff")
	if len(body) == 0 || strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return false
	}
	return !json.Valid(body) && !bytes.ContainsAny(body[:1], `{["`)
}

// newError returns the error of a request whose response is missing, incomplete or not a 2xx. err
// is that of internal/rest, or nil.
func (c *core) newError(r *rest.Response, err error) *Error {
	e := c.requestError(r, "")
	e.RetryAfter = r.RetryAfter
	e.Err = err
	if r.Status != 0 && r.Status/100 != 2 { // an incomplete 2xx has no envelope
		c.readEnvelope(e, r)
	}
	if row := route.Table.Of(r.Request.Operation); row != nil && e.Code == ErrInsufficientScope {
		e.Scope = Scope(row.Scope)
	}
	if errors.Is(err, rest.ErrPaused) {
		e.Code = cmp.Or(e.Code, ErrRateLimited)
	}
	return e
}

// readEnvelope sets the fields of e from a response that is not 2xx.
func (c *core) readEnvelope(e *Error, r *rest.Response) {
	var env struct { // the body of every error response (section 7)
		Error struct {
			Code      ErrorCode      `json:"code"`
			Message   string         `json:"message"`
			RequestID string         `json:"request_id"`
			Details   map[string]any `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(r.Body, &env) // which may fail at one field, and still read the others
	e.RequestID = cmp.Or(c.mask.Label(env.Error.RequestID), e.RequestID)
	switch {
	case env.Error.Code != "":
		e.Code = ErrorCode(c.mask.Label(string(env.Error.Code)))
		e.Message = c.mask.Text(env.Error.Message)
		c.mask.Details(env.Error.Details)
		e.Details = env.Error.Details
	case r.Status/100 == 3:
		e.Message = c.mask.Redirect(c.base.Host, r.Header)
	default:
		e.Message = c.describeForeign(r, r.Body)
	}
	if e.Code == "" && r.Status == http.StatusTooManyRequests {
		e.Code = ErrRateLimited
	}
}

// describeForeign describes an error response that is not the service's envelope, by its sender and
// its text.
func (c *core) describeForeign(r *rest.Response, body []byte) string {
	said := gatewayText(body)
	if said == "" && r.Status == http.StatusTooManyRequests {
		return "too many requests" // which the service's edge sends without an envelope
	}
	text := "the response is not the service's error envelope: "
	switch {
	case said != "":
		text += c.mask.Page(c.base.Host, r.Header, []byte(said))
	case len(body) == 0 || isPage(r):
		text += c.mask.Page(c.base.Host, r.Header, body)
	case json.Valid(body):
		text += c.mask.Sender(c.base.Host, r.Header) + " sent JSON without a message"
	default:
		text += fmt.Sprintf("%s sent invalid JSON (%d bytes)", c.mask.Sender(c.base.Host, r.Header), len(body))
	}
	if r.Status == http.StatusNotFound {
		text += "; check the base URL"
	}
	return text
}

// gatewayText returns what the JSON of a gateway's error says, or "". It reads the shapes of AWS,
// Apigee, Azure, Cloudflare, Envoy, Google, Kong, Tyk, OAuth 2.0 and problem details (RFC 9457).
func gatewayText(body []byte) string {
	var v any
	_ = json.Unmarshal(body, &v) // if it is not JSON, v stays nil
	return textIn(map[string]any{"error": v})
}

// textIn returns the first text among the fields that gateways use, at any depth.
func textIn(fields map[string]any) string {
	for _, name := range []string{
		"message", "Message", "errorMessage", "detail", "error_description", "faultstring", "title",
		"error", "errors", "fault",
	} {
		value := fields[name]
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		switch value := value.(type) {
		case string:
			if value != "" {
				return value
			}
		case map[string]any:
			if text := textIn(value); text != "" {
				return text
			}
		}
	}
	return ""
}

// requestError returns an error that names the request. Its RequestID is from the header.
func (c *core) requestError(r *rest.Response, problem string) *Error {
	return &Error{
		StatusCode: r.Status, Message: c.mask.Text(problem), RequestID: c.mask.Label(r.Header.Get("X-Request-Id")),
		Operation: Operation(r.Request.Operation), Method: r.Request.Method, Path: c.mask.Text(r.Request.Path),
	}
}
