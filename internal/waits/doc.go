// Package waits holds no code but tests of waiting, seen from outside: Clients
// wait for one meeting and for crowds, and what reaches the service is held
// against floors, pages and outages.
package waits
