package engine

import "math/rand/v2"

// newID returns an id nobody can guess: 100 bits of the runtime's ChaCha8
// generator, which needs no lock.
func newID(prefix string) string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32
	b := make([]byte, 0, len(memberPrefix)+20)
	b = append(b, prefix...)
	for range 2 {
		for n, i := rand.Uint64(), 0; i < 10; i++ {
			b = append(b, alphabet[n&31])
			n >>= 5
		}
	}
	return string(b)
}
