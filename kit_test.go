package minutes_test

import (
	"testing"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// What the tests of this package have from the kit, under the names they know
// it by.
type (
	creation     = testkit.Creation
	quiet        = testkit.Buffer
	roundTripper = testkit.RoundTripper
	readerAt     = testkit.ReaderAtFunc
)

const (
	testKey   = testkit.Key
	underRace = testkit.UnderRace
)

var (
	clientOf  = testkit.Client
	newClient = testkit.New
	answering = testkit.Answering
	canned    = testkit.Canned
	oneReply  = testkit.OneReply
	long      = testkit.Long
	silent    = testkit.Silent

	operations     = testkit.Operations
	operationNamed = testkit.OperationNamed
	fullVocabulary = testkit.FullVocabulary
	fixture        = testkit.Fixture
	requireForm    = testkit.RequireForm

	errRefused = testkit.ErrRefused
	failing    = testkit.Failing
	expired    = testkit.Expired
	pipeTo     = testkit.PipeTo

	longStages = testkit.LongStages
	generous   = testkit.Generous
	audio      = testkit.Audio
	noise      = testkit.Noise
	sound      = testkit.WAV
	uploaded   = testkit.Uploaded
	waiting    = testkit.Waiting

	requireArrived    = testkit.RequireArrived
	requireNothing    = testkit.RequireNothing
	requireError      = testkit.RequireError
	requireStatus     = testkit.RequireStatus
	requireParamError = testkit.RequireParamError
)

// result is what a call returned, as a value that can be compared.
func result[T any](v T, err error) (any, error) { return testkit.Result(v, err) }

// crowd makes meetings to wait for, see testkit.Crowd.
func crowd(t testing.TB, srv *minutestest.Server, _ *minutes.Client, n, stride int, within time.Duration) []string {
	t.Helper()
	return testkit.Crowd(t, srv, n, stride, within)
}
