package main

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// For any minutes, a list says the same when it is read again.
func FuzzActions(f *testing.F) {
	f.Add("## Actions\n\n- **Ada:** Write.\n- Tell support.\n")
	f.Add("## Actions\n- **:** **b:** c\n- **a:**\n## Actions\n-  - x")
	f.Fuzz(func(t *testing.T, markdown string) {
		items := actions(markdown)
		for _, i := range items {
			assert.NotEmpty(t, i.what)
		}
		assert.Equal(t, items, actions(list{items: items}.String()))
	})
}

// For any title, the service accepts it or rejects it as the API reference says,
// and always accepts our reference. One service serves all inputs.
func FuzzTitle(f *testing.F) {
	srv := minutestest.NewServer(f)
	client := srv.Client()
	f.Add("Weekly")
	f.Add(" ")
	f.Add("Überblick \x00")
	f.Fuzz(func(t *testing.T, title string) {
		params := &minutes.MeetingCreateParams{Title: title, Date: day, ExternalID: reference(title, day)}
		m, _, err := client.Meetings.Create(t.Context(), params)
		switch {
		case err == nil:
			assert.Equal(t, reference(title, day), m.ExternalID)
		case utf8.ValidString(title):
			assert.ErrorIs(t, err, minutes.ErrInvalidRequest)
		}
	})
}
