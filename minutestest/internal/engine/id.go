package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// ids makes what nobody can guess: the ids of a world, and the secret under
// which it signs. With a seed it makes the same ones each time.
type ids struct {
	mu   sync.Mutex
	from *rand.ChaCha8 // nil: the runtime's generator, which needs no lock
}

func newIDs(seed uint64) *ids {
	if seed == 0 {
		return &ids{}
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &ids{from: rand.NewChaCha8(key)}
}

func (i *ids) uint64() uint64 {
	if i.from == nil {
		return rand.Uint64()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.from.Uint64()
}

// next returns an id of 100 random bits.
func (i *ids) next(prefix string) string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32
	b := make([]byte, 0, len(memberPrefix)+20)
	b = append(b, prefix...)
	for range 2 {
		for n, k := i.uint64(), 0; k < 10; k++ {
			b = append(b, alphabet[n&31])
			n >>= 5
		}
	}
	return string(b)
}
