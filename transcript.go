package minutes

import (
	"context"
	"iter"
	"regexp"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Transcript returns the transcript: plain text, with a label such as spk_0 before
// each turn (section 2.7). Labels only show that speakers differ; the minutes name
// them. There are no timestamps. [Turns] splits a transcript. Method, path and
// scope (minutes:read) are assumed; see [WithRoute].
//
// Errors: ErrTranscriptNotReady, ErrNotFound.
func (s *MeetingsService) Transcript(ctx context.Context, id string) (string, error) {
	in := rest.Request{Operation: route.MeetingsTranscript, ID: id, MaxResponse: maxText}
	return pick(ctx, s.core(), in, func(t *transcript) string { return t.Text })
}

type transcript struct {
	Text string `json:"transcript"`
}

// Turn is the text of one speaker until the next speaker.
type Turn struct {
	Speaker string // the label, such as spk_0; "" for text before the first label
	Text    string // without the label and the white space around; its line breaks stay
}

// label finds where a turn begins, with the brackets and stars around the label.
var label = regexp.MustCompile(`(?m)^[ \t]*[[(<{*]*(spk_[0-9]+)\b[])>}*:]*|\s[[(<{*]*(spk_[0-9]+)[])>}*]*:[])>}*:]*`)

// Turns takes a transcript apart, in its order. The interface shows the labels,
// spk_<n>, and that each turn has one (section 2.7), but not the form of a turn:
// a turn begins with a label at the beginning of a line, or with one that a colon
// follows (assumed). A label may stand in brackets or between stars. What comes
// before the first label, which may be all, is a Turn without a speaker; nothing
// but labels, what surrounds them and white space is left out. A speaker who goes
// on under a label of their own again has another Turn. There are no timestamps.
func Turns(transcript string) iter.Seq[Turn] {
	return func(yield func(Turn) bool) {
		speaker, from := "", 0
		give := func(to int) bool {
			text := strings.TrimSpace(transcript[from:to])
			return speaker == "" && text == "" || yield(Turn{speaker, text})
		}
		for _, at := range label.FindAllStringSubmatchIndex(transcript, -1) {
			if !give(at[0]) {
				return
			}
			speaker, from = transcript[max(at[2], at[4]):max(at[3], at[5])], at[1]
		}
		give(len(transcript))
	}
}
