//go:build !race

package minutes_test

const underRace = false
