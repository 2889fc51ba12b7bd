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
	operation    = testkit.Operation
	creation     = testkit.Creation
	sent         = testkit.Sent
	job          = testkit.Job
	line         = testkit.Line
	quiet        = testkit.Buffer
	roundTripper = testkit.RoundTripper
	readerAt     = testkit.ReaderAtFunc
)

const (
	testKey   = testkit.Key
	underRace = testkit.UnderRace

	secretKey      = testkit.SecretKey
	secretSig      = testkit.SecretSig
	secretID       = testkit.SecretID
	presignedQuery = testkit.PresignedQuery
)

var (
	clientOf  = testkit.Client
	newClient = testkit.New
	answering = testkit.Answering
	canned    = testkit.Canned
	oneReply  = testkit.OneReply
	long      = testkit.Long
	silent    = testkit.Silent
	directed  = testkit.Directed

	operations     = testkit.Operations
	operationNamed = testkit.OperationNamed
	whole          = testkit.Whole
	fullVocabulary = testkit.FullVocabulary
	fixture        = testkit.Fixture
	requireForm    = testkit.RequireForm
	jobs           = testkit.Jobs

	errRefused   = testkit.ErrRefused
	failing      = testkit.Failing
	expired      = testkit.Expired
	peak         = testkit.Peak
	pipeTo       = testkit.PipeTo
	ownTransport = testkit.OwnTransport

	longStages = testkit.LongStages
	generous   = testkit.Generous
	rand64     = testkit.UpTo
	audio      = testkit.Audio
	noise      = testkit.Noise
	sound      = testkit.WAV
	uploaded   = testkit.Uploaded
	waiting    = testkit.Waiting

	requireArrived    = testkit.RequireArrived
	requireNothing    = testkit.RequireNothing
	requireError      = testkit.RequireError
	requirePlain      = testkit.RequirePlain
	requireStatus     = testkit.RequireStatus
	requireParamError = testkit.RequireParamError
	requireClean      = testkit.RequireClean
	requireCleanError = testkit.RequireCleanError
	logged            = testkit.Logged
)

// result is what a call returned, as a value that can be compared.
func result[T any](v T, err error) (any, error) { return testkit.Result(v, err) }

// crowd makes meetings to wait for, see testkit.Crowd.
func crowd(t testing.TB, srv *minutestest.Server, _ *minutes.Client, n, stride int, within time.Duration) []string {
	t.Helper()
	return testkit.Crowd(t, srv, n, stride, within)
}
