package world

import (
	"encoding/json"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
)

// stagesJSON is [Stages] with durations as text.
type stagesJSON struct {
	Prepare    strictjson.Duration `json:"prepare,omitempty"`
	Transcribe strictjson.Duration `json:"transcribe,omitempty"`
	Write      strictjson.Duration `json:"write,omitempty"`
}

// MarshalJSON writes durations as text.
func (s Stages) MarshalJSON() ([]byte, error) {
	return json.Marshal(stagesJSON{
		Prepare:    strictjson.Duration(s.Prepare),
		Transcribe: strictjson.Duration(s.Transcribe),
		Write:      strictjson.Duration(s.Write),
	})
}

// UnmarshalJSON reads durations as text. Stages that do not exist are errors.
func (s *Stages) UnmarshalJSON(data []byte) error {
	var form stagesJSON
	err := strictjson.Decode(data, &form)
	s.Prepare = time.Duration(form.Prepare)
	s.Transcribe = time.Duration(form.Transcribe)
	s.Write = time.Duration(form.Write)
	return err
}

// plainScript is [Script] without its methods.
type plainScript Script

// scriptJSON is [Script] with durations as text.
type scriptJSON struct {
	plainScript
	Duration     strictjson.Duration `json:"duration,omitempty"`
	ListedAfter  strictjson.Duration `json:"listed_after,omitempty"`
	VisibleAfter strictjson.Duration `json:"visible_after,omitempty"`
	NoticedAfter strictjson.Duration `json:"noticed_after,omitempty"`
	ClockSkew    strictjson.Duration `json:"clock_skew,omitempty"`
}

// MarshalJSON writes durations as text.
func (s Script) MarshalJSON() ([]byte, error) {
	return json.Marshal(scriptJSON{
		plainScript:  plainScript(s),
		Duration:     strictjson.Duration(s.Duration),
		ListedAfter:  strictjson.Duration(s.ListedAfter),
		VisibleAfter: strictjson.Duration(s.VisibleAfter),
		NoticedAfter: strictjson.Duration(s.NoticedAfter),
		ClockSkew:    strictjson.Duration(s.ClockSkew),
	})
}

// UnmarshalJSON reads durations as text. Unknown fields are errors.
func (s *Script) UnmarshalJSON(data []byte) error {
	var form scriptJSON
	err := strictjson.Decode(data, &form)
	*s = Script(form.plainScript)
	s.Duration = time.Duration(form.Duration)
	s.ListedAfter = time.Duration(form.ListedAfter)
	s.VisibleAfter = time.Duration(form.VisibleAfter)
	s.NoticedAfter = time.Duration(form.NoticedAfter)
	s.ClockSkew = time.Duration(form.ClockSkew)
	return err
}
