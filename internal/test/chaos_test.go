package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Callers of all kinds work on many meetings while faults hit their requests and their processes
// die. In the end, the test compares what the callers got with what the service has. A run depends
// only on its seed and on the jitter of the Clients, so repeat a seed that failed:
//
//	MINUTES_CHAOS_SEED=4711 MINUTES_CHAOS_RUNS=1 go test -run TestChaos -count=20 -v ./internal/test
//	MINUTES_CHAOS_RUNS=10000 go test -run TestChaos -timeout 2h ./internal/test # the first 10,000 seeds
//
// To add a caller, for example one that updates meetings:
//
//  1. In chaos_callers_test.go, write a method like callByCall, and add it to the list in chaos.run. Draw only
//     from its rnd.
//  2. Make each call with the context of its own c.step, which draws the faults of its requests. If the call
//     fails, let c.checkGaveUp check that a fault or the context was the reason. Inside c.note, record what
//     must exist at the end.
//  3. Break the behaviour that the caller checks, run 1,000 seeds, and see c.deviation report it.
func TestChaos(t *testing.T) {
	t.Parallel()
	first := 0
	runs := testbase.Many(400, 2)
	if testbase.UnderRace {
		runs = testbase.Many(40, 10)
	}
	_, _ = fmt.Sscan(os.Getenv("MINUTES_CHAOS_SEED"), &first)
	_, _ = fmt.Sscan(os.Getenv("MINUTES_CHAOS_RUNS"), &runs)
	for seed := first; seed < first+runs; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newChaos(t, uint64(seed)).run() })
		})
	}
}

// chaos is one run.
type chaos struct {
	t       *testing.T
	seed    uint64
	begun   time.Time
	srv     *minutestest.Server
	plain   *minutes.Client // gets no faults
	clients [2]*minutes.Client

	rate        float64 // of requests that get a fault
	outages     []outage
	replica     replica // answers reads
	lateEffects bool    // requests may take effect late
	rivals      bool    // several callers may work on one meeting

	calm         atomic.Bool  // no more faults
	sent         atomic.Int64 // requests
	open         atomic.Int64 // bodies of their responses
	callers      sync.WaitGroup
	lateRequests sync.WaitGroup
	log          testbase.Buffer

	mu      sync.Mutex
	known   map[string]*knowledge
	created map[string]int // how often a call reported a meeting as created
}

// knowledge is what callers know about the meetings of one name.
type knowledge struct {
	audio   minutes.Source
	size    int64
	sum     string
	alive   map[string]bool // by id; false: deleted
	orphans int             // meetings that may exist, but whose id no caller got
}

// The keys belong to one integration, so both Clients see the same meetings. The service audits
// each Client separately.
var chaosKeys = [...]string{"mk_live_5c1f08a4e2d94b7f", "mk_live_b29d7730ffae4c61", "mk_live_plain_0d44a1b2c3"}

