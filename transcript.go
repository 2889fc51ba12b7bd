package minutes

import (
	"context"
	"iter"
	"regexp"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Transcript returns the transcript: plain text with a label, such as spk_0, before each turn (section
// 2.7). The labels only distinguish the speakers, whose names are in the minutes; [Transcript.Turns]
// splits the text at them. Assumed: method, path and the scope minutes:read; see [WithRoute].
//
// Errors: [ErrTranscriptNotReady], [ErrNotFound] (no such meeting, or the assumed path is wrong).
func (s *MeetingsService) Transcript(ctx context.Context, id string) (*Transcript, error) {
	return do[Transcript](ctx, s.core, rest.Request{Operation: route.MeetingsTranscript, ID: id, MaxBody: maxText})
}

// Transcript is what the participants said (section 2.7).
type Transcript struct {
	Text string `json:"transcript"` // plain text with a label, such as spk_0, before each turn
}

func (t *Transcript) missing(sent fields) string {
	if t.Text == "" && !sent.has("transcript", false) {
		return "transcript"
	}
	return ""
}

// Turn is the text of one speaker, up to the next label.
type Turn struct {
	Speaker string // the label, such as spk_0; "" for text before the first label
	Text    string // with line breaks, but without the label and the surrounding white space
}

// label finds the beginning of a turn, with the brackets and stars around the label.
var label = regexp.MustCompile(`(?m)^[ \t]*[[(<{*]*(spk_[0-9]+)\b[])>}*:]*|\s[[(<{*]*(spk_[0-9]+)[])>}*]*:[])>}*:]*`)

// Turns splits the transcript into turns, in order. A turn begins with a label, spk_<n>, at the beginning of
// a line, or before a colon, even if the label is in brackets or between stars (assumed, because
// section 2.7 only shows the labels).
func (t *Transcript) Turns() iter.Seq[Turn] {
	transcript := t.Text
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
