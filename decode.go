package minutes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// maxText limits the bytes of minutes or of a transcript.
const maxText = 8 << 20

// decode decodes a 2xx response into out, unless out is nil. Required fields are checked, too, unless
// out is a caller's type; see Client.Do.
func (c *core) decode(resp *rest.Response, out any) error {
	if resp.Limit > 0 {
		return c.requestError(resp, fmt.Sprintf("the response is longer than %d bytes", resp.Limit))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(resp.Body, out); err != nil {
		return c.requestError(resp, "the response does not match the API reference: "+c.describeBody(resp, err))
	}
	if v, ok := out.(required); ok && resp.Request.Operation != string(OpDo) {
		if field := v.missing(received{resp.Body, c.Mask}); field != "" {
			return c.requestError(resp, "the response lacks "+field)
		}
	}
	if m, ok := out.(*Meeting); ok && resp.Request.ID != "" && m.ID != resp.Request.ID {
		return c.requestError(resp, "the response is about another meeting")
	}
	return nil
}

// required is a type of response with required fields. missing returns the path of the first one that
// the response lacks, or "".
type required interface {
	missing(r received) string
}

// received is a response, which is a JSON object.
type received struct {
	body []byte
	mask rest.Mask
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

// missingList is missing for a list. The list may be null, as many servers write an empty one, but an
// element may not.
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
func (c *core) describeBody(resp *rest.Response, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "a JSON " + wrong.Value + " does not fit " + cmp.Or(wrong.Field, "the response")
	}
	isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	body := bytes.TrimLeft(resp.Body, " \t\r\n\ufeff")
	if isJSON || len(body) == 0 || bytes.ContainsAny(body[:1], `{["`) {
		return fmt.Sprintf("invalid JSON (%d bytes)", len(resp.Body))
	}
	return c.Mask.Page(c.Base.Host, resp.Header, body)
}
