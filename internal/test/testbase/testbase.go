// Package testbase is what tests of any package share, those included that
// package testkit stands on: transports and readers made of functions, errors of
// connections, and how thorough tests are to be. It imports nothing of this
// module, so that a package's own tests build little more than the package.
package testbase
