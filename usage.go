package minutes

import (
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// UsageService reports what the organisation has left (section 4.3).
type UsageService struct{ core handle }

// Usage is what the organisation has left in this period (section 2.9).
type Usage struct {
	CreditsRemaining           int    `json:"credits_remaining"`            // generating minutes spends credits
	TranscribeSecondsRemaining int    `json:"transcribe_seconds_remaining"` // of audio that may still be transcribed
	NextResetAt                string `json:"next_reset_at,omitempty"`      // date of the next top-up; empty when there is none
}

// usageReply tells a zero from a field that is not there.
type usageReply struct {
	Credits *int   `json:"credits_remaining"`
	Seconds *int   `json:"transcribe_seconds_remaining"`
	ResetAt string `json:"next_reset_at"`
}

func (u *usageReply) missing([]byte) string {
	switch {
	case u.Credits == nil:
		return "credits_remaining"
	case u.Seconds == nil:
		return "transcribe_seconds_remaining"
	}
	return ""
}

// Get reports the credits and transcription seconds that are left. Method,
// path and scope (meetings:read) are assumed; see [WithRoute].
func (s *UsageService) Get(ctx context.Context) (*Usage, error) {
	u, err := do[usageReply](ctx, s.core(), rest.Request{Operation: route.UsageGet})
	if err != nil {
		return nil, err
	}
	return &Usage{*u.Credits, *u.Seconds, u.ResetAt}, nil
}
