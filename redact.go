package minutes

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
)

// masked stands where a secret was.
const masked = "***"

// masker keeps secrets out of texts that come from elsewhere: a server may echo
// the API key, a store the signature, and so may a proxy's or a transport's
// error.
type masker []string

// shortest is the length from which on a string is a secret; the letters of a
// shorter one are everywhere.
const shortest = 4

func (m masker) text(s string) string {
	for _, secret := range m {
		if len(secret) >= shortest {
			s = strings.ReplaceAll(s, secret, masked)
		}
	}
	return s
}

// withQuery adds what is secret in a presigned URL.
func (m masker) withQuery(u *url.URL) masker {
	const shortestValue = 12 // a shorter one is a date, a number or a word
	m = append(m[:len(m):len(m)], u.RawQuery)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, raw, _ := strings.Cut(pair, "=")
		if len(raw) < shortestValue {
			continue
		}
		m = append(m, raw)
		if value, err := url.QueryUnescape(raw); err == nil {
			m = append(m, value)
			// The key id is the first part of a credential's scope.
			if id, _, cut := strings.Cut(value, "/"); cut && len(id) >= shortestValue {
				m = append(m, id)
			}
		}
	}
	return m
}

// tree masks the strings of a decoded JSON value in place.
func (m masker) tree(v any) any {
	switch v := v.(type) {
	case string:
		if clean := m.text(v); clean != v {
			return clean
		}
	case []any:
		for i := range v {
			v[i] = m.tree(v[i])
		}
	case map[string]any:
		for k, e := range v {
			clean := m.text(k)
			if clean != k {
				delete(v, k)
			}
			v[clean] = m.tree(e)
		}
	}
	return v
}

// err strips what net/http puts around an error, the whole URL with its query,
// and masks the text of the rest; errors.Is still sees through.
func (m masker) err(err error) error {
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = u.Err
	}
	if err == nil {
		return nil
	}
	if m.shows(err) {
		return &maskedError{m.text(err.Error()), err}
	}
	return err
}

// shows reports whether a secret shows in err or in one of those it wraps, under
// any verb of fmt.
func (m masker) shows(err error) bool {
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, err); m.text(text) != text {
			return true
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			return m.shows(inner)
		}
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), m.shows)
	}
	return false
}

// maskedError shows a clean text. It answers errors.Is for the error
// within, but does not hand it out through Unwrap, where it could be
// printed.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *maskedError) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, e.text)
}

// Format prints the target without its presigned query, under every verb.
func (t UploadTarget) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.mask()) }

// LogValue keeps the presigned query out of structured logs.
func (t UploadTarget) LogValue() slog.Value { return slog.StringValue(t.mask()) }

func (t UploadTarget) mask() string {
	host := "?"
	if u, err := url.Parse(t.UploadURL); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("minutes.UploadTarget(%s to %s, expires in %d s, URL masked)", t.Method, host, t.ExpiresIn)
}
