package chaos_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
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

// Chaos: callers of all kinds work on many meetings while requests meet every
// trouble there is, and what the callers were told is compared with what the
// service knows. A run is made from its seed alone, apart from the jitter of the
// Client's own waits:
//
//	MINUTES_CHAOS_RUNS=10000 go test -run TestChaos ./internal/test/chaos  # the first ten thousand
//	MINUTES_CHAOS_SEED=4711 MINUTES_CHAOS_RUNS=1 go test …            # one, with its requests
func TestChaos(t *testing.T) {
	t.Parallel()
	var total tally
	seeds(t, 300, func(t *testing.T, seed uint64) { newChaos(t, seed, &total).run() })
	t.Cleanup(func() { t.Log(total.String()) })
}

// So many waits that the Client reads pages, of any length, in place of single
// meetings.
func TestChaosCrowd(t *testing.T) {
	t.Parallel()
	var total tally
	seeds(t, 60, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed, &total)
		rnd := rand.New(rand.NewPCG(seed, 1))
		c.callers.Go(func() { c.crowd(rnd, false) })
		c.finish()
	})
	t.Cleanup(func() { t.Log(total.String()) })
}

// tally is what all runs together have seen.
type tally struct{ runs, requests, faults, meetings, waits, crashes atomic.Int64 }

func (n *tally) String() string {
	return fmt.Sprintf("%d runs, %d meetings, %d waits, %d crashes, %d requests, %d of them struck",
		n.runs.Load(), n.meetings.Load(), n.waits.Load(), n.crashes.Load(), n.requests.Load(), n.faults.Load())
}

// seeds calls run in a bubble for each seed: from 0, or from MINUTES_CHAOS_SEED,
// as many as usual in a long run, a tenth of them under the race detector, a
// twentieth otherwise, or as many as MINUTES_CHAOS_RUNS says.
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
	const lanes = 4
	for lane := range min(lanes, n) {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			for seed := first + lane; seed < first+n && !t.Failed(); seed += lanes {
				synctest.Test(t, func(t *testing.T) { run(t, uint64(seed)) })
			}
		})
	}
}

// chaos is one run.
type chaos struct {
	*tally
	t        *testing.T
	seed     uint64
	srv      *minutestest.Server
	plain    *minutes.Client // meets no trouble
	clients  [2]*minutes.Client
	networks [2]*witness

	rate     float64 // of requests that meet trouble
	outages  []outage
	lateness bool        // requests may take effect late
	rivals   bool        // several callers may work on one meeting
	calm     atomic.Bool // no more trouble
	live     func(worker, workers int, rnd *rand.Rand) life

	sent    atomic.Int64 // requests of the two Clients
	callers sync.WaitGroup
	under   sync.WaitGroup // late requests

	mu      sync.Mutex
	secrets []string
	log     testbase.Buffer
	told    map[string]*told
	created map[string]int // how often a caller was told that it made a meeting
}

// told is what callers were told of the meetings of one name.
type told struct {
	audio   minutes.Recording
	sum     string
	alive   map[string]bool // ids
	orphans int             // meetings that may be there, or not
}

// The keys of the two Clients are of one integration: both see the same
// meetings, and the service watches each Client for itself.
var chaosKeys = [...]string{"mk_live_5c1f08a4e2d94b7f", "mk_live_b29d7730ffae4c61", "mk_live_plain_0d44a1b2c3"}

