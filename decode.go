package minutes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// maxText limits the bytes of minutes or of a transcript.
const maxText = 8 << 20

// decode decodes a 2xx response into out, unless out is nil. Required fields are checked, too, unless
// out is a caller's type; see Client.Do.
func (c *core) decode(resp *rest.Response, out any) error {
	if out == nil {
		return nil
	}
	if problem := c.problemOf(resp, out); problem != "" {
		return c.requestError(resp, problem)
	}
	switch out := out.(type) { // errors quote statuses
	case *Meeting:
		c.maskStatus(out)
	case *MeetingPage:
		for _, m := range out.Meetings {
			c.maskStatus(m)
		}
	}
	return nil
}

func (c *core) maskStatus(m *Meeting) {
	if m != nil { // Do does not reject a null in a list
		m.Status = Status(c.Mask.Text(string(m.Status)))
	}
}

// problemOf decodes the response into out, and returns why that is impossible, or "".
func (c *core) problemOf(resp *rest.Response, out any) string {
	switch {
	case resp.Limit > 0:
		return "the response is longer than " + strconv.FormatInt(resp.Limit, 10) + " bytes"
	case len(resp.Body) == 0:
		return "the response is empty"
	}
	if err := json.Unmarshal(resp.Body, out); err != nil {
		return "the response does not match the API reference: " + c.describeBody(resp, err)
	}
	if v, ok := out.(required); ok && resp.Request.Operation != route.Operation(OpDo) {
		if missing := v.missing(resp.Body); missing != "" {
			return "the response lacks " + missing
		}
	}
	if m, ok := out.(*Meeting); ok && resp.Request.ID != "" && m.ID != resp.Request.ID {
		return "the response is about another meeting"
	}
	return ""
}

// required is a type of response with required fields. missing returns the path of the first one
// that the response lacks, or "". For a field that may be empty, missing asks sent; for a list that
// is null, as many servers write an empty list, it sets an empty list.
type required interface {
	missing(sent fields) string
}

// fields is a JSON object, which was decoded before.
type fields []byte

// has reports whether the object has a field. A null counts only if that is allowed.
func (f fields) has(name string, nullAllowed bool) bool {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(f, &all)
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

// missingList is missing for a list in a response, whose elements have required fields, too.
func missingList[T any, P interface {
	*T
	required
}](name string, list *[]P, sent fields) string {
	if *list == nil {
		if !sent.has(name, true) {
			return name
		}
		*list = []P{}
	}
	for i, element := range *list {
		field := "id" // which a null lacks
		if element != nil {
			field = element.missing(nil)
		}
		if field != "" {
			return name + "[" + strconv.Itoa(i) + "]." + field
		}
	}
	return ""
}

// describeBody describes an invalid body. It quotes a page, because pages come from other servers.
// It does not quote JSON, because the service's response may contain the names of people.
func (c *core) describeBody(resp *rest.Response, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ") // "number 42" becomes "number"
		return "a JSON " + found + " does not fit " + cmp.Or(wrong.Field, "the response")
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := bytes.TrimLeft(resp.Body, " \t\r\n\ufeff")
	if len(body) > 0 && !bytes.ContainsAny(body[:1], `{["`) && mediaType != "application/json" {
		return c.Mask.Page(c.Base.Host, resp.Header, body)
	}
	return "invalid JSON (" + cmp.Or(mediaType, "without content type") + ", " + strconv.Itoa(len(resp.Body)) + " bytes)"
}
