package minutestest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// stagesJSON is the form of Stages as JSON.
type stagesJSON struct {
	Prepare    duration `json:"prepare,omitempty"`
	Transcribe duration `json:"transcribe,omitempty"`
	Write      duration `json:"write,omitempty"`
}

// MarshalJSON writes durations as text.
func (s Stages) MarshalJSON() ([]byte, error) {
	return json.Marshal(stagesJSON{duration(s.Prepare), duration(s.Transcribe), duration(s.Write)})
}

// UnmarshalJSON reads durations as text and rejects unknown stages.
func (s *Stages) UnmarshalJSON(data []byte) error {
	var form stagesJSON
	if err := strictUnmarshal(data, &form); err != nil {
		return err
	}
	*s = Stages{time.Duration(form.Prepare), time.Duration(form.Transcribe), time.Duration(form.Write)}
	return nil
}

// duration is a time.Duration that JSON holds as text.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 20ms or 1m30s", text)
	}
	*d = duration(v)
	return nil
}

// strictUnmarshal decodes exactly one JSON value. It rejects unknown fields and
// values that two readers might decode differently: a typing error must not
// pass for a default.
func strictUnmarshal(data []byte, into any) error {
	value, err := parse(data)
	if err != nil {
		return err
	}
	if err := misfit("", value, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// parse returns the one value that data holds: objects as maps, and numbers as
// they are written.
func parse(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("line %d: not UTF-8", lineOf(data, func(rest []byte) bool { return !utf8.Valid(rest) }))
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, new(struct{}))); ok {
		before := data[:max(wrong.Offset-1, 0)]
		line, start := 1+bytes.Count(before, []byte("\n")), 1+bytes.LastIndexByte(before, '\n')
		return nil, fmt.Errorf("line %d, column %d: %w", line, 1+utf8.RuneCount(before[start:]), wrong)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return parseValue(dec, "")
}

// lineOf is the first line of data, from 1, that is as asked.
func lineOf(data []byte, is func(line []byte) bool) int {
	n := 1
	for line := range bytes.Lines(data) {
		if is(line) {
			break
		}
		n++
	}
	return n
}

// parseValue reads the next value of valid JSON.
func parseValue(dec *json.Decoder, place string) (any, error) {
	token, err := dec.Token()
	switch token {
	case json.Delim('['):
		list := []any{}
		for dec.More() && err == nil {
			var element any
			element, err = parseValue(dec, fmt.Sprintf("%s[%d]", place, len(list)))
			list = append(list, element)
		}
		_, _ = dec.Token()
		return list, err
	case json.Delim('{'):
		return parseObject(dec, place)
	}
	return token, err
}

// parseObject reads the rest of an object. Names count without regard to case,
// as encoding/json takes them.
func parseObject(dec *json.Decoder, place string) (any, error) {
	object, given := map[string]any{}, map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		inner, folded := place+"."+name, strings.ToLower(name)
		if given[folded] {
			return nil, fmt.Errorf("%s: given twice", strings.TrimPrefix(inner, "."))
		}
		given[folded] = true
		if object[name], err = parseValue(dec, inner); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return object, err
}

// misfit finds the first path at which a JSON value does not fit a type: an
// unknown field, a wrong kind of value, a text that its type rejects.
func misfit(place string, value any, t reflect.Type) error {
	if t == reflect.TypeFor[Stages]() {
		t = reflect.TypeFor[stagesJSON]()
	}
	wrong := func(want string) error {
		text := want + " expected"
		if number, ok := value.(json.Number); ok {
			text += ", not " + number.String()
		}
		if place == "" {
			return errors.New(text)
		}
		return fmt.Errorf("%s: %s", strings.TrimPrefix(place, "."), text)
	}
	if value == nil {
		return nil
	}
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); ok {
		s, isString := value.(string)
		if !isString {
			return wrong("a text")
		}
		if err := text.UnmarshalText([]byte(s)); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(place, "."), err)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return misfit(place, value, t.Elem())
	case reflect.Struct:
		object, ok := value.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		return misfits(place, object, t)
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if err := misfit(place+"."+name, object[name], t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return wrong("a list")
		}
		for i, element := range list {
			if err := misfit(fmt.Sprintf("%s[%d]", place, i), element, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			return wrong("a text")
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.Int, reflect.Int64:
		number, ok := value.(json.Number)
		if _, err := strconv.ParseInt(number.String(), 10, 64); !ok || err != nil {
			return wrong("a whole number")
		}
	}
	return nil
}

// misfits is misfit for the fields of an object.
func misfits(place string, object map[string]any, t reflect.Type) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, ok := t.FieldByNameFunc(func(goName string) bool {
			f, _ := t.FieldByName(goName)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return strings.EqualFold(tag, name)
		})
		if !ok {
			return fmt.Errorf("%s: no such field", strings.TrimPrefix(place+"."+name, "."))
		}
		if err := misfit(place+"."+name, object[name], field.Type); err != nil {
			return err
		}
	}
	return nil
}