func newChaos(t *testing.T, seed uint64, total *tally) *chaos {
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := &chaos{
		tally: total, t: t, seed: seed,
		rate:     []float64{0.02, 0.1, 0.2, 0.35}[rnd.IntN(4)],
		lateness: rnd.IntN(3) == 0,
		rivals:   rnd.IntN(2) == 0,
		told:     map[string]*told{},
		created:  map[string]int{},
	}
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
	if c.lateness || c.rivals {
		// Who comes second learns that by asking.
		opts = append(opts, minutestest.WithoutAudit(minutestest.ViolationUploadURL))
	}
	c.srv = minutestest.NewServer(t, append(opts, minutestest.WithWorld(w))...)
	if rnd.IntN(3) == 0 {
		c.srv.SetPageSize(func(limit, page int) int {
			return rand.New(rand.NewPCG(seed, uint64(page))).IntN(limit + 1)
		})
	}
	c.plain = c.srv.ClientWithKey(chaosKeys[2])
	c.live = c.anyLife
	logged := rnd.IntN(8) == 0
	paced := rnd.IntN(4) == 0
	for i := range c.clients {
		c.networks[i] = &witness{
			chaos: c, next: c.srv.HTTPClient().Transport,
			seen: map[string]sighting{}, waiting: map[string]int{}, since: map[string]time.Time{}, polls: rand.New(rand.NewPCG(seed, uint64(1000+i))),
		}
		opts := []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: c.networks[i]}), minutes.WithUploads(1 + rnd.IntN(4))}
		if logged {
			opts = append(opts, minutes.WithLogger(slog.New(slog.NewTextHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		}
		if paced {
			const rate, burst = 4, 3
			opts = append(opts, minutes.WithRateLimit(rate, burst))
			c.networks[i].manners.perPeak = rate + burst
		}
		c.clients[i] = c.srv.ClientWithKey(chaosKeys[i], opts...)
	}
	for range rnd.IntN(3) {
		c.outages = append(c.outages, drawOutage(rnd, time.Now()))
	}
	return c
}

// deviation is a failure of the test.
func (c *chaos) deviation(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("MINUTES_CHAOS_SEED=%d: %s", c.seed, fmt.Sprintf(format, args...))
}

// isSecret takes note of a text that no caller may ever read.
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
			func() { c.byHand(who, own) },
			func() { c.byHand(who, own) },
			func() { c.process(who, own) },
			func() { c.process(who, own) },
			func() { c.batch(who, own) },
		}[rnd.IntN(5)])
	}
	if rnd.IntN(10) == 0 {
		own := rand.New(rand.NewPCG(c.seed, 99))
		c.callers.Go(func() { c.crowd(own, true) })
	}
	c.finish()
}

// finish waits for all callers and compares what they were told.
func (c *chaos) finish() {
	hangs := time.AfterFunc(7*24*time.Hour, func() {
		panic(fmt.Sprintf("MINUTES_CHAOS_SEED=%d: somebody waits forever", c.seed))
	})
	c.callers.Wait()
	c.under.Wait()
	hangs.Stop()
	c.settle()
	c.runs.Add(1)
	c.requests.Add(c.sent.Load())
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

// settle compares what the service knows at the end with what was told.
func (c *chaos) settle() {
	c.calm.Store(true)
	time.Sleep(time.Minute) // connections that linger are gone then
	c.nothingRuns()
	requests := c.sent.Load()
	byName := map[string][]string{}
	c.srv.SetPageSize(nil)
	for m, err := range c.plain.Meetings.All(c.t.Context(), &minutes.MeetingListParams{Limit: 50}) {
		if err != nil {
			c.deviation("listing: %v", err)
			return
		}
		name, _, _ := strings.Cut(m.Title, ".")
		byName[name] = append(byName[name], m.ID)
	}
	for name, ids := range byName {
		known := c.told[name]
		if known == nil {
			c.deviation("nobody made %s", name)
			continue
		}
		strangers := 0
		for _, id := range ids {
			c.meetings.Add(1)
			c.oneAudio(id, known)
			if !known.alive[id] {
				strangers++
			}
		}
		if strangers > known.orphans {
			c.deviation("%s: %d meetings that no caller knows of, and %d may be", name, strangers, known.orphans)
		}
	}
	for name, known := range c.told {
		for id, certain := range known.alive {
			if certain && !slices.Contains(byName[name], id) {
				c.deviation("%s: %s is lost", name, id)
			}
		}
	}
	for id, n := range c.created {
		if n > 1 {
			c.deviation("%d callers were told that they made %s", n, id)
		}
	}
	if log := c.log.String(); c.showsSecret(log) {
		c.deviation("the log shows a secret")
	}
	time.Sleep(time.Hour)
	if c.sent.Load() != requests {
		c.deviation("requests after the last call")
	}
}

// oneAudio checks that a meeting has the recording that was sent, once, or none.
func (c *chaos) oneAudio(id string, known *told) {
	m, ok := c.srv.Meeting(id)
	if !ok {
		return
	}
	n := 0
	for _, h := range m.History {
		if h.Status == minutes.StatusAudioUploaded {
			n++
		}
	}
	switch {
	case m.Audio == nil && n == 0:
	case m.Audio == nil || n != 1:
		c.deviation("%s got its audio %d times", id, n)
	case m.Audio.SHA256 != known.sum || m.Audio.Size != known.audio.Size:
		c.deviation("%s has audio that nobody sent", id)
	}
}

var bubbleOf = regexp.MustCompile(`synctest bubble (\d+)`)

// nothingRuns checks that this goroutine is alone in its bubble, but for the
// test's own.
func (c *chaos) nothingRuns() {
	synctest.Wait()
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := strings.Split(string(buf), "\n\n")
	own := bubbleOf.FindString(stacks[0])
	if own == "" {
		c.deviation("no bubble in %s", stacks[0])
	}
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleOf.FindString(head) == own && !strings.Contains(stack, "testing/synctest.Test") {
			c.deviation("a goroutine is left:\n%s", stack)
		}
	}
}

