package engine

import (
	crypto "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// ids makes the ids of a world, and the secret that it signs with. They cannot
// be guessed. With a seed, they are the same on each run.
type ids struct {
	mu     sync.Mutex
	random *rand.ChaCha8
}

func newIDs(seed uint64) *ids {
	var key [32]byte
	if seed == 0 {
		crypto.Read(key[:])
	} else {
		binary.LittleEndian.PutUint64(key[:], seed)
	}
	return &ids{random: rand.NewChaCha8(key)}
}

// read fills p with random bytes.
func (i *ids) read(p []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, _ = i.random.Read(p) // which never fails
}

// next returns an id of 100 random bits.
func (i *ids) next(prefix string) string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32
	b := make([]byte, 20)
	i.read(b)
	for k := range b {
		b[k] = alphabet[b[k]%32]
	}
	return prefix + string(b)
}
