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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Callers of all kinds work on many meetings while faults hit their requests. The test
// compares the results that callers got with the service's state. A run depends only
// on its seed and on the jitter of the Client's own waits:
//
//	MINUTES_CHAOS_RUNS=10000 go test -run TestChaos ./internal/test  # the first 10,000 seeds
//	MINUTES_CHAOS_SEED=4711 MINUTES_CHAOS_RUNS=1 go test …           # one seed, with its requests
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, seed uint64) { newChaos(t, seed).run() })
}

// seeds calls run in a bubble for each seed, from MINUTES_CHAOS_SEED or 0. The number
// of seeds is MINUTES_CHAOS_RUNS or usual; without it, the race detector gets a tenth
// of usual and a quick run a twentieth.
func seeds(t *testing.T, usual int, run func(*testing.T, uint64)) {
	t.Helper()
	number := func(name string, otherwise int) int {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		require.NoError(t, err, name)
		return n
	}
	switch {
	case testbase.UnderRace:
		usual /= 10
	case !testbase.Long():
		usual /= 20
	}
	first, n := number("MINUTES_CHAOS_SEED", 0), number("MINUTES_CHAOS_RUNS", usual)
	const workers = 4
	for worker := range min(workers, n) {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for seed := first + worker; seed < first+n && !t.Failed(); seed += workers {
				synctest.Test(t, func(t *testing.T) { run(t, uint64(seed)) })
			}
		})
	}
}

// chaos is one run.
type chaos struct {
	t        *testing.T
	seed     uint64
	srv      *minutestest.Server
	plain    *minutes.Client // gets no faults
	clients  [2]*minutes.Client
	networks [2]*network

	rate        float64 // of requests that get a fault
	outages     []outage
	lateEffects bool        // requests may take effect late
	rivals      bool        // several callers may work on one meeting
	bad         string      // for hours, all polls of this meeting fail
	noFaults    atomic.Bool // no more faults
	live        func(worker int, rnd *rand.Rand) life

	sent         atomic.Int64 // requests of the two Clients
	open         atomic.Int64 // bodies of their responses
	begun        time.Time
	callers      sync.WaitGroup
	lateRequests sync.WaitGroup // late requests

	mu      sync.Mutex
	secrets []string
	log     testbase.Buffer
	known   map[string]*knowledge
	created map[string]int // how often Create reported a meeting as created
}

// knowledge is what callers know about the meetings of one name.
type knowledge struct {
	audio   minutes.Source
	size    int64
	sum     string
	alive   map[string]bool // ids
	orphans int             // meetings that may exist
}

// The keys belong to one integration: the Clients see the same meetings, and the
// service audits each Client separately.
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
	c.live = c.anyLife
	c.connect(rnd)
	for range rnd.IntN(3) {
		c.outages = append(c.outages, drawOutage(rnd, time.Now()))
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
	org := &w.Organisations[0]
	org.Keys = nil
	for _, secret := range chaosKeys {
		org.Keys = append(org.Keys, minutestest.Key{Secret: secret, IntegrationID: "int_ci"})
	}
	c.secrets = slices.Clone(chaosKeys[:])
	switch rnd.IntN(4) {
	case 0:
		org.Credits = new(rnd.IntN(6))
	case 1:
		org.TranscribeSeconds = new(rnd.IntN(20))
	}
	var opts []minutestest.Option
	if c.lateEffects || c.rivals {
		// The second uploader learns by asking that it is too late.
		opts = append(opts, minutestest.WithoutAudit(minutestest.ViolationUploadURL))
	}
	srv := minutestest.NewServer(c.t, append(opts, minutestest.WithWorld(w))...)
	if rnd.IntN(3) == 0 {
		sizes := []int{1}
		for range 10 {
			sizes = append(sizes, rnd.IntN(51))
		}
		srv.SetPageSizes(sizes...)
	}
	return srv
}

// connect draws the two Clients and their networks.
func (c *chaos) connect(rnd *rand.Rand) {
	logged, paced := rnd.IntN(8) == 0, rnd.IntN(4) == 0
	for i := range c.clients {
		opts := []minutes.Option{minutes.WithUploadConcurrency(1 + rnd.IntN(4))}
		if logged {
			opts = append(opts, minutes.WithLogger(slog.New(slog.NewTextHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		}
		if paced {
			opts = append(opts, minutes.WithRateLimit(4, 3))
		}
		c.networks[i] = c.newNetwork(uint64(i))
		c.clients[i] = c.srv.ClientWithKey(chaosKeys[i], append(opts, minutes.WithHTTPClient(&http.Client{Transport: c.networks[i]}))...)
	}
}

// deviation fails the test.
func (c *chaos) deviation(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("MINUTES_CHAOS_SEED=%d: %s", c.seed, fmt.Sprintf(format, args...))
}

// isSecret adds a text that no error and no log may contain.
func (c *chaos) isSecret(text string) {
	if text == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets = append(c.secrets, text)
}

func (c *chaos) showsSecret(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.secrets, func(s string) bool { return strings.Contains(text, s) })
}

func (c *chaos) run() {
	rnd := rand.New(rand.NewPCG(c.seed, 1))
	for n := range 2 + rnd.IntN(5) {
		who := fmt.Sprintf("m%d", n)
		own := rand.New(rand.NewPCG(c.seed, uint64(100+n)))
		c.callers.Go([]func(){
			func() { c.callByCall(who, own) },
			func() { c.callByCall(who, own) },
			func() { c.process(who, own) },
			func() { c.process(who, own) },
			func() { c.batch(who, own) },
		}[rnd.IntN(5)])
	}
	c.finish()
}

// finish waits for all callers and checks their results.
func (c *chaos) finish() {
	hangs := time.AfterFunc(7*24*time.Hour, func() {
		panic(fmt.Sprintf("MINUTES_CHAOS_SEED=%d: a call never returned", c.seed))
	})
	c.callers.Wait()
	c.lateRequests.Wait()
	hangs.Stop()
	c.compare()
	for _, v := range c.srv.Violations() {
		c.deviation("%v", v)
		for _, r := range c.srv.Requests() {
			if r.MeetingID == v.MeetingID || r.Operation == "meetings.list" {
				c.show(r)
			}
		}
	}
	if c.t.Failed() && os.Getenv("MINUTES_CHAOS_SEED") != "" {
		for _, r := range c.srv.Requests() {
			c.show(r)
		}
	}
}

func (c *chaos) show(r minutestest.Request) {
	c.t.Log(r.At.Format("15:04:05.000"), r.Took, r.Operation, r.Path, r.Query, r.Status, r.Code, r.Fault, r.Caller)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[who] = known
	return known
}

// knows records that a meeting exists, for certain or maybe.
func (c *chaos) knows(known *knowledge, id string, certain bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known.alive[id] = certain
}

// orphan records that a meeting may exist whose id no caller got.
func (c *chaos) orphan(known *knowledge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known.orphans++
}

func (c *chaos) made(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created[id]++
}

// script draws the outcome of the meetings of a name.
func (c *chaos) script(rnd *rand.Rand, sc minutestest.Script) (fails bool) {
	failures := []minutes.Status{
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed, minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	}
	if i := rnd.IntN(12); i < len(failures) {
		sc.Outcome = failures[i]
	}
	if rnd.IntN(2) == 0 {
		sc.Stages.Transcribe = testkit.UpTo(rnd, 20*time.Minute)
	}
	if sc.Outcome == "" && sc.Stages == (minutestest.Stages{}) {
		return false
	}
	c.srv.Script(sc)
	return sc.Outcome != ""
}
