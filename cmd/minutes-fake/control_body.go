package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bodies longer than longBody are read one at a time, because decoding takes many
// times the memory of the text.
const (
	maxBody   = 4 << 20
	longBody  = 16 << 10
	maxValues = 1 << 17
)

// values is how many JSON values data has, or a little more.
func values(data []byte) (n int) {
	for _, c := range data {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	}
	return n
}

// body reads a request's body as one JSON value, without unknown fields.
func body(r *http.Request, into any) error {
	var text bytes.Buffer
	text.Grow(int(min(max(r.ContentLength, 0), maxBody)) + bytes.MinRead)
	_, err := text.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	data := text.Bytes()
	switch {
	case err != nil:
		return bad("", "the body could not be read: %v", err)
	case len(data) > maxBody:
		_, _ = io.CopyN(io.Discard, r.Body, 16*maxBody) // many clients read nothing before they have sent it all
		return &problem{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body is longer than %d bytes", maxBody)}
	case values(data) > maxValues:
		return &problem{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body has more than %d values", maxValues)}
	case len(bytes.TrimSpace(data)) == 0:
		return bad("", "a JSON body expected")
	case !utf8.Valid(data):
		return bad("", "the body is not UTF-8")
	case string(bytes.TrimSpace(data)) == "null":
		return bad("", "a JSON object expected")
	}
	return decode("", data, into)
}

// decode reads the JSON of a field into a value, without unknown fields. A Decoder
// would copy data several times.
func decode(field string, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return bad(field, "%s", positioned(data, wrong))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return bad(join(field, wrong.Field), "a %s does not fit here", wrong.Value)
	}
	if err != nil {
		return badIn(field, err)
	}
	if name := unknownField(data, reflect.TypeOf(into).Elem()); name != "" {
		return bad(join(field, name), "no such field")
	}
	return nil
}

// positioned names the line and the column where data is not JSON.
func positioned(data []byte, wrong *json.SyntaxError) string {
	before := data[:max(wrong.Offset-1, 0)]
	line, start := 1+bytes.Count(before, []byte("\n")), 1+bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d: %v", line, 1+utf8.RuneCount(before[start:]), wrong)
}

// unknownField returns a name in the object data that is no field of t. Types that
// check this in UnmarshalJSON, and maps, have no unknown fields.
func unknownField(data []byte, t reflect.Type) string {
	var object map[string]ignored
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || json.Unmarshal(data, &object) != nil {
		return ""
	}
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		maps.DeleteFunc(object, func(name string, _ ignored) bool { return strings.EqualFold(name, tag) })
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		return name
	}
	return ""
}

// ignored is a JSON value that is not kept.
type ignored struct{}

func (ignored) UnmarshalJSON([]byte) error { return nil }

// badIn returns the error for a field. The text of err may begin with a path
// within the field.
func badIn(field string, err error) *problem {
	place, text, _ := placed(withoutOrigin(err))
	return bad(join(field, place), "%s", text)
}

func join(field, inner string) string { return strings.Trim(field+"."+inner, ".") }

// placed splits an error's text that begins with a path, as in
// "members[1].status: …".
func placed(text string) (place, rest string, ok bool) {
	place, rest, ok = strings.Cut(text, ": ")
	if !ok || place == "" || strings.ContainsFunc(place, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_.[]", r)
	}) {
		return "", text, false
	}
	return place, rest, true
}
