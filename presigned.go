package minutes

import (
	"errors"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// PresignedURL is a URL whose query is a credential: everyone who has the URL can upload. Call
// Reveal to get the whole URL. The packages fmt, slog and encoding/json show it without its query.
type PresignedURL struct{ hiddenURL }

type hiddenURL = secret.Value[string]

const hiddenQuery = "?***"

// Reveal returns the whole URL, which is a secret.
func (u PresignedURL) Reveal() string { return u.hiddenURL.Reveal() }

// UnmarshalText accepts a whole URL. It rejects a URL that MarshalText has written without its query.
func (u *PresignedURL) UnmarshalText(text []byte) error {
	whole := string(text)
	if strings.HasSuffix(whole, hiddenQuery) {
		return errors.New("minutes: the query of this upload URL is masked; marshal the string that PresignedURL.Reveal returns")
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
