package minutes_test

import "github.com/meeting-minutes/minutes-go/internal/testkit"

// What process_test.go has from the kit.
var (
	answering  = testkit.Answering
	audio      = testkit.Audio
	clientOf   = testkit.Client
	generous   = testkit.Generous
	long       = testkit.Long
	longStages = testkit.LongStages
	sound      = testkit.WAV
	uploaded   = testkit.Uploaded
	waiting    = testkit.Waiting

	requireNothing    = testkit.RequireNothing
	requireParamError = testkit.RequireParamError
)

// result is what a call returned, as a value that can be compared.
func result[T any](v T, err error) (any, error) { return testkit.Result(v, err) }
