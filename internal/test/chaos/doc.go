// Package chaos tests the whole module: callers of all kinds work on many meetings
// while faults hit their requests and processes die. Each test compares the results
// that callers got with the service's state.
package chaos
