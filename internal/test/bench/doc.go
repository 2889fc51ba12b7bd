// Package bench holds no code but benchmarks of the whole, beside the same
// work done by hand with net/http and encoding/json.
package bench
