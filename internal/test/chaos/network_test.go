package chaos_test

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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A trouble is one thing that goes wrong with a request: a fault of the
// service, or one of the network between.
type trouble struct {
	fault minutestest.Fault
	dial  bool          // in place of the fault: no connection is made
	late  time.Duration // in place of the fault: the client sees a reset, the request takes effect so much later
	cert  bool          // in place of the fault: the certificate is not trusted
}

func faulty(f minutestest.Fault) trouble { return trouble{fault: f} }

// upset draws one of the troubles that any request to the API can meet.
func upset(rnd *rand.Rand) trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	unavailable := minutestest.Reply(http.StatusServiceUnavailable, "text/plain", "busy")
	slow := minutestest.Reply(http.StatusGatewayTimeout, "text/html", "<h1>504</h1>")
	switch rnd.IntN(18) {
	case 0, 1:
		return faulty(minutestest.RateLimit(""))
	case 2:
		return faulty(minutestest.RateLimit(fmt.Sprint(int(seconds.Seconds()))))
	case 3:
		return faulty(minutestest.RateLimit(time.Now().Add(seconds).UTC().Format(http.TimeFormat)))
	case 4:
		return faulty(minutestest.RateLimit("90")) // more than a client is to wait for
	case 5:
		return faulty(minutestest.Refuse(minutes.ErrInternal))
	case 6:
		return faulty(minutestest.Refuse(minutes.ErrInternal).AfterEffect())
	case 7:
		return faulty(minutestest.BadGateway())
	case 8:
		return faulty(unavailable.AfterEffect())
	case 9:
		return faulty(slow.Delayed(seconds).AfterEffect())
	case 10:
		return faulty(minutestest.Reset())
	case 11:
		return faulty(minutestest.LoseReply())
	case 12:
		return faulty(minutestest.LoseReply().Delayed(seconds))
	case 13:
		return faulty(minutestest.Truncate(rnd.Int64N(200)))
	case 14:
		return faulty(minutestest.Drip(seconds * 4)) // beyond a try's time at times
	case 15:
		return faulty(minutestest.Delay(seconds * 4))
	case 16:
		return trouble{dial: true}
	}
	return trouble{late: seconds / 8}
}

// upsetUpload draws one of the troubles of a PUT to storage.
func upsetUpload(rnd *rand.Rand) trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	switch rnd.IntN(14) {
	case 0:
		return faulty(minutestest.RateLimit(""))
	case 1:
		return faulty(minutestest.RateLimit("7"))
	case 2:
		return faulty(minutestest.RefuseUpload(503, "SlowDown"))
	case 3:
		return faulty(minutestest.RefuseUpload(500, "InternalError").AfterEffect())
	case 4:
		return faulty(minutestest.RefuseUpload(408, "RequestTimeout"))
	case 5:
		return faulty(minutestest.Reset())
	case 6:
		return faulty(minutestest.LoseReply())
	case 7:
		return faulty(minutestest.LoseReply().Delayed(seconds))
	case 8, 9:
		return faulty(minutestest.ResetUpload(rnd.Int64N(40_000)))
	case 10:
		return faulty(minutestest.Delay(seconds * 5)) // beyond the stall's time at times
	case 11:
		return faulty(testkit.Expired())
	case 12:
		return trouble{dial: true}
	}
	return trouble{late: seconds / 8}
}

// atEdge draws a trouble of polls that no retry of a call waits out: something in front of
// the service rejects them.
func atEdge(rnd *rand.Rand) trouble {
	if rnd.IntN(2) == 0 {
		return trouble{cert: true}
	}
	return faulty(minutestest.Reply([]int{401, 403, 404, 407}[rnd.IntN(4)], "text/html", "<h1>Forbidden</h1>"))
}

// outage is a time in which every request meets the same trouble, or every poll.
type outage struct {
	from, to time.Time
	what     minutestest.Fault
	upload   minutestest.Fault
	polls    *trouble // of polls and their pages; other requests meet none
}

func drawOutage(rnd *rand.Rand, from time.Time) outage {
	refusal := minutestest.Reply(503, "text/html", "<h1>503</h1>")
	kinds := []outage{
		{what: minutestest.RateLimit(""), upload: minutestest.RateLimit("")},
		{what: minutestest.Refuse(minutes.ErrInternal), upload: minutestest.RefuseUpload(500, "InternalError")},
		{what: refusal, upload: minutestest.RefuseUpload(503, "SlowDown")},
		{what: minutestest.Reset(), upload: minutestest.Reset()},
		{what: minutestest.LoseReply(), upload: minutestest.LoseReply()},
		{what: minutestest.Delay(time.Hour), upload: minutestest.Delay(time.Hour)},
	}
	edge := atEdge(rnd)
	kinds = append(kinds, outage{polls: &edge})
	o := kinds[rnd.IntN(len(kinds))]
	o.from = from.Add(testkit.UpTo(rnd, 10*time.Minute))
	o.to = o.from.Add(testkit.UpTo(rnd, 3*time.Minute))
	return o
}

