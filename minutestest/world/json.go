package world

import (
	"encoding/json"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
)

// stagesJSON is [Stages] with durations as text.
type stagesJSON struct {
	Prepare    strictjson.Duration `json:"prepare,omitzero"`
	Transcribe strictjson.Duration `json:"transcribe,omitzero"`
	Write      strictjson.Duration `json:"write,omitzero"`
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
	Duration     strictjson.Duration `json:"duration,omitzero"`
	ListedAfter  strictjson.Duration `json:"listed_after,omitzero"`
	VisibleAfter strictjson.Duration `json:"visible_after,omitzero"`
	NoticedAfter strictjson.Duration `json:"noticed_after,omitzero"`
	ClockSkew    strictjson.Duration `json:"clock_skew,omitzero"`
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
