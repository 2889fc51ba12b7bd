package minutes

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
)

// PresignedURL is a URL whose query is its own credential: whoever has it can
// upload. It prints without its query wherever it stands: under fmt and slog, in
// an unexported field, in a test's diff, and in JSON as well, since slog's JSON
// handler makes no difference. To use it, or to hand it on, call Reveal. Two of
// them are compared by what Reveal returns.
type PresignedURL struct {
	reveal func() string // a closure, which printing by reflection does not enter
}

// Reveal returns the whole URL, which is a secret.
func (u PresignedURL) Reveal() string {
	if u.reveal == nil {
		return ""
	}
	return u.reveal()
}

const hiddenQuery = "?***"

// String returns the URL without its query.
func (u PresignedURL) String() string {
	parsed, err := url.Parse(u.Reveal())
	switch {
	case u.Reveal() == "":
		return ""
	case err != nil:
		return hiddenQuery
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path, RawPath: parsed.RawPath}).String() + hiddenQuery
}

// Format prints the URL without its query, under every verb.
func (u PresignedURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue keeps the query out of structured logs.
func (u PresignedURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText returns the URL without its query, so that JSON, too, holds no
// secret by accident. What it returns cannot be read back.
func (u PresignedURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText takes a whole URL. One that MarshalText left without its query is
// refused: it would only fail later.
func (u *PresignedURL) UnmarshalText(text []byte) error {
	whole := string(text)
	if strings.HasSuffix(whole, hiddenQuery) {
		return errors.New("minutes: the query of this upload URL was masked; hand on what PresignedURL.Reveal returns")
	}
	*u = PresignedURL{}
	if whole != "" {
		u.reveal = func() string { return whole }
	}
	return nil
}

// Format prints the target without its presigned query, under every verb.
func (t UploadTarget) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.mask()) }

// LogValue keeps the presigned query out of structured logs.
func (t UploadTarget) LogValue() slog.Value { return slog.StringValue(t.mask()) }

func (t UploadTarget) mask() string {
	host := "?"
	if u, err := url.Parse(t.UploadURL.Reveal()); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("minutes.UploadTarget(%s to %s, expires in %d s, URL masked)", t.Method, host, t.ExpiresIn)
}