// A step is one call of a caller, and what became of its requests. Its troubles
// come from a generator of its own, so that they do not depend on what else
// runs.
type step struct {
	name   string
	single bool // one call of one operation after the other
	ctx    context.Context
	rnd    *rand.Rand
	mu     sync.Mutex
	over   time.Time // when ctx was
	tries  []*try
}

type try struct {
	op     minutes.Operation
	begun  time.Time
	status int
	lost   bool // no reply, or not all of it
	dial   bool // and no connection
	late   bool // it will take effect yet
	enough bool // the client is told not to try again
	page   bool // read for waits, which have a pace of their own for pages
}

// ambiguous: it may have taken effect, though its caller was not told.
func (t *try) ambiguous() bool { return t.lost && !t.dial || t.status >= 500 }

// passing: another try may fare better.
func (t *try) passing() bool {
	return t.lost || t.status >= 499 || t.status == 429 || t.status == 408 || t.status == 403 && t.op == minutestest.OpUpload
}

type stepKey struct{}

// note changes what is known of a try; looks are of no step, and of no interest.
func (s *step) note(change func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
}

func (s *step) any(is func(*try) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.tries, is)
}

// last is the last try of all, or nil.
func (s *step) last() *try {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tries) == 0 {
		return nil
	}
	return s.tries[len(s.tries)-1]
}

const triesOfACall = 5

// puts is how often the recording was sent. The caller holds mu.
func (s *step) puts() int {
	n := 0
	for _, t := range s.tries {
		if t.op == minutestest.OpUpload {
			n++
		}
	}
	return n
}

// spent reports that the client has tried as often as it may, or that a reply
// told it not to.
func (s *step) spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := 0
	for i, t := range s.tries {
		if i > 0 && s.tries[i-1].op == t.op {
			row++
		} else {
			row = 1
		}
		switch {
		case t.enough, !t.passing() && t.status >= 400:
			return true
		case t.op == minutestest.OpUpload:
		case row >= triesOfACall && t.passing():
			return true
		}
	}
	return s.puts() >= triesOfACall || len(s.tries) > 1 && s.refusedTwice()
}

// refusedTwice: a URL that has expired is replaced only once.
func (s *step) refusedTwice() bool {
	n := 0
	for _, t := range s.tries {
		if t.status == http.StatusForbidden {
			n++
		}
	}
	return n > 1
}

// sighting is when a wait was shown a meeting, by a look or a page.
type sighting struct {
	at      time.Time
	final   bool
	by      minutes.Operation
	created bool
	polled  time.Time // the last GET of it
}

// A witness is the network of one Client. It has requests meet their troubles
// and notes what the Client gets to see.
type witness struct {
	*chaos
	next    http.RoundTripper
	manners manners

	mu      sync.Mutex
	seen    map[string]sighting
	waiting map[string]int       // waits for a meeting
	since   map[string]time.Time // the first of these began
	polls   *rand.Rand           // draws the troubles of looks, which are no caller's
}

func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	op, id := testkit.Identify(req)
	t := &try{op: op, begun: time.Now()}
	s, _ := req.Context().Value(stepKey{}).(*step)
	t.page = s == nil && t.op == "meetings.list"
	if wrong := w.manners.begins(t.op, req); wrong != "" {
		w.deviation("%s", wrong)
	}
	var what trouble
	var strikes bool
	if s != nil {
		s.mu.Lock()
		// What a wait was for is asked for again, turn by turn.
		if n := len(s.tries); n > 0 && s.single && t.op != "meetings.minutes" && t.op != "meetings.transcript" && s.tries[n-1].op == t.op && s.tries[n-1].enough {
			w.deviation("%s: %s again, though it was to wait for long", s.name, t.op)
		}
		s.tries = append(s.tries, t)
		if puts := s.puts(); puts > triesOfACall && strings.HasPrefix(s.name, "Upload ") {
			w.deviation("%s: %d tries", s.name, puts)
		}
		what, strikes = w.draw(s.rnd, t.op, false)
		s.mu.Unlock()
	} else {
		w.mu.Lock()
		what, strikes = w.draw(w.polls, t.op, true)
		w.mu.Unlock()
	}
	if t.op == "meetings.upload_url" || t.op == minutestest.OpUpload {
		w.anew(id)
		defer w.anew(id) // a page may have shown it meanwhile
	}
	if t.op == minutestest.OpUpload {
		w.isSecret(req.URL.RawQuery)
		w.isSecret(req.URL.Query().Get("X-Amz-Signature"))
	}
	w.sent.Add(1)
	switch {
	case !strikes:
		resp, err := w.next.RoundTrip(req)
		return w.result(t, s, id, resp, err)
	case what.dial:
		w.faults.Add(1)
		s.note(func() { t.lost, t.dial = true, true })
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, testbase.ErrRefused
	case what.cert:
		w.faults.Add(1)
		w.ended(t, nil)
		return nil, testbase.ErrUntrusted
	case what.late > 0:
		w.faults.Add(1)
		s.note(func() { t.lost, t.late = true, true })
		return nil, w.deliverLate(req, what.late)
	}
	match := minutestest.Match{Operation: t.op, MeetingID: id, Key: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")}
	inject := w.srv.Inject(match, what.fault).Optional()
	resp, err := w.next.RoundTrip(req)
	inject.Stop()
	if inject.Struck() > 0 {
		w.faults.Add(1)
	}
	return w.result(t, s, id, resp, err)
}

