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

// Mask lists secrets to remove from foreign texts. A server may echo the API key, and storage
// the signature. The error of a proxy or a transport may contain either.
type Mask []string

// Text returns s with each secret masked, even if it is percent-encoded, quoted, or escaped as
// in JSON or HTML: these only change characters other than letters and digits.
func (m Mask) Text(s string) string {
	const shortest = 4 // shorter secrets match ordinary words
	for _, secret := range m {
		if len(secret) >= shortest && mayHold(s, secret) {
			s = regexp.MustCompile(special.ReplaceAllLiteralString(secret, `\S{1,20}?`)).ReplaceAllLiteralString(s, "***")
		}
	}
	return s
}

var special = regexp.MustCompile("[^0-9A-Za-z]+")

// mayHold reports whether s contains the secret's runs of letters and digits, in order. Few
// texts do, and this is much faster than a regular expression.
func mayHold(s, secret string) (found bool) {
	isSpecial := func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }
	for word := range strings.FieldsFuncSeq(secret, isSpecial) {
		if _, s, found = strings.Cut(s, word); !found {
			return false
		}
	}
	return found
}

// WithQuery returns m with the secrets in a presigned URL's query added.
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

// Header returns a copy of h without the secrets, without cookies, and without the query of a
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

// Err returns an error with the masked text of err. It first removes the *url.Error of net/http,
// which shows the URL. errors.Is searches err. errors.As does so only if printing err, or an
// error that it wraps, shows no secret.
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

// shows reports whether fmt prints a secret for err or for an error that it wraps.
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

// maskedError has a masked text. It hides its cause, because reflection may find the request
// and all its headers in a transport's error.
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
