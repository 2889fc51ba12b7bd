package test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// BenchmarkServerPerTest is a test that makes a service of its own, gets one meeting and ends: with
// minutestest, and with httptest and a handler of ten lines. A thousand tests cost a thousand times that.
func BenchmarkServerPerTest(b *testing.B) {
	get := func(c *minutes.Client, id string) {
		m, err := c.Meetings.Get(b.Context(), id)
		if err != nil || m.Title == "" {
			b.Fatal(m, err)
		}
	}
	ours := func() {
		srv := minutestest.New()
		ids := srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Standup"})
		get(srv.Client(), ids[0])
		_ = srv.Close()
	}
	raw := func() {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Authorization") != "Bearer "+benchKey:
				http.Error(w, "no key", http.StatusUnauthorized)
			case r.Method != http.MethodGet || r.URL.Path != "/v1/meetings/"+benchID:
				http.NotFound(w, r)
			default:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, benchMeeting)
			}
		}))
		c, err := minutes.New(srv.URL, benchKey, minutes.WithHTTPClient(srv.Client()))
		if err != nil {
			b.Fatal(err)
		}
		get(c, benchID)
		srv.Close()
	}
	measure(b, ours, raw)
}
