//go:build race

package testbase

// UnderRace reports whether the race detector runs, which slows tests down.
const UnderRace = true
