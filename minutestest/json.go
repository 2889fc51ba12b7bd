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
	"strings"
	"time"
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

// UnmarshalJSON reads durations as text and refuses unknown stages.
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
		return fmt.Errorf("%q is no duration such as 20ms or 1m30s", text)
	}
	*d = duration(v)
	return nil
}

// strictUnmarshal decodes exactly one JSON value, and refuses fields that its
// type does not have: a typing error must not pass for a default.
func strictUnmarshal(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var value any
		if json.Unmarshal(data, &value) == nil {
			if place := misfit("", value, reflect.TypeOf(into).Elem()); place != nil {
				return place
			}
		}
		return err
	}
	if dec.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}

// misfit finds the first place where a JSON value does not fit a type: an
// unknown field, a wrong kind of value, a text that its type does not take.
func misfit(place string, value any, t reflect.Type) error {
	if t == reflect.TypeFor[Stages]() {
		t = reflect.TypeFor[stagesJSON]()
	}
	wrong := func(want string) error {
		return fmt.Errorf("%s: %s expected", strings.TrimPrefix(place, "."), want)
	}
	if value == nil {
		return nil
	}
	if text, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
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
		if n, ok := value.(float64); !ok || n != float64(int64(n)) {
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
