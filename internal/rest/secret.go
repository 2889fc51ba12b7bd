package rest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Secret holds a text that fmt, slog and encoding/json show as "***". Reveal returns the text.
type Secret struct{ text *string } // a pointer, because fmt prints no pointer's target in a field

// NewSecret returns a Secret that holds text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

const hidden = "***"

// Format shows no secret for any verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue shows no secret in a log.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText shows no secret in JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Mask removes secrets from texts that come from outside: a server may echo the API key, and so may
// an id that a caller passes. The zero Mask removes nothing.
type Mask struct{ replacer *strings.Replacer }

// NewMask returns a Mask for secrets, as they are and as they are in a URL. It ignores a secret of
// less than four characters, which would match ordinary words.
func NewMask(secrets ...string) Mask {
	var pairs []string
	for _, s := range secrets {
		for _, form := range []string{s, url.PathEscape(s), url.QueryEscape(s)} {
			if len(s) >= 4 && !slices.Contains(pairs, form) { // a Replacer of one pair is the fastest
				pairs = append(pairs, form, hidden)
			}
		}
	}
	return Mask{strings.NewReplacer(pairs...)}
}

// QuerySecrets returns the secrets of a presigned URL for NewMask: its query, and each value that is
// too long for a date, a number or a word. The first part of a credential's scope is the key's id.
func QuerySecrets(u *url.URL) []string {
	const shortest = 12
	secrets := []string{u.RawQuery}
	for _, values := range u.Query() {
		for _, v := range values {
			for _, s := range []string{v, strings.Split(v, "/")[0]} {
				if len(s) >= shortest {
					secrets = append(secrets, s)
				}
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest one wins
	return secrets
}

// Text returns s without secrets.
func (m Mask) Text(s string) string {
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// Err returns err without the *url.Error of net/http, which quotes the URL. If the text of err has a
// secret, errors.Is finds what err wraps, but errors.As does not.
func (m Mask) Err(err error) error {
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err
	}
	if err == nil {
		return nil
	}
	if text := err.Error(); m.Text(text) != text {
		return &maskedError{m.Text(text), err}
	}
	return err
}

type maskedError struct {
	text  string
	cause error
}

func (e *maskedError) Error() string              { return e.text }
func (e *maskedError) Is(target error) bool       { return errors.Is(e.cause, target) }
func (e *maskedError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.text) }

// Header returns a copy of h without secrets, without cookies, and without the query of a
// Location, which may be a presigned URL.
func (m Mask) Header(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Set-Cookie")
	if location, _, cut := strings.Cut(h.Get("Location"), "?"); cut {
		h.Set("Location", location)
	}
	for _, values := range h {
		for i, value := range values {
			values[i] = m.Text(value)
		}
	}
	return h
}
