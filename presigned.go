package minutes

import (
	"errors"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// PresignedURL is a URL with a credential in the query: anyone with the URL can upload. Every verb
// of fmt, slog and JSON print the URL without the query, also in an unexported field. Call Reveal
// to use the URL, to pass it on, or to compare two URLs.
type PresignedURL struct{ hiddenURL }

type hiddenURL = secret.Value[string]

const hiddenQuery = "?***"

// Reveal returns the whole URL. The result is a secret.
func (u PresignedURL) Reveal() string { return u.hiddenURL.Reveal() }

// UnmarshalText reads a whole URL. It returns an error for a URL that MarshalText wrote without
// the query.
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
