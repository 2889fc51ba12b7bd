// Package contract holds no code but tests of what client and service say to
// each other, and of what the client tells: every body has exactly the fields
// of the interface, and a reply that has not ends in an error that says so;
// nothing that anybody can read (an error, a log, a printed value) holds a key
// or the signature of a URL. The replies that these and other tests take from
// testkit are held to the interface as well.
package contract
