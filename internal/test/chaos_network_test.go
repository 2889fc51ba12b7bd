package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A step is one call of a caller, with its attempts. It draws its troubles from its own generator, so they do not depend
// on other calls. Polls belong to no step.
type step struct {
	name     string
	ctx      context.Context
	rnd      *rand.Rand
	mu       sync.Mutex
	over     time.Time // when ctx was done
	attempts []*attempt
}

type attempt struct {
	op       minutes.Operation
	status   int
	lost     bool // no response, or only a part
	dial     bool // and not even a connection
	late     bool // it takes effect later
	troubled bool
}

// mayHaveTakenEffect reports whether it may have taken effect without a response.
func (t *attempt) mayHaveTakenEffect() bool { return t.lost && !t.dial || t.status >= 500 }

type stepKey struct{}

// step starts a call.
func (c *chaos) step(ctx context.Context, name string, rnd *rand.Rand) *step {
	s := &step{name: name, rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))}
	s.ctx = context.WithValue(ctx, stepKey{}, s)
	context.AfterFunc(ctx, func() { s.note(func() { s.over = time.Now() }) })
	return s
}

// note updates an attempt.
func (s *step) note(change func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
}

func (s *step) any(is func(*attempt) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.attempts, is)
}

// mayHaveTakenEffect reports whether any attempt may have taken effect.
func (s *step) mayHaveTakenEffect() bool { return s.any((*attempt).mayHaveTakenEffect) }

// A network connects one Client to the service. It applies troubles to requests.
type network struct {
	*chaos
	next      http.RoundTripper
	revokedAt time.Time // the service rejects the key from then on; zero: it never does
	rejected  atomic.Int64

	mu    sync.Mutex
	polls *rand.Rand // draws the troubles of polls
}

// newNetwork returns the network of a process.
func (c *chaos) newNetwork(number uint64) *network {
	return &network{chaos: c, next: c.srv.NewHTTPClient().Transport, polls: rand.New(rand.NewPCG(c.seed, 1000+number))}
}

func (w *network) RoundTrip(req *http.Request) (*http.Response, error) {
	op, id := testkit.Identify(req)
	if op == minutes.OpUpload {
		w.isSecret(req.URL.RawQuery)
		w.isSecret(req.URL.Query().Get("X-Amz-Signature"))
	}
	s, _ := req.Context().Value(stepKey{}).(*step)
	what := w.troubleOf(op, id, s)
	t := &attempt{op: op, troubled: what.kind != "", dial: what.err != nil, late: what.late > 0}
	s.note(func() { s.attempts = append(s.attempts, t) })
	w.sent.Add(1)
	resp, err := w.send(req, op, id, what)
	if err != nil {
		s.note(func() { t.lost = true })
		return nil, err
	}
	s.note(func() { t.status = resp.StatusCode })
	w.open.Add(1)
	resp.Body = &watchedBody{resp.Body, sync.OnceFunc(func() { w.open.Add(-1) }), func() { s.note(func() { t.lost = true }) }}
	return resp, nil
}

// badFor is how long polls of the bad meeting fail.
const badFor = 3 * time.Hour

// troubleOf returns what goes wrong with an attempt.
func (w *network) troubleOf(op minutes.Operation, id string, s *step) (what trouble) {
	now := time.Now()
	switch {
	case !w.revokedAt.IsZero() && !now.Before(w.revokedAt):
		w.rejected.Add(1)
		return faulty("revoked key", minutestest.Refuse(minutes.ErrUnauthenticated))
	case s != nil:
		s.note(func() { what = w.draw(s.rnd, op, false) })
	case id != "" && id == w.bad && now.Sub(w.begun) < badFor:
		return faulty("bad meeting", minutestest.Refuse(minutes.ErrInternal))
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		what = w.draw(w.polls, op, true)
	}
	return what
}

// send sends a request with its trouble.
func (w *network) send(req *http.Request, op minutes.Operation, id string, what trouble) (*http.Response, error) {
	switch {
	case what.kind == "":
		return w.next.RoundTrip(req)
	case what.err != nil:
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, what.err
	case what.late > 0:
		return nil, w.deliverLate(req, what.late)
	}
	match := minutestest.Match{Operation: op, MeetingID: id, Key: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")}
	if op == minutes.OpMeetingsCreate { // of this caller only
		var params minutes.MeetingCreateParams
		if body, err := req.GetBody(); err == nil {
			_ = json.NewDecoder(body).Decode(&params)
		}
		match.Title = params.Title
	}
	defer w.srv.Inject(match, what.fault).Optional().Stop()
	return w.next.RoundTrip(req)
}

// deliverLate delivers a request after its sender gave up.
func (w *network) deliverLate(req *http.Request, after time.Duration) error {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return err
		}
	}
	again := req.Clone(context.Background()) // without its traces, too
	again.Body = io.NopCloser(bytes.NewReader(body))
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
