// Package contract tests what the client and the service exchange, and what the client
// reveals. Every body has exactly the fields of the interface, and any other response
// results in an error. No error, log or printed value contains a key or the signature
// of a URL. The responses in testkit must match the interface too.
package contract
