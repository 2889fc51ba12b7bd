// Package testkit holds what tests of several packages share: Clients of scripted
// services, the operations of the interface in their wire form, recordings, faults,
// and checks. No user's binary contains it.
package testkit
