package minutes

import (
	"cmp"
	"context"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// UsageService returns the organisation's remaining quota ([section 4]).
//
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
type UsageService struct{ service }

// Usage is what remains of the organisation's quota in this period ([section 2.9]).
//
// [section 2.9]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Usage struct {
	// CreditsRemaining is the number of credits that are left; writing minutes costs credits.
	CreditsRemaining int `json:"credits_remaining"`
	// TranscribeSecondsRemaining is how many seconds of audio can still be transcribed.
	TranscribeSecondsRemaining int `json:"transcribe_seconds_remaining"`
	// NextResetAt is the day of the next top-up, as YYYY-MM-DD. It is empty if there will be none.
	NextResetAt string `json:"next_reset_at,omitempty"`
}

func (u *Usage) missing(r received) string {
	const credits = "credits_remaining"
	const seconds = "transcribe_seconds_remaining"
	return cmp.Or(
		lacks(credits, u.CreditsRemaining == 0 && !r.has(credits, false)),
		lacks(seconds, u.TranscribeSecondsRemaining == 0 && !r.has(seconds, false)),
	)
}

// TranscribeRemaining returns TranscribeSecondsRemaining as a Duration.
func (u *Usage) TranscribeRemaining() time.Duration {
	return time.Duration(u.TranscribeSecondsRemaining) * time.Second
}

// ResetAt returns when the day of NextResetAt begins, in UTC, because the service uses UTC
// (assumed). If NextResetAt is empty or not a date of the form YYYY-MM-DD, ok is false.
func (u *Usage) ResetAt() (date time.Time, ok bool) {
	date, err := time.Parse(time.DateOnly, u.NextResetAt)
	return date, err == nil
}

// Get returns the remaining credits and transcription seconds. Method, path and the scope
// meetings:read are assumed, so you may need [WithRoute].
func (s *UsageService) Get(ctx context.Context) (*Usage, error) {
	u, _, err := call[Usage](ctx, s.core, OpUsageGet, rest.Request{})
	return u, err
}
