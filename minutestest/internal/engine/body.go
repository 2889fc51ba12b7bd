package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
)

// form is the JSON object in a request's body, with the faults found in it.
// Everywhere in the interface null is the same as absent, so a field is there
// or it is not.
type form struct {
	fields []field
	bad    []string // names of the fields at fault, each once
	broken bool     // the fault is INVALID_REQUEST: it wins over the specific codes (D25)
	first  *refusal // the first specific fault
}

type field struct {
	name  string
	raw   []byte
	clean bool // free of what no field may hold (D19)
}

// A refusal names as many fields that it does not know, each with so many
// characters: an answer is short, however long the body.
const (
	maxUnknownFaults = 32
	maxFaultName     = 64
)

var (
	errBody       = &refusal{status: http.StatusBadRequest, code: minutes.ErrInvalidRequest, message: "The body is not a JSON object in UTF-8.", fields: []string{}}
	errDate       = refuse(http.StatusBadRequest, minutes.ErrInvalidDate, "date is not a calendar date as YYYY-MM-DD.")
	errTime       = refuse(http.StatusBadRequest, minutes.ErrInvalidTime, "time is not a time of day as HH:MM.")
	errEmail      = refuse(http.StatusBadRequest, minutes.ErrInvalidEmail, "email is not a valid address.")
	errSharedWith = refuse(http.StatusBadRequest, minutes.ErrInvalidSharedWith, "shared_with names ids that are no members with an account.")
	errExtID      = refuse(http.StatusBadRequest, minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")
)

// maxBelieved is how much memory a body gets for its Content-Length alone.
const maxBelieved = 16 << 10

// body reads the request's body, without any lock, and takes it apart.
func (c *call) body() (*form, *refusal) {
	if c.r.ContentLength > MaxBodyBytes {
		return nil, errTooLarge
	}
	var buf bytes.Buffer
	// As long as it says, but a long one is believed as it comes.
	buf.Grow(int(min(max(c.r.ContentLength, 0), maxBelieved)) + bytes.MinRead)
	body := c.r.Body
	if body == nil {
		body = http.NoBody
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(c.w, body, MaxBodyBytes))
	c.x.Body = buf.Bytes()
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, errTooLarge
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errSlow
		}
		return nil, errBody // cut short: nobody is left to read this
	}
	c.refreshNow() // a body may have taken its time
	f, ok := parseForm(c.x.Body)
	if !ok {
		return nil, errBody
	}
	return f, nil
}

// parseForm takes a JSON object apart. ok is false where data is none.
func parseForm(data []byte) (f *form, ok bool) {
	if !utf8.Valid(data) || !json.Valid(data) { // json.Valid bounds the nesting
		return nil, false
	}
	i := skipSpace(data, 0)
	if data[i] != '{' {
		return nil, false
	}
	f = &form{}
	for i = skipSpace(data, i+1); data[i] != '}'; {
		if data[i] == ',' {
			i = skipSpace(data, i+1)
		}
		end := skipValue(data, i)
		name, clean := unquote(data[i:end])
		i = skipSpace(data, end)
		i = skipSpace(data, i+1) // the colon
		end = skipValue(data, i)
		in := field{name, data[i:end], clean && cleanText(data[i:end])}
		if !in.clean {
			f.unclean(name)
		}
		f.fields = append(f.fields, in)
		i = skipSpace(data, end)
	}
	return f, true
}

// The following walk over JSON that is known to be valid.

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the end of the value that begins at i.
func skipValue(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // ends a number or literal before it
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// cleanText reports whether the strings in raw are free of NUL and of
// surrogates that stand alone, which no UTF-8 can hold (D19).
func cleanText(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		n := codeUnit(raw[i+1:])
		i += 4
		switch {
		case n == 0, 0xdc00 <= n && n < 0xe000:
			return false
		case 0xd800 <= n && n < 0xdc00:
			if len(raw) < i+7 || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return false
			}
			if low := codeUnit(raw[i+3:]); low < 0xdc00 || low >= 0xe000 {
				return false
			}
			i += 6
		}
	}
	return true
}

func codeUnit(raw []byte) uint64 {
	n, _ := strconv.ParseUint(string(raw[:4]), 16, 16)
	return n
}

// unquote returns the string a valid JSON string stands for.
func unquote(raw []byte) (s string, clean bool) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false
	}
	return s, cleanText(raw)
}

// fault notes that a field is at fault: for a specific reason, or, with nil,
// for INVALID_REQUEST.
func (f *form) fault(name string, specific *refusal) {
	if !slices.Contains(f.bad, name) {
		f.bad = append(f.bad, name)
	}
	if specific == nil {
		f.broken = true
	} else if f.first == nil {
		f.first = specific
	}
}

// unclean notes a field that may be one of very many. What an operation reads
// is named by value in any case.
func (f *form) unclean(name string) {
	f.broken = true
	if len(f.bad) < maxUnknownFaults {
		f.fault(shortened(name, maxFaultName), nil)
	}
}

// shortened is s, or as many of its characters with an ellipsis.
func shortened(s string, limit int) string {
	if !longer(s, limit) {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "…"
		}
	}
	return s
}

// refusal is what the faults found so far come to, or nil.
func (f *form) refusal() *refusal {
	switch {
	case f.broken:
		return &refusal{status: http.StatusBadRequest, code: minutes.ErrInvalidRequest, message: "Fields of the body are invalid: " + strings.Join(f.bad, ", ") + ".", fields: f.bad}
	case f.first != nil:
		no := *f.first
		no.fields = f.bad
		return &no
	}
	return nil
}

// value returns a field that is there and not null. Given twice, it is a
// fault: two readers of the body might disagree about it.
func (f *form) value(name string) []byte {
	var raw []byte
	for _, in := range f.fields {
		if in.name != name {
			continue
		}
		if raw != nil || !in.clean {
			f.fault(name, nil)
		}
		raw = in.raw
	}
	if raw == nil || raw[0] == 'n' {
		return nil
	}
	return raw
}

// text returns a string field. there is false where it is absent, null or no
// string, which is a fault.
func (f *form) text(name string) (s string, there bool) {
	raw := f.value(name)
	if raw == nil {
		return "", false
	}
	if raw[0] != '"' {
		f.fault(name, nil)
		return "", false
	}
	s, _ = unquote(raw) // text that is not clean was noted as a fault already
	return s, true
}

// trimmed returns a text field without white space around it, of at most
// limit characters. A required one must not be blank.
func (f *form) trimmed(name string, limit int, required bool) (s string, there bool) {
	s, there = f.text(name)
	s = trim(s)
	if required && s == "" || longer(s, limit) {
		f.fault(name, nil)
	}
	return s, there
}

// list returns a field that is an array of strings, each once.
func (f *form) list(name string) (list []string, there bool) {
	raw := f.value(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		f.fault(name, nil)
		return nil, false
	}
	list = []string{}
	seen := map[string]bool{}
	for i := skipSpace(raw, 1); raw[i] != ']'; {
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
		end := skipValue(raw, i)
		if raw[i] != '"' {
			f.fault(name, nil)
			return nil, true
		}
		if s, _ := unquote(raw[i:end]); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
		i = skipSpace(raw, end)
	}
	return list, true
}

// longer reports whether s has more than limit characters, which are code
// points, not bytes (D5).
func longer(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}