func newChaos(t *testing.T, seed uint64) *chaos {
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := &chaos{
		t: t, seed: seed, begun: time.Now(),
		rate:        []float64{0.02, 0.1, 0.2, 0.35}[rnd.IntN(4)],
		lateEffects: rnd.IntN(3) == 0,
		rivals:      rnd.IntN(2) == 0,
		known:       map[string]*knowledge{},
		created:     map[string]int{},
	}
	c.srv = c.newService(rnd)
	c.plain = c.srv.ClientWithKey(chaosKeys[2])
	logger := minutes.WithLogger(slog.New(slog.NewTextHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for i := range c.clients {
		network := c.newNetwork(rand.New(rand.NewPCG(seed, uint64(1000+i))))
		c.clients[i] = c.srv.ClientWithKey(chaosKeys[i], logger,
			minutes.WithUploadConcurrency(1+rnd.IntN(4)), minutes.WithHTTPClient(&http.Client{Transport: network}))
	}
	c.replica = drawReplica(rand.New(rand.NewPCG(seed, 2)))
	for range rnd.IntN(3) {
		c.outages = append(c.outages, drawOutage(rnd))
	}
	return c
}

// newService draws a service.
func (c *chaos) newService(rnd *rand.Rand) *minutestest.Server {
	w := minutestest.DefaultWorld()
	w.Stages = minutestest.Stages{
		Prepare:    testkit.UpTo(rnd, 2*time.Minute),
		Transcribe: testkit.UpTo(rnd, 10*time.Minute),
		Write:      testkit.UpTo(rnd, 3*time.Minute),
	}
	w.Organisations[0].Keys = nil
	for _, secret := range chaosKeys {
		key := minutestest.Key{Secret: secret, IntegrationID: "int_ci"}
		w.Organisations[0].Keys = append(w.Organisations[0].Keys, key)
	}
	opts := []minutestest.Option{minutestest.WithWorld(w)}
	if c.lateEffects || c.rivals {
		// The second uploader learns by asking that it is too late.
		opts = append(opts, minutestest.WithoutAudit(minutestest.ViolationUploadURL))
	}
	srv := minutestest.NewServer(c.t, opts...)
	if rnd.IntN(3) == 0 {
		srv.SetPageSizes(1, rnd.IntN(51), rnd.IntN(51), rnd.IntN(51))
	}
	if rnd.IntN(2) == 0 {
		srv.Script(minutestest.Script{ClockSkew: testkit.UpTo(rnd, 10*time.Minute)})
	}
	return srv
}

// deviation fails the test.
func (c *chaos) deviation(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("MINUTES_CHAOS_SEED=%d: %s", c.seed, fmt.Sprintf(format, args...))
}

func (c *chaos) run() {
	testbase.Timeout(c.t, 7*24*time.Hour) // the test's name has the seed
	rnd := rand.New(rand.NewPCG(c.seed, 1))
	for n := range 2 + rnd.IntN(5) {
		who := fmt.Sprintf("m%d", n)
		own := rand.New(rand.NewPCG(c.seed, uint64(100+n)))
		callers := []func(string, *rand.Rand){c.callByCall, c.callByCall, c.process, c.process, c.batch, c.crowd}
		caller := callers[rnd.IntN(len(callers))]
		c.callers.Go(func() { caller(who, own) })
	}
	c.callers.Wait()
	c.lateRequests.Wait()
	c.compare()
	if c.t.Failed() && os.Getenv("MINUTES_CHAOS_SEED") != "" {
		for _, r := range c.srv.Requests() {
			at := r.At.Format("15:04:05.000")
			c.t.Log(at, r.Took, r.Operation, r.Path, r.Query, r.Status, r.Code, r.Fault, r.Caller)
		}
	}
}

// name returns a new knowledge of the meetings of a name, with a recording.
func (c *chaos) name(who string, rnd *rand.Rand) *knowledge {
	size := 1 + rnd.IntN(60_000)
	if rnd.IntN(20) == 0 {
		size *= 10
	}
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(rnd.Int()), byte(rnd.Int())}).Read(data)
	sum := sha256.Sum256(data)
	known := &knowledge{
		audio: minutes.FromReaderAt(bytes.NewReader(data), int64(size), "audio/mpeg"),
		size:  int64(size),
		sum:   hex.EncodeToString(sum[:]),
		alive: map[string]bool{},
	}
	c.note(func() { c.known[who] = known })
	return known
}

// note changes what the callers know.
func (c *chaos) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// script draws the outcome of the meetings that sc names.
func (c *chaos) script(rnd *rand.Rand, sc minutestest.Script) {
	failures := []minutes.Status{
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed,
		minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	}
	if i := rnd.IntN(12); i < len(failures) {
		sc.Outcome = failures[i]
	}
	if rnd.IntN(2) == 0 {
		sc.Stages = &minutestest.Stages{Transcribe: testkit.UpTo(rnd, 20*time.Minute)}
	}
	if sc.Outcome != "" || sc.Stages != nil {
		c.srv.Script(sc)
	}
}
