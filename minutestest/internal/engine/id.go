package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"sync"
)

// ids makes the ids of a Service, and keeps the secret that it signs with. Ids cannot be guessed.
// With a seed they are the same on each run, and those of one kind do not depend on how many of
// another kind were made meanwhile: a poll more or less changes no meeting's id.
type ids struct {
	secret [32]byte
	mu     sync.Mutex
	counts map[string]uint64 // by prefix
}

func newIDs(seed uint64) *ids {
	i := &ids{counts: map[string]uint64{}}
	if seed == 0 {
		_, _ = rand.Read(i.secret[:]) // which never fails
	} else {
		i.secret = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("seed"), seed))
	}
	return i
}

// next returns an id of 100 bits.
func (i *ids) next(prefix string) string {
	i.mu.Lock()
	i.counts[prefix]++
	n := i.counts[prefix]
	i.mu.Unlock()
	sum := i.mac("id", prefix, string(binary.LittleEndian.AppendUint64(nil, n)))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum)[:20])
}

// mac signs texts.
func (i *ids) mac(parts ...string) []byte {
	h := hmac.New(sha256.New, i.secret[:])
	h.Write([]byte(strings.Join(parts, "\x00")))
	return h.Sum(nil)
}
