package engine

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
)

// position is the point at which a list continues: with the meetings older than number before.
// Meetings created or deleted meanwhile do not change it.
type position struct {
	before uint64
	page   uint64 // counts the pages of the list, so that each has its own cursor
}

const (
	macSize    = 16
	cursorSize = 16 + macSize
)

// cursor writes a position as an opaque string, bound to the organisation and the filters, but not
// to the limit or the key (D24).
func (i *ids) cursor(org, from, to string, p position) string {
	b := binary.BigEndian.AppendUint64(nil, p.before)
	b = binary.BigEndian.AppendUint64(b, p.page)
	return base64.RawURLEncoding.EncodeToString(append(b, i.mac("cursor", org, from, to, string(b))[:macSize]...))
}

// position reads a string made by cursor, and no other.
func (i *ids) position(org, from, to, cursor string) (p position, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorSize {
		return p, false
	}
	p = position{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	// Comparing the text rejects other spellings of the same bytes, too.
	return p, hmac.Equal([]byte(cursor), []byte(i.cursor(org, from, to, p)))
}
