package testbase

import (
	"fmt"
	"testing"
	"time"
)

// Timeout ends a test that has taken longer than d, with a panic that names it and shows where it
// hangs. Tests that can only fail by hanging need it: polls go on for ever, and so does virtual time.
// In a bubble, d is virtual time.
func Timeout(t testing.TB, d time.Duration) {
	timer := time.AfterFunc(d, func() { panic(fmt.Sprint(t.Name(), " has not ended after ", d)) })
	t.Cleanup(func() { timer.Stop() })
}
