//go:build !race

package testkit

const UnderRace = false
