//go:build race

package testbase

// UnderRace tells tests that take much work to take less.
const UnderRace = true
