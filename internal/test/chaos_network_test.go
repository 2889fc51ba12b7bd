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
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// snapshot is when the Client last got a meeting, by a poll or a page.
type snapshot struct {
	at    time.Time // when the response ended
	sent  time.Time
	final bool
	by    minutes.Operation

	created bool
	polled  time.Time // its last GET
}

// A witness is the network of one Client. It applies troubles to requests and records
// what the Client gets to see.
type witness struct {
	*chaos
	transports transports
	rules      rules

	mu      sync.Mutex
	seen    map[string]snapshot
	waiting map[string]int       // waits for a meeting
	since   map[string]time.Time // the first of these began
	polls   *rand.Rand           // draws the troubles of polls, which belong to no caller

	revokedAt time.Time           // the service rejects the key from then on; zero: it never does
	rejected  []minutes.Operation // polls and pages that it rejected for that
	lockedOut time.Time           // by then the Client must know
}

func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	op, id := testkit.Identify(req)
	t := &attempt{op: op, begun: time.Now()}
	s, _ := req.Context().Value(stepKey{}).(*step)
	t.page = s == nil && t.op == minutes.OpMeetingsList
	if wrong := w.rules.checkStart(t.op, req); wrong != "" {
		w.deviation("%s", wrong)
	}
	what := w.troubleOf(t, s, id)
	if t.op == minutes.OpMeetingsUploadURL || t.op == minutes.OpUpload {
		w.forget(id)
		defer w.forget(id) // a page may have shown it meanwhile
	}
	if t.op == minutes.OpUpload {
		w.isSecret(req.URL.RawQuery)
		w.isSecret(req.URL.Query().Get("X-Amz-Signature"))
	}
	w.sent.Add(1)
	resp, err := w.send(req.WithContext(w.trace(req.Context(), t, s, what)), t, s, id, what)
	s.note(func() {
		if t.op == minutes.OpUpload && t.connected.IsZero() && errors.Is(context.Cause(req.Context()), os.ErrDeadlineExceeded) {
			w.deviation("%s: stalled before it had a connection", s.name)
		}
	})
	return w.result(t, s, id, resp, err)
}

// troubleOf returns what goes wrong with an attempt, and adds the attempt to its step.
func (w *witness) troubleOf(t *attempt, s *step, id string) (what trouble) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if last := len(s.attempts) - 1; last >= 0 && s.single && s.attempts[last].forbids(t.op) {
			w.deviation("%s: retried %s although the response forbids it", s.name, t.op)
		}
		s.attempts = append(s.attempts, t)
		if puts := s.puts(); puts > attemptsPerCall && strings.HasPrefix(s.name, "Upload ") {
			w.deviation("%s: %d attempts", s.name, puts)
		}
		what = w.draw(s.rnd, t.op, false)
	} else {
		w.mu.Lock()
		what = w.draw(w.polls, t.op, true)
		w.mu.Unlock()
		if id != "" && id == w.bad {
			what = faulty("bad meeting", minutestest.Refuse(minutes.ErrInternal))
		}
	}
	if !w.revokedAt.IsZero() && !t.begun.Before(w.revokedAt) {
		what = faulty(revokedKey, minutestest.Refuse(minutes.ErrUnauthenticated))
	}
	return what
}

const revokedKey = "revoked key"

// send sends a request with its trouble.
func (w *witness) send(req *http.Request, t *attempt, s *step, id string, what trouble) (*http.Response, error) {
	next := w.transports.api
	if t.op == minutes.OpUpload {
		next = w.transports.storage
	}
	switch {
	case what.kind == "", what.dies > 0: // the line dies
		return next.RoundTrip(req)
	case what.err != nil:
		w.applied(what.kind)
		s.note(func() { t.dial, t.edge = true, what.edge })
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, what.err
	case what.late > 0:
		w.applied(what.kind)
		s.note(func() { t.late = true })
		return nil, w.deliverLate(req, what.late)
	}
	match := minutestest.Match{Operation: t.op, MeetingID: id, Key: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")}
	inject := w.srv.Inject(match, what.fault).Optional()
	resp, err := next.RoundTrip(req)
	inject.Stop()
	if inject.Applied() > 0 {
		w.applied(what.kind)
	}
	return resp, err
}

// forget drops the snapshot of a meeting: an upload restarts the minimum poll interval.
func (w *witness) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, id)
}

// restart makes the witness that of a new process, which knows when a poll was sent, but
// not when its response ended.
func (w *witness) restart() {
	w.rules.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, last := range w.seen {
		last.at = last.sent
		w.seen[id] = last
	}
}

