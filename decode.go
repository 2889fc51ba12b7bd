package minutes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"reflect"
	"strconv"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// required lists the JSON fields that a response of each type must have. They must not be
// empty, except those with a question mark. A list with a question mark may also be null, as
// many servers write an empty list: it becomes an empty list.
var required = compile(map[reflect.Type][]string{
	reflect.TypeFor[Meeting]():         {"id", "status"},
	reflect.TypeFor[MeetingPage]():     {"meetings?"},
	reflect.TypeFor[Minutes]():         {"format", "content?"},
	reflect.TypeFor[UploadTarget]():    {"upload_url"},
	reflect.TypeFor[Transcript]():      {"transcript?"},
	reflect.TypeFor[Member]():          {"id"},
	reflect.TypeFor[memberList]():      {"members?"},
	reflect.TypeFor[Project]():         {"id"},
	reflect.TypeFor[projectList]():     {"projects?"},
	reflect.TypeFor[Template]():        {"id"},
	reflect.TypeFor[templateList]():    {"templates?"},
	reflect.TypeFor[Usage]():           {"credits_remaining?", "transcribe_seconds_remaining?"},
	reflect.TypeFor[Vocabulary]():      {"terms?", "entries?"},
	reflect.TypeFor[VocabularyEntry](): {"term"},
})

type requiredField struct {
	name       string
	mayBeEmpty bool
	index      int // of the field in the Go struct
}

func compile(table map[reflect.Type][]string) map[reflect.Type][]requiredField {
	compiled := make(map[reflect.Type][]requiredField)
	for t, names := range table {
		for _, name := range names {
			name, mayBeEmpty := strings.CutSuffix(name, "?")
			for i := range t.NumField() {
				if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
					compiled[t] = append(compiled[t], requiredField{name, mayBeEmpty, i})
				}
			}
		}
	}
	return compiled
}

// maxValues limits the number of values in a response, counted by its commas. It keeps the
// memory for decoding below 64 MiB: without it, 4 MiB of "{},{},…" would take half a gigabyte.
// It allows a list of 20,000 members.
const maxValues = 100_000

// maxText limits the bytes of minutes or of a transcript. maxValues does not apply to them,
// because most of their commas are in one long text.
const maxText = 8 << 20

// decode decodes a 2xx response into out, unless out is nil. It also checks the required fields,
// unless out is the caller's own (see Client.Do).
func (c *core) decode(in rest.Request, resp *rest.Response, out any) error {
	ours := in.Route == nil
	if page, ok := out.(*MeetingPage); ok && ours {
		page.Meetings = make([]*Meeting, 0, maxLimit) // avoids growing it
	}
	problem := ""
	switch {
	case out == nil:
		return nil
	case resp.Limit > 0:
		problem = "the response is longer than " + strconv.FormatInt(resp.Limit, 10) + " bytes"
	case len(resp.Body()) == 0:
		problem = "the response is empty"
	case ours && in.MaxResponse != maxText && bytes.Count(resp.Body(), []byte(",")) >= maxValues:
		problem = "the response has over " + strconv.Itoa(maxValues) + " values"
	default:
		if err := json.Unmarshal(resp.Body(), out); err != nil {
			problem = "the response does not match the interface document: " + c.describeBody(resp, err)
		} else if ours {
			problem = missingField(reflect.ValueOf(out).Elem(), resp.Body())
		}
	}
	if m, ok := out.(*Meeting); ok && problem == "" && in.ID != "" && m.ID != in.ID {
		problem = "the response is about another meeting"
	}
	if problem != "" {
		return c.requestError(resp, problem)
	}
	return nil
}

// missingField returns the error text for the first required field that v lacks, such as
// "the response lacks meetings[0].id", or "". body is nil for an element of a list.
func missingField(v reflect.Value, body []byte) string {
	for _, f := range required[v.Type()] {
		field := v.Field(f.index)
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			if f.mayBeEmpty && fillEmpty(field, f.name, body) {
				continue
			}
			return "the response lacks " + f.name
		}
		if field.Kind() != reflect.Slice {
			continue
		}
		for i := range field.Len() {
			element := field.Index(i)
			if element.Kind() == reflect.Pointer && element.IsNil() { // a null in the list
				element = reflect.New(element.Type().Elem())
			}
			if at := missingField(reflect.Indirect(element), nil); at != "" {
				return strings.Replace(at, "lacks ", "lacks "+f.name+"["+strconv.Itoa(i)+"].", 1)
			}
		}
	}
	return ""
}

// fillEmpty reports whether body has a field whose decoded value is empty. It replaces a list
// that is null by an empty one.
func fillEmpty(field reflect.Value, name string, body []byte) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // cannot fail: body was decoded before
	value := string(fields[name])
	if field.Kind() == reflect.Slice && value != "" {
		field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		return true
	}
	return value != "" && value != "null"
}

// describeBody describes an invalid body. It quotes a page, because pages come from other servers.
// It does not quote JSON, because the service's response may contain the names of people.
func (c *core) describeBody(resp *rest.Response, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ") // "number 42" becomes "number"
		return "a JSON " + found + " does not fit " + cmp.Or(wrong.Field, "the response")
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := bytes.TrimLeft(resp.Body(), " \t\r\n\ufeff")
	if len(body) > 0 && !bytes.ContainsAny(body[:1], `{["`) && mediaType != "application/json" {
		return c.Mask.Page(c.host, resp.Header, body)
	}
	return "invalid JSON (" + cmp.Or(mediaType, "without content type") + ", " + strconv.Itoa(len(resp.Body())) + " bytes)"
}
