//go:build !race

package testbase

const UnderRace = false
