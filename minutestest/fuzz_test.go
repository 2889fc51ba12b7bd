package minutestest_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A Server of a fuzz test serves all of its inputs.
func FuzzServer(f *testing.F) {
	srv := minutestest.NewServer(f)
	f.Add("Weekly")
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, title string) {
		client := srv.Client(minutes.WithMaxRetries(2))
		lost := srv.Inject(minutestest.Match{Operation: "meetings.create"}, minutestest.RateLimit("0"))
		defer lost.Stop() // not every title is sent
		m, _, err := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-21"})
		if err != nil {
			return // there is no such title
		}
		assert.True(t, utf8.ValidString(m.Title))
		assert.Equal(t, 1, lost.Applied())
		assert.NotEmpty(t, srv.Requests("meetings.create"))
	})
}

// Mistakes in the test itself are also reported in a fuzz target, in which a *testing.F can neither
// fail nor help.
func FuzzServer_ReportsMistakes(f *testing.F) {
	srv := minutestest.NewServer(f)
	f.Add(0)
	f.Fuzz(func(t *testing.T, _ int) {
		assert.PanicsWithError(t, `minutestest: Inject: no fault given`, func() { srv.Inject(minutestest.Match{}) })
		assert.Panics(t, func() { srv.ClientWithKey("") })
	})
}
