// Package test tests the whole module. The names of its files say what they do.
//
// In contract files, tests check what the client and the service exchange, and what the
// client reveals. Every body has exactly the fields of the interface, and any other
// response results in an error. No error, log or printed value contains a key or the
// signature of a URL. The responses in testkit must match the interface too.
//
// In chaos files, callers of all kinds work on many meetings while faults hit their
// requests and processes die. Each test compares the results that callers got with the
// service's state.
//
// In bench files, benchmarks compare the module with the same work written by hand with
// net/http and encoding/json:
//
//	go test -run '^$' -bench . ./internal/test
package test