// name makes what is known of the meetings of a name, and their recording.
func (c *chaos) name(who string, rnd *rand.Rand) *told {
	size := 1 + rnd.IntN(60_000)
	if rnd.IntN(20) == 0 {
		size *= 10
	}
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(rnd.Int()), byte(rnd.Int())}).Read(data)
	sum := sha256.Sum256(data)
	known := &told{
		audio: minutes.Recording{Audio: bytes.NewReader(data), Size: int64(size), ContentType: "audio/mpeg"},
		sum:   hex.EncodeToString(sum[:]),
		alive: map[string]bool{},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[who] = known
	return known
}

// knows notes that a meeting is there, or may be.
func (c *chaos) knows(known *told, id string, certain bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known.alive[id] = certain
}

// orphan notes that there may be a meeting that the caller was not told of.
func (c *chaos) orphan(known *told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known.orphans++
}

func (c *chaos) made(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created[id]++
}

// script draws what becomes of the meetings of a name.
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
	if err := c.srv.Script(sc); err != nil {
		c.deviation("%v", err)
	}
	return sc.Outcome != ""
}

// step begins a call.
func (c *chaos) step(ctx context.Context, name string, rnd *rand.Rand) *step {
	s := &step{name: name, single: true, rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))}
	s.ctx = context.WithValue(ctx, stepKey{}, s)
	context.AfterFunc(ctx, func() { s.note(func() { s.over = time.Now() }) })
	return s
}

// typed checks what every error has to be.
func (c *chaos) typed(s *step, err error) {
	_, api := errors.AsType[*minutes.Error](err)
	_, storage := errors.AsType[*minutes.StorageError](err)
	_, wait := errors.AsType[*minutes.WaitError](err)
	_, failed := errors.AsType[*minutes.MeetingFailedError](err)
	if !api && !storage && !wait && !failed {
		c.deviation("%s: %T is none of the package's errors: %v", s.name, err, err)
	}
	s.note(func() {
		if !s.over.IsZero() && time.Since(s.over) > 0 {
			c.deviation("%s: returned %v after its context was done", s.name, time.Since(s.over))
		}
	})
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		if text := fmt.Sprintf(verb, err); c.showsSecret(text) {
			c.deviation("%s: the error shows a secret: %s", s.name, text)
		}
	}
}

// gaveUp checks an error of a call that is repeated where that is safe: it is
// due where the caller ended it, or nothing was left to try.
func (c *chaos) gaveUp(s *step, err error) {
	c.typed(s, err)
	if ended := s.ctx.Err(); ended != nil && errors.Is(err, ended) || s.spent() {
		return
	}
	c.deviation("%s gave up early: %v", s.name, err)
}

// gaveUpOnce is gaveUp for a call that must not be repeated once it may have
// taken effect.
func (c *chaos) gaveUpOnce(s *step, err error) {
	if last := s.last(); last != nil && last.ambiguous() {
		c.typed(s, err)
		return
	}
	c.gaveUp(s, err)
}

// mayHaveActed: some try may have taken effect.
func (s *step) mayHaveActed() bool { return s.any((*try).ambiguous) }
