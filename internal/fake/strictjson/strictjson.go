// Package strictjson reads the JSON that people write for the in-memory fake: worlds, scripts and faults.
// It is apart from package minutestest because minutes-fake uses it, too, and no user needs it.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Decode reads exactly one JSON value into a pointer. A field that its type does not have is an
// error, because a typing error must not pass for a default. The error begins with the path of the
// mistake. A byte order mark is skipped.
func Decode(data []byte, into any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		_, after := dec.Token()
		if !errors.Is(after, io.EOF) {
			return errors.New("there is more after the JSON value")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(data[:min(int(wrong.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: %w", line, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON value is not complete")
	}
	return located(data, reflect.TypeOf(into), err)
}

// located adds the path of the mistake to an error of package json, which does not contain it.
func located(data []byte, t reflect.Type, err error) error {
	var value any
	if json.Unmarshal(data, &value) != nil {
		return err
	}
	wrong := misfit(t, value)
	if wrong == nil {
		return err // from a type that reads itself
	}
	return wrong
}

// misfitError says where a value does not fit, and why.
type misfitError struct {
	path    string
	problem string
	// unknown is the field that an object does not have, if that is the problem.
	unknown string
	// place is where there is such a field, as in "in match"; "": nowhere nearby.
	place string
}

func (e *misfitError) Error() string {
	text := e.problem
	if e.place != "" {
		text += "; there is one " + e.place
	}
	path := strings.TrimPrefix(e.path, ".")
	if path == "" {
		return text
	}
	return path + ": " + text
}

// below returns the error as one of the value that contains this one under a field or an index.
func (e *misfitError) below(step string) *misfitError {
	outer := *e
	outer.path = step + e.path
	return &outer
}

// expected has what fits a type of each kind that the fake's JSON has.
var expected = map[reflect.Kind]string{
	reflect.Struct:  "an object",
	reflect.Map:     "an object",
	reflect.Slice:   "an array",
	reflect.String:  "a string",
	reflect.Bool:    "true or false",
	reflect.Int:     "a whole number",
	reflect.Int64:   "a whole number",
	reflect.Float64: "a number",
}

// expectedBy has what fits the types of which a kind says too little.
var expectedBy = map[reflect.Type]string{
	reflect.TypeFor[minutes.UnixTime](): "Unix seconds, such as 1798761600,",
}

// misfit finds the first place at which a JSON value does not fit a type, or returns nil.
func misfit(t reflect.Type, value any) *misfitError {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, isObject := value.(map[string]any)
	array, isArray := value.([]any)
	kind := t.Kind()
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return misread(t, value)
	case isObject && (kind == reflect.Struct || kind == reflect.Map):
		return misfitField(t, object)
	case isArray && kind == reflect.Slice:
		return misfitElement(t, array)
	}
	if unmarshal(t, value) != nil {
		return &misfitError{problem: cmp.Or(expectedBy[t], expected[kind]) + " expected"}
	}
	return nil
}

// misread returns the error of a type that reads itself.
func misread(t reflect.Type, value any) *misfitError {
	err := unmarshal(t, value)
	if inner, ok := errors.AsType[*misfitError](err); ok {
		return inner
	}
	if err != nil {
		return &misfitError{problem: err.Error()}
	}
	return nil
}

func unmarshal(t reflect.Type, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, reflect.New(t).Interface())
}

func misfitField(t reflect.Type, object map[string]any) *misfitError {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner := typeOf(t, name)
		if inner == nil {
			return unknownField(t, name)
		}
		wrong := misfit(inner, object[name])
		if wrong == nil {
			continue
		}
		wrong = wrong.below("." + name)
		if wrong.unknown != "" && wrong.place == "" {
			wrong.place = place(t, name, wrong.unknown)
		}
		return wrong
	}
	return nil
}

// unknownField returns the error of an object with a field that its type does not have.
func unknownField(t reflect.Type, name string) *misfitError {
	var known []string
	for _, field := range fieldsOf(t) {
		known = append(known, field.name)
	}
	return &misfitError{
		problem: fmt.Sprintf("unknown field %q; known here: %s", name, cmp.Or(strings.Join(known, ", "), "none")),
		unknown: name,
		place:   place(t, "", name),
	}
}

// place says where there is a field that t, or the object under one of its fields, does not have: in
// t itself, or in another object below t. "" means nowhere.
func place(t reflect.Type, object, name string) string {
	if typeOf(t, name) != nil {
		return "beside " + object
	}
	path := pathTo(t, name)
	if path != "" {
		return "in " + path
	}
	return ""
}

// pathTo returns the path of the first object in a value of type t that has a field, or "".
func pathTo(t reflect.Type, name string) string {
	for _, field := range fieldsOf(t) {
		inner := field.of
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct {
			continue
		}
		if typeOf(inner, name) != nil {
			return field.name
		}
		deeper := pathTo(inner, name)
		if deeper != "" {
			return field.name + "." + deeper
		}
	}
	return ""
}

func misfitElement(t reflect.Type, array []any) *misfitError {
	for i, element := range array {
		wrong := misfit(t.Elem(), element)
		if wrong != nil {
			return wrong.below(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

// field is a field of an object, by its name in JSON.
type field struct {
	name string
	of   reflect.Type
}

// fieldsOf returns the fields of a struct that JSON has, in order.
func fieldsOf(t reflect.Type) (list []field) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			list = append(list, field{name, f.Type})
		}
	}
	return list
}

// typeOf returns the type of a field of a struct, or of an element of a map, or nil. Like package json, it
// disregards case.
func typeOf(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, field := range fieldsOf(t) {
		if strings.EqualFold(field.name, name) {
			return field.of
		}
	}
	return nil
}

// Duration is a time.Duration that JSON holds as text, such as "20ms" or "1m30s".
type Duration time.Duration

// MarshalText returns the duration as [time.Duration.String] does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalJSON reads what [time.ParseDuration] does.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as package json has it
		return nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	v, invalid := time.ParseDuration(text)
	if err != nil || invalid != nil {
		return fmt.Errorf(`%s is not a duration such as "20ms", "1m30s" or "168h"`, data)
	}
	*d = Duration(v)
	return nil
}
