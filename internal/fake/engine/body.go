package engine

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// form is the JSON object in a request's body, with the faults found in it. A field that is null is
// absent, and unknown fields are ignored (D5).
type form struct {
	// unreadable is the error of a body that is not a JSON object.
	unreadable *apiError

	fields map[string]json.RawMessage

	// bad has the names of the fields at fault, each once.
	bad []string

	// broken is whether the fault is INVALID_REQUEST, which wins over the specific codes (D25).
	broken bool

	// first is the first specific fault.
	first *apiError
}

// readForm reads the request's body. The caller holds no lock.
func (r *request) readForm() *form {
	text, err := io.ReadAll(io.LimitReader(r.http.Body, MaxBodyBytes+1))
	f := &form{}
	if len(text) > MaxBodyBytes || r.http.ContentLength > MaxBodyBytes {
		f.unreadable = errTooLarge
	} else if err != nil || !utf8.Valid(text) || json.Unmarshal(text, &f.fields) != nil || f.fields == nil {
		f.unreadable = errBody
	}
	return f
}

// fault records that a field is at fault: for a specific reason, or, with nil, for INVALID_REQUEST.
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

// err returns the error for the faults found so far, or nil.
func (f *form) err() *apiError {
	switch {
	case f.unreadable != nil:
		return f.unreadable
	case f.broken:
		e := errBody.with(map[string]any{"fields": f.bad})
		e.message = "Fields of the body are invalid: " + strings.Join(f.bad, ", ") + "."
		return e
	case f.first != nil:
		return f.first.with(map[string]any{"fields": f.bad})
	}
	return nil
}

// read reads a field, and reports whether it is there. One of the wrong type is a fault.
func read[T any](f *form, name string) (value T, found bool) {
	raw, ok := f.fields[name]
	if !ok {
		return value, false
	}
	var p *T // stays nil for null
	if json.Unmarshal(raw, &p) != nil {
		f.fault(name, nil)
		return value, false
	}
	if p == nil {
		return value, false
	}
	return *p, true
}

// text returns a string field.
func (f *form) text(name string) (s string, found bool) { return read[string](f, name) }

// trimmed returns a text field without white space around it. It must not be longer than longest,
// nor blank if it is required.
func (f *form) trimmed(name string, longest int, required bool) (s string, found bool) {
	bad := len(f.bad)
	s, found = f.text(name)
	s = strings.TrimSpace(s)
	if (required && s == "" || longer(s, longest)) && len(f.bad) == bad {
		f.fault(name, nil)
	}
	return s, found
}

// list returns a field that is an array of strings, each once.
func (f *form) list(name string) (list []string, found bool) {
	items, found := read[[]*string](f, name) // null is not a string
	if slices.Contains(items, nil) {
		f.fault(name, nil)
		return nil, found
	}
	list = []string{}
	seen := map[string]bool{}
	for _, s := range items {
		if !seen[*s] {
			seen[*s] = true
			list = append(list, *s)
		}
	}
	return list, found
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

// longer reports whether s is longer than longest, in code points, not bytes (D5).
func longer(s string, longest int) bool {
	return len(s) > longest && utf8.RuneCountInString(s) > longest
}

// Dates and times of day are kept as the API writes them, YYYY-MM-DD and HH:MM. In this form, texts
// compare as the dates and times that they are.

// validDate reports whether s is a calendar date as YYYY-MM-DD.
func validDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil && s >= "0001" // the calendar has no year 0
}

// validTime reports whether s is a time of day as HH:MM.
func validTime(s string) bool {
	_, err := time.Parse("15:04", s)
	return err == nil && len(s) == len("15:04") // Parse accepts an hour of one digit
}
