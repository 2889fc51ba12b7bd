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

// required lists the JSON fields that a response of each type cannot do without. They
// must not be empty. With a question mark, a field may be empty but must be there; a list
// may be null, as many servers write an empty one, and becomes empty.
var required = compile(map[reflect.Type][]string{
	reflect.TypeFor[Meeting]():         {"id", "status"},
	reflect.TypeFor[MeetingPage]():     {"meetings?"},
	reflect.TypeFor[Minutes]():         {"format", "content?"},
	reflect.TypeFor[UploadTarget]():    {"upload_url"},
	reflect.TypeFor[transcript]():      {"transcript?"},
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
	index      int // of the Go struct's field
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

// maxValues limits how many values a response has: one more than its commas. So no
// response takes 64 MiB to decode; 4 MiB of "{},{},…" would take half a gigabyte. A list
// of 20,000 members fits in.
const maxValues = 100_000

// maxText is how many bytes of minutes or of a transcript the Client reads. In one long
// text, commas do not count.
const maxText = 8 << 20

// decode reads a 2xx response into out, a pointer to a type of this package, and checks it.
func (c *core) decode(in rest.Request, resp *rest.Response, out any) error {
	if in.MaxResponse != maxText && resp.Limit == 0 && bytes.Count(resp.Body(), []byte(",")) >= maxValues {
		return c.badResponseError(in, resp, "the response has over "+strconv.Itoa(maxValues)+" values")
	}
	if page, ok := out.(*MeetingPage); ok {
		page.Meetings = make([]*Meeting, 0, maxLimit) // so that it need not grow
	}
	if err := c.unmarshal(in, resp, out); err != nil {
		return err
	}
	if field := missingField(reflect.ValueOf(out).Elem(), resp.Body()); field != "" {
		return c.badResponseError(in, resp, "the response lacks "+field)
	}
	switch out := out.(type) {
	case *Meeting:
		if in.ID != "" && out.ID != in.ID {
			return c.badResponseError(in, resp, anotherMeeting)
		}
		c.maskMeetings(out)
	case *MeetingPage:
		c.maskMeetings(out.Meetings...)
	}
	return nil
}

const anotherMeeting = "the response is about another meeting"

// unmarshal reads the body of a 2xx response into out.
func (c *core) unmarshal(in rest.Request, resp *rest.Response, out any) error {
	switch {
	case resp.Limit > 0:
		return c.badResponseError(in, resp, "the response is longer than "+strconv.FormatInt(resp.Limit, 10)+" bytes")
	case len(resp.Body()) == 0:
		return c.badResponseError(in, resp, "the response is empty")
	}
	if err := json.Unmarshal(resp.Body(), out); err != nil {
		return c.badResponseError(in, resp, "the response does not match the interface: "+describeBody(resp, err))
	}
	return nil
}

// missingField returns the first required field that a response lacks, such as
// "meetings[0].id", or "". For an element of a list, body is nil.
func missingField(v reflect.Value, body []byte) string {
	for _, f := range required[v.Type()] {
		field := v.Field(f.index)
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			if f.mayBeEmpty && fillEmpty(field, f.name, body) {
				continue
			}
			return f.name
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
				return f.name + "[" + strconv.Itoa(i) + "]." + at
			}
		}
	}
	return ""
}

// fillEmpty reports whether body has the field, which decoded to nothing. It makes a null
// list an empty one.
func fillEmpty(field reflect.Value, name string, body []byte) bool {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // body was decoded before
	value := string(fields[name])
	if field.Kind() == reflect.Slice && value != "" {
		field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		return true
	}
	return value != "" && value != "null"
}

// maskMeetings masks the API key in the fields of a meeting that errors and logs show.
// It ignores short keys, since an id may contain one by chance.
func (c *core) maskMeetings(meetings ...*Meeting) {
	const shortest = 16
	if len(c.Mask[0]) < shortest {
		return
	}
	for _, m := range meetings {
		m.ID, m.Status = c.Mask.Text(m.ID), Status(c.Mask.Text(string(m.Status)))
	}
}

// describeBody says what is wrong with a body without quoting it.
func describeBody(resp *rest.Response, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ") // after "number" come its digits
		if wrong.Field == "" {
			return "a JSON " + found + " where an object should be"
		}
		return "a JSON " + found + " that does not fit the field " + strconv.Quote(wrong.Field)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return "no valid JSON (" + cmp.Or(mediaType, "no content type") + ", " + strconv.Itoa(len(resp.Body())) + " bytes)"
}
