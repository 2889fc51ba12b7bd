// Package leaks holds no code but tests that nothing which anybody can read (an
// error, a log, a printed value) holds a key or the signature of a URL.
package leaks
