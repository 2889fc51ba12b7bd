package secret

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mask lists secrets to remove from texts that come from elsewhere: a server may echo
// the API key, storage the signature, and so may a proxy's or a transport's error.
type Mask []string

// Text returns s with each secret masked in every spelling: plain, percent-encoded,
// quoted, or escaped as in JSON or HTML.
func (m Mask) Text(s string) string {
	const shortest = 4 // shorter secrets match ordinary words
	for _, secret := range m {
		// Few texts hold a secret, so the slow expression is built only if this one may.
		if len(secret) >= shortest && mayHold(s, secret) {
			s = spellings(secret).ReplaceAllLiteralString(s, "***")
		}
	}
	return s
}

// mayHold reports whether s holds the secret's runs of letters and digits, in order.
// No spelling changes them.
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

// spellings returns an expression that matches a secret in every spelling.
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

// WithQuery returns a Mask that also holds the secrets in a presigned URL's query.
func (m Mask) WithQuery(u *url.URL) Mask {
	const shortestValue = 12 // shorter values are dates, numbers and words
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

// Header returns a copy of h without the secrets, cookies, and the query of a Location,
// which may be presigned.
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

// Err returns err with a masked text, without the URL that net/http puts around it.
// errors.Is and errors.As look inside; errors.As only if nothing inside shows a secret.
func (m Mask) Err(err error) error {
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err
	}
	if err == nil {
		return nil
	}
	text := m.Text(err.Error())
	return &maskedError{text, Hide(err, text), m.shows(err)}
}

// shows reports whether err, or an error it wraps, shows a secret under a verb of fmt.
func (m Mask) shows(err error) bool {
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); m.Text(text) != text {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return m.shows(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), m.shows)
	}
	return false
}

// maskedError has a masked text. Its cause is hidden, since a transport's error may
// lead to the request with all its headers.
type maskedError struct {
	text  string
	cause Value[error]
	shows bool // the cause shows a secret when printed
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.cause.Reveal(), target) }

func (e *maskedError) Unwrap() error {
	if e.shows {
		return nil
	}
	return e.cause.Reveal()
}
