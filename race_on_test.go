//go:build race

package minutes_test

// underRace tells tests that take much work to take less.
const underRace = true
