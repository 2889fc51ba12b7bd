package minutes

import (
	"context"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// UsageService reports what the organisation has left (section 4.3).
type UsageService struct{ service }

// Usage is what the organisation has left in this period (section 2.9).
type Usage struct {
	CreditsRemaining           int    `json:"credits_remaining"`            // generating minutes spends credits
	TranscribeSecondsRemaining int    `json:"transcribe_seconds_remaining"` // of audio that may still be transcribed
	NextResetAt                string `json:"next_reset_at,omitempty"`      // date of the next top-up, YYYY-MM-DD (section 2); empty when there is none
}

// Transcription returns the length of audio that may still be transcribed.
func (u *Usage) Transcription() time.Duration {
	return time.Duration(u.TranscribeSecondsRemaining) * time.Second
}

// ResetAt returns the date of the next top-up as its first instant in UTC (that
// it is meant in UTC is assumed). ok is false if there is none, or if
// NextResetAt is not a date as YYYY-MM-DD.
func (u *Usage) ResetAt() (date time.Time, ok bool) {
	date, err := time.Parse(time.DateOnly, u.NextResetAt)
	return date, err == nil
}

// Get reports the credits and transcription seconds that are left. Method,
// path and scope (meetings:read) are assumed; see [WithRoute].
func (s *UsageService) Get(ctx context.Context) (*Usage, error) {
	return do[Usage](ctx, s.core(), rest.Request{Operation: route.UsageGet})
}