// anew forgets when a meeting was seen: an upload begins the thirty seconds anew.
func (w *witness) anew(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, id)
}

// draw decides whether a request meets trouble, and which.
func (c *chaos) draw(rnd *rand.Rand, op minutes.Operation, polled bool) (trouble, bool) {
	upload := op == minutestest.OpUpload
	now := time.Now()
	for _, o := range c.outages {
		if now.Before(o.from) || now.After(o.to) {
			continue
		}
		switch {
		case o.polls != nil && !polled:
			continue
		case o.polls != nil:
			return *o.polls, true
		case upload:
			return faulty(o.upload), true
		}
		return faulty(o.what), true
	}
	if c.calm.Load() || rnd.Float64() >= c.rate {
		return trouble{}, false
	}
	what := upset(rnd)
	switch {
	case upload:
		what = upsetUpload(rnd)
	case op == "meetings.list" && polled && rnd.IntN(8) == 0:
		what = faulty(minutestest.Refuse(minutes.ErrInsufficientScope))
	case polled && rnd.IntN(8) == 0:
		what = atEdge(rnd)
	}
	if what.late > 0 && (!c.lateness || op == "meetings.get" || op == "meetings.list") {
		what = faulty(minutestest.LoseReply())
	}
	return what, true
}

// deliverLate has a request arrive when its sender has given it up.
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
	again := req.Clone(context.WithoutCancel(req.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.under.Go(func() {
		time.Sleep(after)
		if resp, err := w.next.RoundTrip(again); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// result notes a reply.
func (w *witness) result(t *try, s *step, id string, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		s.note(func() { t.lost = true })
		w.ended(t, nil)
		return nil, err
	}
	enough := retryAfterOf(resp, time.Now()) > time.Minute
	s.note(func() { t.status, t.enough = resp.StatusCode, enough })
	if t.op == minutestest.OpUpload {
		w.ended(t, nil) // a success is not read to its end
	}
	look := s == nil && resp.StatusCode == http.StatusOK
	var waitedFor map[string]bool
	if look {
		waitedFor = w.waitedFor(id, t.begun)
	}
	resp.Body = &noted{ReadCloser: resp.Body, ended: func(body []byte, err error) {
		if t.op == "meetings.upload_url" {
			w.anew(id)
		}
		if !errors.Is(err, io.EOF) {
			s.note(func() { t.lost = true })
			w.ended(t, nil)
			return
		}
		w.ended(t, resp)
		if look {
			w.show(t, body, waitedFor)
		}
	}}
	return resp, nil
}

// ended is told of the end of a try, with its reply if there was one.
func (w *witness) ended(t *try, resp *http.Response) {
	if t.page {
		resp = nil
	}
	if wrong := w.manners.ended(t.op, t.begun, resp); wrong != "" {
		w.deviation("%s", wrong)
	}
}

// noted is the body of a reply, whose end is told of.
type noted struct {
	io.ReadCloser
	buf   bytes.Buffer
	ended func([]byte, error)
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	n.buf.Write(p[:k])
	if err != nil && n.ended != nil {
		n.ended(n.buf.Bytes(), err)
		n.ended = nil
	}
	return k, err
}

// wait takes note of a wait until the function it returns is called.
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

// waitedFor is what somebody waited for before a request began: a look is at one of these. A page
// that shows others is no look at them.
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

// show checks the floor: a meeting is not asked for by itself sooner than that
// after it was seen, be it by itself or on a page. A page may show it at any
// time: the interface asks the thirty seconds of the single meeting.
func (w *witness) show(t *try, body []byte, waitedFor map[string]bool) {
	var page minutes.MeetingPage
	if t.op == "meetings.list" {
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
		if last.by == "meetings.list" && last.created { // no proof that there is no audio: a poll may confirm it
			since = t.begun.Sub(last.polled)
		}
		early := again && !last.final && since < minutestest.PollFloor
		if last.by == "meetings.list" && since <= 0 {
			early = false // a page showed it while the look was under way
		}
		if early && t.op != "meetings.list" {
			w.deviation("meeting %s was asked for by %s %v after %s showed it", m.ID, t.op, since, last.by)
		}
		polled := last.polled
		if t.op != "meetings.list" {
			polled = now
		}
		w.seen[m.ID] = sighting{now, m.Status.Final(), t.op, m.Status == minutes.StatusCreated, polled}
	}
}
