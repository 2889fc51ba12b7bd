// Package secret keeps secrets out of texts that come from elsewhere: a server
// may echo the API key, a store the signature, and so may a proxy's or a
// transport's error.
package secret

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mask is the secrets that must not show.
type Mask []string

// Text returns s with each secret masked, however it is spelled: as it is,
// percent-encoded, quoted, or escaped as in JSON or HTML.
func (m Mask) Text(s string) string {
	const shortest = 4 // the letters of a shorter one are everywhere
	for _, secret := range m {
		// A text seldom holds a secret, so an expression is made only where it may.
		if len(secret) >= shortest && mayHold(s, secret) {
			s = spellings(secret).ReplaceAllLiteralString(s, "***")
		}
	}
	return s
}

// mayHold reports whether s holds the runs of letters and digits of a secret, in
// their order. Every spelling leaves these as they are.
func mayHold(s, secret string) bool {
	var found bool
	for word := range strings.FieldsFuncSeq(secret, isSpecial) {
		if _, s, found = strings.Cut(s, word); !found {
			return false
		}
	}
	return true
}

func isSpecial(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// spellings matches a secret, each of its characters spelled in any way.
func spellings(secret string) *regexp.Regexp {
	var b strings.Builder
	for _, r := range secret {
		if !isSpecial(r) {
			b.WriteRune(r)
			continue
		}
		percent := strings.ReplaceAll(fmt.Sprintf("% x", string(r)), " ", "%(?:25)*")
		fmt.Fprintf(&b, `(?:\\*%s|(?i:%%(?:25)*%s|\\+u%04x|\\+x%02x|&#0*%d;|&#x0*%x;|&[a-z]+;))`,
			regexp.QuoteMeta(string(r)), percent, r, r, r, r)
	}
	return regexp.MustCompile(b.String())
}

// WithQuery adds what is secret in a presigned URL.
func (m Mask) WithQuery(u *url.URL) Mask {
	const shortestValue = 12 // a shorter one is a date, a number or a word
	m = append(slices.Clip(m), u.RawQuery)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if _, raw, _ := strings.Cut(pair, "="); len(raw) >= shortestValue {
			value, _ := url.QueryUnescape(raw)
			m = append(m, raw, value)
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
// and masks the text of the rest. errors.Is and errors.As see through, the latter
// only where nothing within shows a secret.
func (m Mask) Err(err error) error {
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err
	}
	if err == nil {
		return nil
	}
	return &cleanError{m.Text(err.Error()), m.shows(err), func() error { return err }}
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
		return m.shows(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), m.shows)
	}
	return false
}

// cleanError shows a clean text. What it was made from may lead to a request with
// all its headers, so it stands in a closure, which printing by reflection does
// not enter.
type cleanError struct {
	text   string
	shows  bool // a secret would show in what is within
	within func() error
}

func (e *cleanError) Error() string        { return e.text }
func (e *cleanError) Is(target error) bool { return errors.Is(e.within(), target) }

// Unwrap hands out what is within, unless that could be printed then.
func (e *cleanError) Unwrap() error {
	if e.shows {
		return nil
	}
	return e.within()
}
