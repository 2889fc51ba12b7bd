// Package test holds the tests that cross packages. Every other rule has its test where it is
// decided.
//
//   - contract: each operation gets from the fake what the API reference promises, needs its scope,
//     and is repeated only if that is safe. No error, log or printed value shows a key or the
//     signature of an upload URL.
//
//   - chaos: callers of all kinds work on many meetings while faults hit their requests and processes
//     die. In the end, what they got must agree with what the service has.
//
//   - bench: the cost of the Client beside the same work written by hand with net/http and encoding/json:
//
//     go test -run '^$' -bench . ./internal/test
package test
