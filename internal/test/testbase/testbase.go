// Package testbase holds what tests of any package share: transports and readers made
// from functions, connection errors, and how thorough tests are. It imports nothing
// of this module, so a package's own tests build little more than the package.
package testbase
