package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// position is the point at which a listing continues: with the meetings older
// than number before. Meetings created or deleted meanwhile do not change it.
type position struct {
	before uint64
	page   uint64 // counts the pages of the listing, so that each has its own cursor
}

const macSize = 16

// cursor writes a position as an opaque string, bound to the organisation and
// the filters, but not to the limit or the key (D24).
func (w *world) cursor(org string, from, to string, p position) string {
	b := make([]byte, 0, 2*binary.MaxVarintLen64+macSize)
	b = binary.AppendUvarint(b, p.before)
	b = binary.AppendUvarint(b, p.page)
	b = append(b, w.cursorMAC(org, from, to, b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// position reads a string made by cursor, and no other.
func (w *world) position(org string, from, to string, cursor string) (p position, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < macSize || base64.RawURLEncoding.EncodedLen(len(b)) != len(cursor) { // the decoder skips line breaks
		return p, false
	}
	payload := b[:len(b)-macSize]
	if !hmac.Equal(b[len(payload):], w.cursorMAC(org, from, to, payload)) {
		return p, false
	}
	var n int
	p.before, n = binary.Uvarint(payload)
	p.page, _ = binary.Uvarint(payload[n:])
	return p, true
}

func (w *world) cursorMAC(org string, from, to string, payload []byte) []byte {
	mac := hmac.New(sha256.New, w.secret[:])
	fmt.Fprintf(mac, "cursor %q %q %q ", org, from, to)
	mac.Write(payload)
	return mac.Sum(nil)[:macSize]
}
