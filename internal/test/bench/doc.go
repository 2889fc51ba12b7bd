// Package bench holds benchmarks of the whole module. They compare it with the same
// work written by hand with net/http and encoding/json:
//
//	go test -run '^$' -bench . ./internal/test/bench
package bench
