package minutes_test

import "testing"

func TestTemplatesOnTheWire(t *testing.T) {
	t.Parallel()
	onTheWire(t, "templates", 1)
}
