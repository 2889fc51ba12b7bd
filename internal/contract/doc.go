// Package contract holds no code but tests of what client and service say to
// each other: every body has exactly the fields of the interface, and a reply
// that has not ends in an error that says so.
package contract
