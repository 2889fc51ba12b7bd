package minutes

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// PresignedURL is a URL whose query is a credential: everyone who has the URL can upload. Call
// Reveal to get the whole URL. The packages fmt and slog show it without its query, and
// encoding/json refuses to write it.
type PresignedURL struct{ whole *string } // a pointer, because fmt prints no pointer's target in a field

// Reveal returns the whole URL, which is a secret.
func (u PresignedURL) Reveal() string {
	if u.whole == nil {
		return ""
	}
	return *u.whole
}

// Format prints the URL without its query, for every verb.
func (u PresignedURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.masked()) }

// LogValue keeps the query out of structured logs.
func (u PresignedURL) LogValue() slog.Value { return slog.StringValue(u.masked()) }

// MarshalText returns an error, because the text would be a secret, or useless without its query. To
// write the URL on purpose, marshal the string that Reveal returns.
func (u PresignedURL) MarshalText() ([]byte, error) {
	return nil, errors.New("minutes: an upload URL is a secret; marshal the string that PresignedURL.Reveal returns")
}

// UnmarshalText accepts a whole URL.
func (u *PresignedURL) UnmarshalText(text []byte) error {
	*u = PresignedURL{new(string(text))}
	return nil
}

func (u PresignedURL) masked() string {
	whole := u.Reveal()
	parsed, err := url.Parse(whole)
	switch {
	case whole == "":
		return ""
	case err != nil:
		return "?***"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path, RawPath: parsed.RawPath}).String() + "?***"
}
