package minutestest

import "github.com/meeting-minutes/minutes-go/internal/fake/mistake"

// reporter is where a Server reports mistakes of the code that uses it, such as an id that does not
// exist.
type reporter interface {
	// Helper marks the caller as a function whose line says nothing about the mistake.
	Helper()
	// Mistake reports what is wrong with a call of a method. It need not return.
	Mistake(method string, err error)
}

// reporterOf returns the reporter of a Server that tb made. A fuzz target must not use its
// *testing.F, so it gets panics.
func reporterOf(tb TB) reporter {
	if _, fuzzing := tb.(interface{ Fuzz(any) }); fuzzing {
		return programReporter{}
	}
	return testReporter{tb}
}

// testReporter fails a test.
type testReporter struct{ TB }

func (r testReporter) Mistake(method string, err error) {
	r.Helper()
	r.Fatalf("%v", mistake.Mistake{Method: method, Err: err})
}

// programReporter panics, because without a test nobody else would notice.
type programReporter struct{}

func (programReporter) Helper() {}

func (programReporter) Mistake(method string, err error) {
	panic(mistake.Mistake{Method: method, Err: err})
}
