package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A step is one call of a caller. It draws its troubles from its own generator, so they do not
// depend on other calls. Polls belong to no step.
type step struct {
	name string
	ctx  context.Context

	mu       sync.Mutex
	rnd      *rand.Rand
	begun    time.Time
	over     time.Time // when ctx was done
	troubled bool      // something went wrong with a request
	unknown  bool      // a request may have taken effect without a response
	late     bool      // an upload may take effect after the call
}

type stepKey struct{}

// step starts a call.
func (c *chaos) step(ctx context.Context, name string, rnd *rand.Rand) *step {
	s := &step{name: name, begun: time.Now(), rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))}
	s.ctx = context.WithValue(ctx, stepKey{}, s)
	context.AfterFunc(ctx, func() { s.note(func() { s.over = time.Now() }) })
	return s
}

// is reads a field of the step.
func (s *step) is(field *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

// note updates the step, if there is one.
func (s *step) note(change func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
}

// A network connects the Client of one process to the service. It applies troubles to requests.
type network struct {
	*chaos
	next http.RoundTripper

	mu   sync.Mutex
	rnd  *rand.Rand // draws the troubles of polls
	die  func()     // ends the process; nil: it does not die
	left int        // requests until then
	when death
}

// A death says when the last request of a process ends.
type death int

const (
	beforeIt death = iota // it is not sent
	midway                // half of its body is sent
	afterIt               // it takes effect, but its response is not read
)

// newNetwork returns the network of a process.
func (c *chaos) newNetwork(rnd *rand.Rand) *network {
	return &network{chaos: c, next: c.srv.NewHTTPClient().Transport, rnd: rnd}
}

var errDead = errors.New("the process is dead")

func (w *network) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.left--
	dies := w.die != nil && w.left == 0
	dead := w.die != nil && w.left < 0
	w.mu.Unlock()
	switch {
	case !dies && !dead:
		return w.pass(req)
	case dead || w.when == beforeIt:
		closeBody(req)
	default:
		w.last(req)
	}
	if dies {
		w.die()
	}
	return nil, errDead
}

