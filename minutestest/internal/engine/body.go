package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
)

// form is the JSON object in a request's body, with the faults found in it.
// In this interface a field that is null is absent.
type form struct {
	fields []field
	bad    []string  // names of the fields at fault, each once
	broken bool      // the fault is INVALID_REQUEST, which wins over the specific codes (D25)
	first  *apiError // the first specific fault
}

// field is one member of the object. Names count exactly as they are written,
// and one that comes twice is a fault: so a struct will not do.
type field struct {
	name string
	raw  []byte
	text bool // all its text can be stored (D19)
}

// An error names at most so many fields that no operation knows, each with at
// most so many characters: it is short, however long the body is.
const (
	maxUnknownFaults = 32
	maxFaultName     = 64
)

// body reads the request's body and parses it. The caller holds no lock.
func (c *call) body() (*form, *apiError) {
	if c.r.ContentLength > MaxBodyBytes {
		return nil, errTooLarge
	}
	body := c.r.Body
	if body == nil {
		body = http.NoBody
	}
	var err error
	c.x.Body, err = io.ReadAll(http.MaxBytesReader(c.w, body, MaxBodyBytes))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	case err != nil:
		return nil, errBody // truncated: no client is left to read this
	}
	c.now = wallClock() // reading may have taken a while
	f, ok := parseForm(c.x.Body)
	if !ok {
		return nil, errBody
	}
	return f, nil
}

// parseForm parses a JSON object. ok is false if data is anything else.
func parseForm(data []byte) (f *form, ok bool) {
	if !utf8.Valid(data) || !json.Valid(data) { // so nothing below fails
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if brace, _ := d.Token(); brace != json.Delim('{') {
		return nil, false
	}
	f = &form{}
	for d.More() {
		start := d.InputOffset()
		name, _ := d.Token()
		var raw json.RawMessage
		_ = d.Decode(&raw)
		in := field{name.(string), raw, storable(data[start:d.InputOffset()])}
		if !in.text && len(f.bad) < maxUnknownFaults { // one that an operation knows is named in any case, by value
			f.fault(shortened(in.name, maxFaultName), nil)
		}
		f.broken = f.broken || !in.text
		f.fields = append(f.fields, in)
	}
	return f, true
}

// storable reports whether the text in valid JSON is free of NUL and of
// surrogates without their other half, which no UTF-8 can hold (D19).
// encoding/json would replace these.
func storable(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return true
		}
		r, size := escaped(raw[i:])
		raw = raw[i+size:]
		if utf16.IsSurrogate(r) {
			low, size := escaped(raw)
			if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
				return false
			}
			raw = raw[size:]
		}
		if r == 0 {
			return false
		}
	}
}

// escaped returns the escape that raw begins with and its length. Of others
// than \u1234 it returns the character after the backslash.
func escaped(raw []byte) (r rune, size int) {
	if len(raw) < 2 || raw[0] != '\\' {
		return -1, 0
	}
	if raw[1] != 'u' {
		return rune(raw[1]), 2
	}
	n, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), 6
}

// fault records that a field is at fault: for a specific reason, or, with nil,
// for INVALID_REQUEST.
func (f *form) fault(name string, specific *apiError) {
	if !slices.Contains(f.bad, name) {
		f.bad = append(f.bad, name)
	}
	if specific == nil {
		f.broken = true
	} else if f.first == nil {
		f.first = specific
	}
}

// shortened returns s, or its first characters and an ellipsis.
func shortened(s string, limit int) string {
	if !longer(s, limit) {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

// err returns the error for the faults found so far, or nil.
func (f *form) err() *apiError {
	switch {
	case f.broken:
		e := newError(http.StatusBadRequest, minutes.ErrInvalidRequest, "Fields of the body are invalid: "+strings.Join(f.bad, ", ")+".")
		return e.with(fieldDetails{Fields: f.bad})
	case f.first != nil:
		return f.first.with(fieldDetails{Fields: f.bad})
	}
	return nil
}

// value returns a field, or nil if it is absent or null. A field that comes
// twice is a fault: two readers of the body might disagree about it.
func (f *form) value(name string) []byte {
	var raw []byte
	for _, in := range f.fields {
		if in.name != name {
			continue
		}
		if raw != nil || !in.text {
			f.fault(name, nil)
		}
		raw = in.raw
	}
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// text returns a string field. found is false if it is absent, null or not a
// string, which is a fault.
func (f *form) text(name string) (s string, found bool) {
	raw := f.value(name)
	if raw == nil {
		return "", false
	}
	if json.Unmarshal(raw, &s) != nil {
		f.fault(name, nil)
		return "", false
	}
	return s, true
}

// trimmed returns a text field without white space around it, of at most
// limit characters. A required one must not be blank.
func (f *form) trimmed(name string, limit int, required bool) (s string, found bool) {
	s, found = f.text(name)
	s = strings.TrimSpace(s)
	if required && s == "" || longer(s, limit) {
		f.fault(name, nil)
	}
	return s, found
}

// list returns a field that is an array of strings, each once.
func (f *form) list(name string) (list []string, found bool) {
	raw := f.value(name)
	if raw == nil {
		return nil, false
	}
	var items []*string // null is not a string
	if json.Unmarshal(raw, &items) != nil || slices.Contains(items, nil) {
		f.fault(name, nil)
		return nil, raw[0] == '['
	}
	list, seen := []string{}, map[string]bool{}
	for _, s := range items {
		if !seen[*s] {
			seen[*s] = true
			list = append(list, *s)
		}
	}
	return list, true
}

// date returns a date field, checked.
func (f *form) date(name string) (date string, found bool) {
	date, found = f.text(name)
	if found && !validDate(date) {
		f.fault(name, errDate)
	}
	return date, found
}

// timeOfDay returns a field of a time of day, checked. "" is none.
func (f *form) timeOfDay(name string) (timeOfDay string, found bool) {
	timeOfDay, found = f.text(name)
	if timeOfDay != "" && !validTime(timeOfDay) {
		f.fault(name, errTime)
	}
	return timeOfDay, found
}

// longer reports whether s has more than limit characters, which are code
// points, not bytes (D5).
func longer(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}
