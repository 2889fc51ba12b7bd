package minutes_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestTurns_SplitsAtLabels(t *testing.T) {
	t.Parallel()
	two := []minutes.Turn{{Speaker: "spk_0", Text: "Good morning."}, {Speaker: "spk_12", Text: "Morning."}}
	for name, test := range map[string]struct {
		transcript string
		want       []minutes.Turn
	}{
		"nothing":                {"", nil},
		"white space":            {" \n\t\n", nil},
		"with colons":            {"spk_0: Good morning.\nspk_12: Morning.\n", two},
		"without":                {"spk_0 Good morning.\r\nspk_12 Morning.", two},
		"on lines of their own":  {"\n\nspk_0\nGood morning.\n\nspk_12\nMorning.\n", two},
		"in brackets":            {"[spk_0] Good morning.\n  [spk_12]: Morning.", two},
		"in Markdown":            {"**spk_0:** Good morning.\n\n**spk_12:** Morning.", two},
		"as tags":                {"<spk_0>Good morning.\n<spk_12>Morning.", two},
		"on one line":            {"spk_0: Good morning. spk_12: Morning.", two},
		"no space":               {"spk_0:Good morning.\nspk_12:Morning.", two},
		"no label":               {"Good morning.\nMorning.", []minutes.Turn{{Text: "Good morning.\nMorning."}}},
		"text before":            {"Weekly\n\nspk_0: Hello.", []minutes.Turn{{Text: "Weekly"}, {Speaker: "spk_0", Text: "Hello."}}},
		"several lines":          {"spk_0: One.\n\nTwo: three.\nspk_0: Four.", []minutes.Turn{{Speaker: "spk_0", Text: "One.\n\nTwo: three."}, {Speaker: "spk_0", Text: "Four."}}},
		"silence":                {"spk_0:\nspk_1:", []minutes.Turn{{Speaker: "spk_0"}, {Speaker: "spk_1"}}},
		"a label that is spoken": {"spk_0: Is spk_1 there?", []minutes.Turn{{Speaker: "spk_0", Text: "Is spk_1 there?"}}},
		"a label spoken first":   {"spk_0: spk_1 is here.", []minutes.Turn{{Speaker: "spk_0", Text: "spk_1 is here."}}},
		"similar to a label":     {"spk_: a\nspk_x: b\nxspk_1: c\nspk_1st: d\nspk_1_2: e", []minutes.Turn{{Text: "spk_: a\nspk_x: b\nxspk_1: c\nspk_1st: d\nspk_1_2: e"}}},
		"invalid UTF-8":          {"spk_0: \xff\nspk_1: b", []minutes.Turn{{Speaker: "spk_0", Text: "\xff"}, {Speaker: "spk_1", Text: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, slices.Collect((&minutes.Transcript{Text: test.transcript}).Turns()))
			for turn := range (&minutes.Transcript{Text: test.transcript}).Turns() { // the loop may be left
				require.Equal(t, test.want[0], turn)
				break
			}
		})
	}
}

// The joined turns contain everything except the space around labels and turns.
func FuzzTurns(f *testing.F) {
	for _, seed := range []string{"", "spk_0: Good morning.\nspk_1: Morning.\n", "**spk_0:** a [spk_1]: b\nspk_2 c", "spk_0 spk_1:]spk_2*:", "\xffspk_0:\x85spk_1"} {
		f.Add(seed)
	}
	bare := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || strings.ContainsRune("[](){}<>*:", r) {
				return -1
			}
			return r
		}, s)
	}
	f.Fuzz(func(t *testing.T, transcript string) {
		var joined strings.Builder
		n := 0
		for turn := range (&minutes.Transcript{Text: transcript}).Turns() {
			require.True(t, turn.Speaker != "" || n == 0 && turn.Text != "", "%q", turn)
			require.Equal(t, strings.TrimSpace(turn.Text), turn.Text)
			require.Contains(t, transcript, turn.Text)
			joined.WriteString(turn.Speaker + turn.Text)
			n++
		}
		require.Equal(t, bare(transcript), bare(joined.String()))
		require.GreaterOrEqual(t, strings.Count(transcript, "spk_"), n-1)
	})
}

func TestTurns_SplitsTheServicesTranscript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		id := testkit.Uploaded(t, c, "Weekly").ID
		_, err := c.Meetings.Wait(t.Context(), id, nil)
		require.NoError(t, err)
		transcript, err := c.Meetings.Transcript(t.Context(), id)
		require.NoError(t, err)
		turns := slices.Collect(transcript.Turns())
		require.Len(t, turns, strings.Count(transcript.Text, "spk_"))
		for _, turn := range turns {
			require.Regexp(t, `^spk_\d+$`, turn.Speaker)
			require.NotEmpty(t, turn.Text)
		}
	})
}