// last sends the request at which the process dies, or a part of it.
func (w *network) last(req *http.Request) {
	if w.when == midway && req.Body != nil {
		whole := req.Body
		req = req.Clone(req.Context())
		req.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(whole, req.ContentLength/2), whole}
	}
	if resp, err := w.pass(req); err == nil {
		_ = resp.Body.Close()
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// pass sends a request with a trouble, and notes for its step what the caller cannot know.
func (w *network) pass(req *http.Request) (*http.Response, error) {
	op, id := testkit.Identify(req)
	s, _ := req.Context().Value(stepKey{}).(*step)
	var what trouble
	if s != nil {
		s.note(func() {
			what = w.draw(s.rnd, op, false)
			s.troubled = s.troubled || what.kind != ""
			s.late = s.late || what.late > 0 && op == minutes.OpUpload
		})
	} else {
		w.mu.Lock()
		what = w.draw(w.rnd, op, true)
		w.mu.Unlock()
	}
	unknown := func() { s.note(func() { s.unknown = true }) }
	w.sent.Add(1)
	resp, err := w.send(req, op, id, what)
	if err != nil {
		if what.err == nil {
			unknown()
		}
		return nil, err
	}
	if resp.StatusCode >= 500 {
		unknown()
	}
	w.open.Add(1)
	resp.Body = &watchedBody{resp.Body, sync.OnceFunc(func() { w.open.Add(-1) }), unknown}
	return resp, nil
}

// send sends a request with its trouble.
func (w *network) send(req *http.Request, op minutes.Operation, id string, what trouble) (*http.Response, error) {
	switch {
	case what.kind == "":
		return w.next.RoundTrip(req)
	case what.err != nil:
		closeBody(req)
		return nil, what.err
	case what.late > 0:
		return nil, w.deliverLate(req, what.late)
	}
	key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	match := minutestest.Match{Operation: op, MeetingID: id, Key: key}
	if op == minutes.OpMeetingsCreate { // of this caller only
		var params minutes.MeetingCreateParams
		body, _ := io.ReadAll(req.Body)
		_ = json.Unmarshal(body, &params)
		closeBody(req)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		match.Title = params.Title
	}
	defer w.srv.Inject(match, what.fault).Optional().Stop()
	return w.next.RoundTrip(req)
}

// deliverLate delivers a request after its sender gave up.
func (w *network) deliverLate(req *http.Request, after time.Duration) error {
	again := req.Clone(context.Background()) // without its traces, too
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		closeBody(req)
		if err != nil {
			return err
		}
		again.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.lateRequests.Go(func() {
		time.Sleep(after)
		if resp, err := w.srv.HTTPClient().Transport.RoundTrip(again); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// watchedBody is a response body that reports whether it is closed, and whether it breaks off.
type watchedBody struct {
	io.ReadCloser
	closed, lost func()
}

func (b *watchedBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.lost()
	}
	return n, err
}

// A trouble is what goes wrong with one request: a fault of the service or of the network. No kind:
// nothing.
type trouble struct {
	kind  string
	fault minutestest.Fault
	err   error         // instead of the fault: there is no connection, for this reason
	late  time.Duration // instead of the fault: the client gets a reset, and the request takes effect this much later
}

func faulty(kind string, f minutestest.Fault) trouble { return trouble{kind: kind, fault: f} }

// callTroubles returns one trouble of each kind that may hit a request to the API.
func callTroubles(rnd *rand.Rand) []trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	page := func(status int) minutestest.Fault {
		return minutestest.Respond(status, "text/html", http.StatusText(status))
	}
	return []trouble{
		faulty("429", minutestest.RateLimit("")),
		faulty("429 with seconds", minutestest.RateLimit(fmt.Sprint(int(seconds.Seconds())))),
		faulty("429 with a long time", minutestest.RateLimit("90")), // longer than the Client waits
		faulty("500", minutestest.Refuse(minutes.ErrInternal)),
		faulty("500 after effect", minutestest.Refuse(minutes.ErrInternal).AfterEffect()),
		faulty("503 after effect", page(503).AfterEffect()),
		faulty("503 with a long time", page(503).WithHeader("Retry-After", "900")),
		faulty("late 504 after effect", page(504).Delayed(seconds).AfterEffect()),
		faulty("reset", minutestest.Reset()),
		faulty("lost response", minutestest.LoseResponse()),
		faulty("response lost late", minutestest.LoseResponse().Delayed(seconds)),
		faulty("truncated response", minutestest.Truncate(rnd.Int64N(200))),
		faulty("dripping response", minutestest.Drip(seconds*4)), // sometimes longer than an attempt may take
		faulty("slow response", minutestest.Delay(seconds*4)),
		{kind: "connection refused", err: testbase.ErrRefused},
		{kind: "late effect", late: seconds / 8},
	}
}

// uploadTroubles returns one trouble of each kind that may hit a PUT to storage.
func uploadTroubles(rnd *rand.Rand) []trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	return []trouble{
		faulty("early 200", minutestest.Respond(http.StatusOK, "", "")), // before the recording is sent
		faulty("429", minutestest.RateLimit("7")),
		faulty("503", minutestest.RefuseUpload(503, "SlowDown")),
		faulty("500 after effect", minutestest.RefuseUpload(500, "InternalError").AfterEffect()),
		faulty("reset", minutestest.Reset()),
		faulty("lost response", minutestest.LoseResponse()),
		faulty("response lost late", minutestest.LoseResponse().Delayed(seconds)),
		faulty("reset midway", minutestest.ResetUpload(rnd.Int64N(40_000))),
		faulty("slow response", minutestest.Delay(seconds*5)), // sometimes longer than an upload may stall
		faulty("expired URL", minutestest.ExpireURL()),
		{kind: "connection refused", err: testbase.ErrRefused},
		{kind: "late effect", late: seconds / 8},
	}
}

// edgeTroubles returns troubles that something in front of the service causes. No retry of a call
// helps.
func edgeTroubles() []trouble {
	rejected := &rest.ProxyError{Host: "proxy.example:3128", Status: "407 Proxy Authentication Required"}
	list := []trouble{
		{kind: "untrusted certificate", err: testbase.ErrUntrusted},
		{kind: "CONNECT rejected", err: rejected},
	}
	for _, status := range []int{401, 403, 404} {
		page := minutestest.Respond(status, "text/html", "<title>No</title>")
		list = append(list, faulty(fmt.Sprint("page with ", status), page))
	}
	return list
}

// draw decides whether a request gets a trouble, and which.
func (c *chaos) draw(rnd *rand.Rand, op minutes.Operation, polled bool) trouble {
	if c.calm.Load() {
		return trouble{}
	}
	now := time.Now()
	for _, o := range c.outages {
		if now.After(o.from) && now.Before(o.to) && (polled || !o.polls) {
			if op == minutes.OpUpload {
				return o.upload
			}
			return o.call
		}
	}
	if rnd.Float64() >= c.rate {
		return c.replica.draw(rnd, op)
	}
	list := callTroubles(rnd)
	switch {
	case rnd.IntN(8) == 0:
		list = edgeTroubles()
	case op == minutes.OpUpload:
		list = uploadTroubles(rnd)
	}
	what := list[rnd.IntN(len(list))]
	if what.late > 0 && (!c.lateEffects || op == minutes.OpMeetingsGet || op == minutes.OpMeetingsList) {
		return faulty("lost response", minutestest.LoseResponse())
	}
	return what
}

// replica is a database that answers reads. The zero replica is never late.
type replica struct {
	// late is how late it is at most when it answers about one meeting: what was just created is not
	// found, and what has just changed is as before.
	late time.Duration
	// listLate is how late the list is.
	listLate time.Duration
	// stillFrom is when the list stands still.
	stillFrom time.Time
	// stillTo is when it goes on.
	stillTo time.Time
}

// drawReplica draws a replica for every third run. When it answers about one meeting, it is late by
// less than the time between two polls, for which the Client remembers that a meeting exists.
func drawReplica(rnd *rand.Rand) (r replica) {
	if rnd.IntN(3) > 0 {
		return r
	}
	r.late = testkit.UpTo(rnd, 20*time.Second)
	switch rnd.IntN(3) {
	case 0:
		r.listLate = testkit.UpTo(rnd, 10*time.Minute)
	case 1:
		r.stillFrom = time.Now().Add(testkit.UpTo(rnd, 10*time.Minute))
		r.stillTo = r.stillFrom.Add(testkit.UpTo(rnd, time.Hour))
	}
	return r
}

// draw decides whether a read shows the past. Minutes and transcripts are never late: two waits for the
// same meeting each fetch them, and each asks again half a minute later if they are not ready, but
// the service's audit takes the two for one that asks too often.
func (r replica) draw(rnd *rand.Rand, op minutes.Operation) trouble {
	var late time.Duration
	switch op {
	case minutes.OpMeetingsList:
		late = r.listLate
		now := time.Now()
		if now.After(r.stillFrom) && now.Before(r.stillTo) {
			late = now.Sub(r.stillFrom)
		}
	case minutes.OpMeetingsGet:
		if r.late > 0 && rnd.IntN(3) == 0 {
			late = testkit.UpTo(rnd, r.late)
		}
	}
	if late <= 0 {
		return trouble{}
	}
	return faulty("stale read", minutestest.Stale(late))
}

// outage is a time in which every request gets the same trouble.
type outage struct {
	from, to     time.Time
	call, upload trouble
	polls        bool // only polls do
}

func drawOutage(rnd *rand.Rand) outage {
	calls := callTroubles(rnd) // the last is late
	uploads := uploadTroubles(rnd)
	o := outage{call: calls[rnd.IntN(len(calls)-1)], upload: uploads[rnd.IntN(len(uploads)-1)]}
	if rnd.IntN(4) == 0 {
		edges := edgeTroubles()
		o.call = edges[rnd.IntN(len(edges))]
		o.polls = true
	}
	o.from = time.Now().Add(testkit.UpTo(rnd, 10*time.Minute))
	o.to = o.from.Add(testkit.UpTo(rnd, 3*time.Minute))
	return o
}
