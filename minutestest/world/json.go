package world

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Decode reads exactly one JSON value into a pointer. A field that its type does not have is an
// error, because a typing error must not pass for a default. A byte order mark is skipped.
func Decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, after := dec.Token(); !errors.Is(after, io.EOF) {
			return errors.New("there is more after the JSON value")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := strings.TrimPrefix(wrong.Field, "plainScript.") // which JSON does not show
		return fmt.Errorf("%s: a %s does not fit here", cmp.Or(field, "the JSON value"), wrong.Value)
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int(wrong.Offset), len(data))], []byte("\n")), err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON value is not complete")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
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

type stagesJSON struct {
	Prepare    Duration `json:"prepare,omitempty"`
	Transcribe Duration `json:"transcribe,omitempty"`
	Write      Duration `json:"write,omitempty"`
}

// MarshalJSON writes durations as text.
func (s Stages) MarshalJSON() ([]byte, error) {
	return json.Marshal(stagesJSON{Duration(s.Prepare), Duration(s.Transcribe), Duration(s.Write)})
}

// UnmarshalJSON reads durations as text. Stages that do not exist are errors.
func (s *Stages) UnmarshalJSON(data []byte) error {
	var form stagesJSON
	if err := Decode(data, &form); err != nil {
		return fmt.Errorf("stages: %w", err)
	}
	*s = Stages{time.Duration(form.Prepare), time.Duration(form.Transcribe), time.Duration(form.Write)}
	return nil
}

type plainScript Script

type scriptJSON struct {
	plainScript
	Duration    Duration `json:"duration,omitempty"`
	ListedAfter Duration `json:"listed_after,omitempty"`
	ClockSkew   Duration `json:"clock_skew,omitempty"`
}

// MarshalJSON writes durations as text.
func (s Script) MarshalJSON() ([]byte, error) {
	return json.Marshal(scriptJSON{plainScript(s), Duration(s.Duration), Duration(s.ListedAfter), Duration(s.ClockSkew)})
}

// UnmarshalJSON reads durations as text. Unknown fields are errors.
func (s *Script) UnmarshalJSON(data []byte) error {
	var form scriptJSON
	if err := Decode(data, &form); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	*s = Script(form.plainScript)
	s.Duration = time.Duration(form.Duration)
	s.ListedAfter = time.Duration(form.ListedAfter)
	s.ClockSkew = time.Duration(form.ClockSkew)
	return nil
}
