package engine

import (
	"strconv"
	"unicode/utf8"
)

// Replies are appended to a buffer by hand: no reflection, no garbage.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Stored text is valid UTF-8, which
// New and the bodies' parser see to; should a byte slip through, it comes out
// as U+FFFD rather than as broken JSON.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// appendOptional appends s, or null where it is empty.
func appendOptional(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendStrings appends an array, never null.
func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

func appendMember(b []byte, m *member) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, m.ID)
	b = append(b, `,"name":`...)
	b = appendString(b, m.Name)
	b = append(b, `,"role":`...)
	b = appendOptional(b, m.Role)
	b = append(b, `,"status":`...)
	b = appendString(b, string(m.Status))
	return append(b, '}')
}

func appendProject(b []byte, p *Project) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, p.ID)
	b = append(b, `,"name":`...)
	b = appendString(b, p.Name)
	return append(b, '}')
}

func appendTemplate(b []byte, t *Template, isDefault bool) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, t.ID)
	b = append(b, `,"name":`...)
	b = appendString(b, t.Name)
	b = append(b, `,"source":`...)
	b = appendString(b, t.Source)
	b = append(b, `,"description":`...)
	b = appendOptional(b, t.Description)
	b = append(b, `,"is_default":`...)
	b = strconv.AppendBool(b, isDefault)
	b = append(b, `,"version":`...)
	if t.Version == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(*t.Version), 10)
	}
	return append(b, '}')
}

func appendVocabulary(b []byte, terms []Term, maxTerms int) []byte {
	b = append(b, `{"terms":[`...)
	for i := range terms {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, terms[i].Term)
	}
	b = append(b, `],"entries":[`...)
	for i := range terms {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"term":`...)
		b = appendString(b, terms[i].Term)
		b = append(b, `,"variants":[`...)
		for j, v := range terms[i].Variants {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"text":`...)
			b = appendString(b, v.Text)
			b = append(b, `,"source":`...)
			b = appendString(b, v.Source)
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	b = append(b, `],"max_terms":`...)
	b = strconv.AppendInt(b, int64(maxTerms), 10)
	return append(b, '}')
}

func appendMeeting(b []byte, m *meeting) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, m.id)
	b = append(b, `,"title":`...)
	b = appendString(b, m.title)
	b = append(b, `,"date":"`...)
	b = m.date.append(b)
	if m.time == noTime {
		b = append(b, `","time":null,"status":"`...)
	} else {
		b = append(b, `","time":"`...)
		b = m.time.append(b)
		b = append(b, `","status":"`...)
	}
	b = append(b, m.status...)
	b = append(b, `","visibility":"`...)
	b = append(b, m.visibility...)
	b = append(b, `","template_id":`...)
	b = appendString(b, m.template)
	b = append(b, `,"participant_ids":`...)
	b = appendStrings(b, m.participants)
	b = append(b, `,"project_id":`...)
	b = appendOptional(b, m.project)
	b = append(b, `,"external_id":`...)
	b = appendOptional(b, m.externalID)
	if seconds, ok := m.durationSeconds(); ok {
		b = append(b, `,"duration_seconds":`...)
		b = strconv.AppendInt(b, int64(seconds), 10)
	}
	b = append(b, `,"created_at":`...)
	b = strconv.AppendInt(b, m.created.seconds(), 10)
	b = append(b, `,"updated_at":`...)
	b = strconv.AppendInt(b, m.updated.seconds(), 10)
	return append(b, '}')
}
