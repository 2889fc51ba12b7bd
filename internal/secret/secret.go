// Package secret keeps secrets out of texts that come from elsewhere: a server
// may echo the API key, a store the signature, and so may a proxy's or a
// transport's error.
package secret

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// masked stands where a secret was.
const masked = "***"

// Mask is the secrets that must not show.
type Mask []string

// shortest is the length from which on a string is a secret; the letters of a
// shorter one are everywhere.
const shortest = 4

// Text returns s with each secret masked.
func (m Mask) Text(s string) string {
	for _, secret := range m {
		if len(secret) >= shortest {
			s = strings.ReplaceAll(s, secret, masked)
		}
	}
	return s
}

// WithQuery adds what is secret in a presigned URL.
func (m Mask) WithQuery(u *url.URL) Mask {
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

// Tree masks the strings of a decoded JSON value in place.
func (m Mask) Tree(v any) any {
	switch v := v.(type) {
	case string:
		if clean := m.Text(v); clean != v {
			return clean
		}
	case []any:
		for i := range v {
			v[i] = m.Tree(v[i])
		}
	case map[string]any:
		for k, e := range v {
			clean := m.Text(k)
			if clean != k {
				delete(v, k)
			}
			v[clean] = m.Tree(e)
		}
	}
	return v
}

// Err strips what net/http puts around an error, the whole URL with its query,
// and masks the text of the rest; errors.Is still sees through.
func (m Mask) Err(err error) error {
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
		return &maskedError{m.Text(err.Error()), err}
	}
	return err
}

// shows reports whether a secret shows in err or in one of those it wraps, under
// any verb of fmt.
func (m Mask) shows(err error) bool {
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, err); m.Text(text) != text {
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
