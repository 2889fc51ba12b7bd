//go:build race

package testkit

// UnderRace tells tests that take much work to take less.
const UnderRace = true
