// Package strictjson reads the JSON that people write for the in-memory fake: worlds, scripts and faults.
// It is apart from package minutestest because minutes-fake uses it, too, and no user needs it.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Decode reads exactly one JSON value into a pointer. A field that its type does not have is an
// error, because a typing error must not pass for a default. The error begins with the path of what is
// wrong. A byte order mark is skipped.
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

// located returns the error of package json with the path of what is wrong, which that does not tell.
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
type misfitError struct{ path, problem string }

func (e *misfitError) Error() string {
	path := strings.TrimPrefix(e.path, ".")
	if path == "" {
		return e.problem
	}
	return path + ": " + e.problem
}

// below returns the error as one of the value that contains this one under a field or an index.
func (e *misfitError) below(step string) *misfitError {
	return &misfitError{step + e.path, e.problem}
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

// misfit finds the first place at which a JSON value does not fit a type, or returns nil.
func misfit(t reflect.Type, value any) *misfitError {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, isObject := value.(map[string]any)
	array, isArray := value.([]any)
	kind := t.Kind()
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()),
		pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return misread(t, value)
	case isObject && (kind == reflect.Struct || kind == reflect.Map):
		return misfitField(t, object)
	case isArray && kind == reflect.Slice:
		return misfitElement(t, array)
	}
	if unmarshal(t, value) != nil {
		return &misfitError{"", expected[kind] + " expected"}
	}
	return nil
}

// misread returns the error of a type that reads itself.
func misread(t reflect.Type, value any) *misfitError {
	err := unmarshal(t, value)
	if inner, ok := errors.AsType[*misfitError](err); ok {
		return inner
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &misfitError{"", "a string expected"}
	}
	if err != nil {
		return &misfitError{"", err.Error()}
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
			return &misfitError{"", fmt.Sprintf("unknown field %q", name)}
		}
		wrong := misfit(inner, object[name])
		if wrong != nil {
			return wrong.below("." + name)
		}
	}
	return nil
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

// typeOf returns the type of a field of a struct, or of an element of a map, or nil. Like package json, it
// disregards case.
func typeOf(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag != "-" && strings.EqualFold(tag, name) {
			return field.Type
		}
	}
	return nil
}

// Duration is a time.Duration that JSON holds as text, such as "20ms" or "1m30s".
type Duration time.Duration

// MarshalText returns the duration as [time.Duration.String] does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what [time.ParseDuration] does.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 20ms or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}
