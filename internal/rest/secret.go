package rest

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const hidden = "***"

// Mask removes secrets from texts that come from outside, because a server may echo the API key, or
// a caller pass it as an id. It is safe for concurrent use.
type Mask struct {
	mu       sync.Mutex
	secrets  []string // the oldest first
	replacer atomic.Pointer[strings.Replacer]
}

// maxSecrets is how many secrets a Mask knows, in case each request has a new key. It forgets the
// oldest, which no request has any more.
const maxSecrets = 100

// NewMask returns a Mask for secrets.
func NewMask(secrets ...string) *Mask {
	m := new(Mask)
	m.replacer.Store(strings.NewReplacer())
	m.Add(secrets...)
	return m
}

// Add adds secrets, as they are and as they are in a URL. It ignores a secret of less than four
// characters, which would match ordinary words.
func (m *Mask) Add(secrets ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	added := false
	for _, s := range secrets {
		if len(s) >= 4 && !slices.Contains(m.secrets, s) {
			m.secrets = append(m.secrets, s)
			added = true
		}
	}
	if !added {
		return
	}
	m.secrets = m.secrets[max(0, len(m.secrets)-maxSecrets):]
	var pairs []string
	for _, s := range m.secrets {
		for _, form := range []string{s, url.PathEscape(s), url.QueryEscape(s)} {
			if !slices.Contains(pairs, form) { // a Replacer of one pair is the fastest
				pairs = append(pairs, form, hidden)
			}
		}
	}
	m.replacer.Store(strings.NewReplacer(pairs...))
}

// With returns a Mask for further secrets, and for those that m knows now.
func (m *Mask) With(secrets ...string) *Mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return NewMask(append(slices.Clone(m.secrets), secrets...)...)
}

// QuerySecrets returns the secrets of a presigned URL for NewMask: its query, and each value that
// is too long for a date, a number or a word. The first part of a credential's scope is the key's
// id.
func QuerySecrets(u *url.URL) []string {
	secrets := []string{u.RawQuery}
	for _, values := range u.Query() {
		for _, v := range values {
			id, _, _ := strings.Cut(v, "/")
			secrets = append(secrets, v, id)
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 12 })
}

// Text returns s without secrets.
func (m *Mask) Text(s string) string { return m.replacer.Load().Replace(s) }

// Label returns s without secrets, cut to what a line or an attribute of a span can hold. It is for
// what others can make long, such as a request id.
func (m *Mask) Label(s string) string {
	const longest = 128 // S3's longest ids have about 100
	s = m.Text(s)
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// Details removes secrets from the texts in details, which has been decoded from JSON: only there are
// its escapes resolved.
func (m *Mask) Details(details map[string]any) {
	for _, key := range slices.Collect(maps.Keys(details)) {
		value := m.value(details[key])
		delete(details, key)
		details[m.Text(key)] = value
	}
}

func (m *Mask) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.Text(v)
	case []any:
		for i, element := range v {
			v[i] = m.value(element)
		}
	case map[string]any:
		m.Details(v)
	}
	return v
}

// Err returns err without the *url.Error of net/http, which quotes the URL. If the text of err has
// a secret, Err returns only the text without it.
func (m *Mask) Err(err error) error {
	for u, ok := errors.AsType[*url.Error](err); ok; u, ok = errors.AsType[*url.Error](err) {
		err = u.Err
	}
	return m.withoutSecrets(err)
}

// withoutSecrets returns err, or only its text without secrets if the text has one.
func (m *Mask) withoutSecrets(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	masked := m.Text(text)
	if masked != text {
		return errors.New(masked)
	}
	return err
}

// Header returns a copy of h without secrets, without cookies, and without the query of a
// Location, which may be a presigned URL.
func (m *Mask) Header(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Set-Cookie")
	for name, values := range h {
		for i, value := range values {
			if name == "Location" {
				value, _, _ = strings.Cut(value, "?")
			}
			values[i] = m.Text(value)
		}
	}
	return h
}
