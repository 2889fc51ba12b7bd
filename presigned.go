package minutes

import (
	"errors"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// PresignedURL is a URL whose query is its own credential: whoever has it can
// upload. It prints without its query everywhere: under every verb of fmt, in slog,
// in a test's diff, in an unexported field, and in JSON, since slog's JSON handler
// would otherwise write it. Call Reveal to use it or to pass it on. Compare two of
// them by what Reveal returns.
type PresignedURL struct{ hiddenURL }

type hiddenURL = secret.Value[string]

const hiddenQuery = "?***"

// Reveal returns the whole URL, which is a secret.
func (u PresignedURL) Reveal() string { return u.hiddenURL.Reveal() }

// UnmarshalText takes a whole URL. It rejects one that MarshalText has written
// without its query, since such a URL would only fail later.
func (u *PresignedURL) UnmarshalText(text []byte) error {
	whole := string(text)
	if strings.HasSuffix(whole, hiddenQuery) {
		return errors.New("minutes: the query of this upload URL was masked; pass on what PresignedURL.Reveal returns")
	}
	*u = PresignedURL{}
	if whole != "" {
		u.hiddenURL = secret.Hide(whole, withoutQuery(whole))
	}
	return nil
}

func withoutQuery(whole string) string {
	u, err := url.Parse(whole)
	if err != nil {
		return hiddenQuery
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String() + hiddenQuery
}
