package minutestest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Mistakes in the test itself are also reported in a fuzz target, in which a *testing.F can neither
// fail nor help.
func FuzzServer(f *testing.F) {
	srv := minutestest.NewServer(f)
	f.Add(0)
	f.Fuzz(func(t *testing.T, _ int) {
		assert.PanicsWithError(t, `minutestest: Inject: no fault given`, func() { srv.Inject(minutestest.Match{}) })
		assert.Panics(t, func() { srv.ClientWithKey("") })
	})
}
