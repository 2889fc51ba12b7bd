// Package testkit is what tests of several packages share: Clients on services
// that behave as scripted, the operations of the interface as they look on the
// wire, recordings, faults, and checks. No user's binary holds it.
package testkit