// deliverLate delivers a request after its sender gave up.
func (w *witness) deliverLate(req *http.Request, after time.Duration) error {
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

// result records a response.
func (w *witness) result(t *attempt, s *step, id string, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		s.note(func() { t.lost = true })
		w.ended(t, nil)
		return nil, err
	}
	w.open.Add(1)
	enough := retryAfterOf(resp, time.Now()) > time.Minute
	edge := resp.StatusCode/100 == 4 && resp.Header.Get("Content-Type") == "text/html" // perhaps meant for another request
	s.note(func() { t.status, t.noRetry, t.edge = resp.StatusCode, enough, edge })
	if t.op == minutes.OpUpload {
		w.ended(t, nil) // the Client does not read a success to its end
	}
	poll := s == nil && resp.StatusCode == http.StatusOK
	var waitedFor map[string]bool
	if poll {
		waitedFor = w.waitedFor(id, t.begun)
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, closed: sync.OnceFunc(func() { w.open.Add(-1) }), ended: func(body []byte, err error) {
		if t.op == minutes.OpMeetingsUploadURL {
			w.forget(id)
		}
		if !errors.Is(err, io.EOF) {
			s.note(func() { t.lost, t.edge = true, false })
			w.ended(t, nil)
			return
		}
		w.ended(t, resp)
		switch {
		case poll:
			w.accept()
			w.show(t, body, waitedFor)
		case s == nil && resp.StatusCode == http.StatusUnauthorized && !edge:
			w.reject(t.op)
		}
	}}
	return resp, nil
}

// ended checks an attempt that ended, with its response or nil.
func (w *witness) ended(t *attempt, resp *http.Response) {
	if t.page {
		resp = nil
	}
	if wrong := w.rules.checkEnd(t, resp); wrong != "" {
		w.deviation("%s", wrong)
	}
}

// recordedBody is a response body that reports its end.
type recordedBody struct {
	io.ReadCloser
	buf    bytes.Buffer
	ended  func([]byte, error)
	closed func()
}

func (n *recordedBody) Close() error {
	n.closed()
	return n.ReadCloser.Close()
}

func (n *recordedBody) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	n.buf.Write(p[:k])
	if err != nil && n.ended != nil {
		n.ended(n.buf.Bytes(), err)
		n.ended = nil
	}
	return k, err
}

// wait registers a wait until done is called.
func (w *witness) wait(ids ...string) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.waiting[id]++; w.waiting[id] == 1 {
			w.since[id] = time.Now()
		}
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, id := range ids {
			w.waiting[id]--
		}
	}
}

// waitedFor returns the meetings that had a wait before a request began. Only these
// count as polled by it; a page may show others too.
func (w *witness) waitedFor(id string, begun time.Time) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := map[string]bool{}
	for id, n := range w.waiting {
		if n > 0 && w.since[id].Before(begun) {
			ids[id] = true
		}
	}
	if id != "" {
		ids[id] = true
	}
	return ids
}

// show checks the minimum poll interval: the Client requests a single meeting only
// that long after it got it alone or on a page. A page may show it at any time,
// because the interface asks for the thirty seconds only for single meetings.
func (w *witness) show(t *attempt, body []byte, waitedFor map[string]bool) {
	var page minutes.MeetingPage
	if t.op == minutes.OpMeetingsList {
		_ = json.Unmarshal(body, &page)
	} else {
		one := new(minutes.Meeting)
		_ = json.Unmarshal(body, one)
		page.Meetings = []*minutes.Meeting{one}
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range page.Meetings {
		if !waitedFor[m.ID] {
			continue
		}
		last, again := w.seen[m.ID]
		since := t.begun.Sub(last.at)
		if last.by == minutes.OpMeetingsList && last.created { // does not prove that there is no audio: a poll may confirm it
			since = t.begun.Sub(last.polled)
		}
		early := again && !last.final && since < minutestest.MinPollInterval
		if last.by == minutes.OpMeetingsList && since <= 0 {
			early = false // a page showed it while the poll was in flight
		}
		if early && t.op != minutes.OpMeetingsList {
			w.deviation("meeting %s was polled by %s %v after %s showed it", m.ID, t.op, since, last.by)
		}
		polled := last.polled
		if t.op != minutes.OpMeetingsList {
			polled = now
		}
		w.seen[m.ID] = snapshot{now, t.begun, m.Status.Final(), t.op, m.Status == minutes.StatusCreated, polled}
	}
}
