package poll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

const (
	s = time.Second
	m = time.Minute
	h = time.Hour
)

// visit is a wait that begins and ends at these times, or earlier if its meeting ends.
type visit struct{ from, to time.Duration }

// situation is some meetings, who waits for them, and how the service behaves.
type situation struct {
	waits    int              // for the newest meetings; number 0 is the newest
	older    int              // others' meetings, before those
	far      bool             // the last meeting is older than the others'
	visits   []visit          // of each meeting; nil: {0, h}
	guests   map[int][]visit  // meetings that have other visits
	interval time.Duration    // of all waits
	polled   bool             // another process polled every meeting at the beginning
	ends     map[int]duration // when meetings end; the others in turn between 5 and 10 minutes

	poll, page latency
	slowUntil  duration // latencies are 0 afterwards
	pageSize   int      // 50 unless set
	circle     bool     // the second page leads to itself
	badPage    func(n int) *poll.Failure

	late               duration // after the end of a meeting, waits are notified; 92 s unless set
	minPages, maxPages int
	maxPolls, most     int // most: requests altogether
}

type duration = time.Duration

// latency is the time until the service sees a request, and until its response arrives.
type latency struct {
	out, back time.Duration
	careless  bool // the request ignores its context
}

// scripted is the Service of a situation.
type scripted struct {
	situation
	t     *testing.T
	began time.Time

	mu    sync.Mutex
	polls map[string]time.Duration // when the service saw the last one
	seen  struct{ polls, pages int }
}

var errCanceled = errors.New("canceled")

func (f *scripted) now() time.Duration { return time.Since(f.began) }

func (f *scripted) end(id string) time.Duration {
	i, _ := strconv.Atoi(id)
	if at, set := f.ends[i]; set {
		return at
	}
	return 5*m + time.Duration(i%60)*5*s
}

func (f *scripted) show(id string) poll.Snapshot {
	if f.now() >= f.end(id) {
		return poll.Snapshot{ID: id, State: "ready", Final: true}
	}
	return poll.Snapshot{ID: id, State: "busy"}
}

// pass lets a part of a latency pass.
func (f *scripted) pass(ctx context.Context, l latency, d time.Duration) bool {
	if f.slowUntil > 0 && f.now() >= f.slowUntil {
		return true
	}
	done := ctx.Done()
	if l.careless {
		done = nil
	}
	select {
	case <-time.After(d):
	case <-done:
	}
	return ctx.Err() == nil
}

func (f *scripted) Poll(ctx context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	canceled := &poll.Failure{Err: errCanceled, Transient: true}
	if !wanted() || !f.pass(ctx, f.poll, f.poll.out) {
		return poll.Snapshot{}, 0, canceled
	}
	if left := 30*s - f.now(); f.polled && left > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		_, again := f.polls[id]
		assert.False(f.t, again, "meeting %s is polled again before it may", id)
		f.polls[id] = -h
		return poll.Snapshot{}, 0, &poll.Failure{Err: errCanceled, NotBefore: left}
	}
	f.mu.Lock()
	now := f.now()
	if last, again := f.polls[id]; again && now-last < 30*s {
		f.t.Errorf("%v: meeting %s is polled again after %v", now, id, now-last)
	}
	f.polls[id] = now
	f.seen.polls++
	shown := f.show(id)
	f.mu.Unlock()
	if !f.pass(ctx, f.poll, f.poll.back) {
		return poll.Snapshot{}, 0, canceled
	}
	return shown, 0, nil
}

func (f *scripted) Page(ctx context.Context, cursor string, _ func() bool) ([]poll.Snapshot, string, *poll.Failure) {
	canceled := &poll.Failure{Err: errCanceled, Transient: true}
	if !f.pass(ctx, f.page, f.page.out) {
		return nil, "", canceled
	}
	f.mu.Lock()
	f.seen.pages++
	n := f.seen.pages
	f.mu.Unlock()
	if f.badPage != nil {
		if failure := f.badPage(n); failure != nil {
			if errors.Is(failure.Err, context.DeadlineExceeded) {
				<-ctx.Done()
			}
			return nil, "", failure
		}
	}
	size := or(duration(f.pageSize), 50)
	from, _ := strconv.Atoi(cursor)
	if f.circle && from > 0 {
		from = int(size)
	}
	var page []poll.Snapshot
	for i := from; i < min(from+int(size), f.waits+f.older); i++ {
		page = append(page, f.show(f.idAt(i)))
	}
	next := ""
	if end := from + int(size); end < f.waits+f.older {
		next = strconv.Itoa(end)
		if f.circle {
			next = strconv.Itoa(end + n)
		}
	}
	if !f.pass(ctx, f.page, f.page.back) {
		return nil, "", canceled
	}
	return page, next, nil
}

// idAt returns the meeting at a place of the listing.
func (f *scripted) idAt(i int) string {
	newest := f.waits
	if f.far {
		newest--
	}
	switch {
	case i < newest:
		return strconv.Itoa(i)
	case i < newest+f.older:
		return fmt.Sprint("older ", i)
	}
	return strconv.Itoa(i - f.older)
}

// guest is the waiter of one visit.
type guest struct {
	interval time.Duration
	over     chan struct{}
}

func (g *guest) Interval(poll.Snapshot) time.Duration { return g.interval }
func (g *guest) Fail(string, poll.Snapshot, error)    { close(g.over) }
func (g *guest) Notify(snapshot poll.Snapshot, _ bool, _ time.Duration) (over, confirm bool) {
	if snapshot.Final {
		close(g.over)
	}
	return snapshot.Final, false
}

// wait makes the visits to a meeting.
func (f *scripted) wait(p *poll.Poller, id string, visits []visit) {
	for _, v := range visits {
		time.Sleep(v.from - f.now())
		g := &guest{f.interval, make(chan struct{})}
		p.Join(g, id)
		select {
		case <-g.over:
			assert.LessOrEqual(f.t, f.now()-max(f.end(id), v.from), or(f.late, 92*s), "meeting %s", id)
			return
		case <-time.After(v.to - f.now()):
			assert.LessOrEqual(f.t, f.now()-max(f.end(id), v.from), or(f.late, 92*s), "meeting %s", id)
		}
		p.Leave(g, id)
	}
}

func (sc situation) run(t *testing.T) {
	f := &scripted{situation: sc, t: t, began: time.Now(), polls: map[string]time.Duration{}}
	p := poll.New(f)
	var all sync.WaitGroup
	for i := range sc.waits {
		visits := sc.visits
		if own, set := sc.guests[i]; set {
			visits = own
		} else if visits == nil {
			visits = []visit{{0, h}}
		}
		all.Go(func() { f.wait(p, strconv.Itoa(i), visits) })
	}
	all.Wait()
	synctest.Wait()
	seen := f.seen
	time.Sleep(h)
	assert.Equal(t, seen, f.seen, "requests while nobody waits")
	assert.Zero(t, p.Kept(), "meetings that nobody waits for")
	assert.GreaterOrEqual(t, seen.pages, sc.minPages, "pages")
	for limit, n := range map[*int]int{&sc.maxPages: seen.pages, &sc.maxPolls: seen.polls, &sc.most: seen.pages + seen.polls} {
		if *limit > 0 {
			assert.LessOrEqual(t, n, *limit, "%+v", seen)
		}
	}
}

// comeBack is all waits that leave and some that come back for ten minutes.
func comeBack(waits, come, most int, poll, page latency, leave, back time.Duration) situation {
	sc := situation{
		waits: max(waits, come), poll: poll, page: page, slowUntil: leave, most: most, ends: map[int]duration{},
		visits: []visit{{0, leave}, {back, back + 10*m}}, guests: map[int][]visit{},
	}
	for i := range sc.waits {
		sc.ends[i] = 3 * h
		switch {
		case i >= waits:
			sc.guests[i] = []visit{{back, back + 10*m}}
		case i >= come:
			sc.guests[i] = []visit{{0, leave}}
		}
	}
	return sc
}

// In every situation, no meeting is polled twice within thirty seconds, every wait learns
// of its meeting's end in time, and nothing happens once nobody waits.
func TestPoller_Scenarios(t *testing.T) {
	t.Parallel()
	lost := &poll.Failure{Err: errLost, Transient: true}
	always := func(failure *poll.Failure) func(int) *poll.Failure {
		return func(int) *poll.Failure { return failure }
	}
	only := func(failure *poll.Failure, nth ...int) func(int) *poll.Failure {
		return func(n int) *poll.Failure {
			if slices.Contains(nth, n) {
				return failure
			}
			return nil
		}
	}
	rejected := &poll.Failure{Err: errors.New("rejected")}
	slow, late := latency{back: s}, latency{out: 14 * s, back: 6 * s}
	careless := latency{back: 20 * s, careless: true}
	deepest := func(visits ...visit) situation {
		return situation{waits: 60, guests: map[int][]visit{59: visits}}
	}
	leaver := func(visits ...visit) situation {
		return situation{waits: 100, page: slow, guests: map[int][]visit{0: visits}}
	}
	manyLeave := situation{waits: 180, badPage: only(&poll.Failure{Err: context.DeadlineExceeded, Transient: true}, 3), guests: map[int][]visit{}}
	for i := 40; i < 180; i++ {
		manyLeave.guests[i] = []visit{{0, 10 * s}}
	}
	halfEnded := situation{waits: 120, older: 700, visits: []visit{{0, 29 * s}}, most: 6, minPages: 3, maxPages: 3, ends: map[int]duration{}}
	for i := range 50 {
		halfEnded.ends[i] = 0
	}
	for name, sc := range map[string]situation{
		// Waits leave and come back.
		"leaves and comes back during the first page":    leaver(visit{0, s / 2}, visit{s * 3 / 2, h}),
		"leaves during the first page, comes back after": leaver(visit{0, s / 2}, visit{10 * s, h}),
		"leaves and comes back during a later page":      leaver(visit{0, s * 63 / 2}, visit{s * 65 / 2, h}),
		"leaves during a page, comes back between two":   leaver(visit{0, s * 63 / 2}, visit{45 * s, h}),
		"comes back long after":                          leaver(visit{0, s * 63 / 2}, visit{3 * m, h}),
		"many leave while the third page is lost":        manyLeave,
		"the deepest comes back after 20 s":              deepest(visit{0, 45 * s}, visit{65 * s, h}),
		"the deepest comes back after 30 s":              deepest(visit{0, 45 * s}, visit{75 * s, h}),
		"the deepest comes back after 50 s":              deepest(visit{0, 45 * s}, visit{95 * s, h}),
		"a newcomer comes back after 5 s":                deepest(visit{45 * s, 110 * s}, visit{115 * s, h}),
		"a newcomer comes back after 15 s":               deepest(visit{45 * s, 110 * s}, visit{125 * s, h}),
		"all leave during a page":                        comeBack(50, 50, 25, latency{}, slow, s/2, 2*s),
		"all leave during a page, five come back":        comeBack(50, 5, 105, latency{}, slow, s/2, 2*s),
		"all leave during a page that ends late":         comeBack(50, 50, 25, latency{}, latency{back: 5 * s, careless: true}, s, 2*s),
		"all leave after a page":                         comeBack(50, 50, 25, latency{}, latency{}, s/2, 2*s),
		"all leave after pages":                          comeBack(50, 50, 50, latency{}, latency{}, 5*m, 5*m+s),
		"one leaves during a poll":                       comeBack(1, 1, 25, late, latency{}, 15*s, 16*s),
		"one leaves during a poll that ends late":        comeBack(1, 1, 25, careless, latency{}, 15*s, 16*s),
		"five leave during polls that end late":          comeBack(5, 5, 105, careless, latency{}, 15*s, 16*s),
		"five leave during polls, fifty come back":       comeBack(5, 50, 30, late, latency{}, 15*s, 16*s),
		"one leaves after a poll":                        comeBack(1, 1, 25, latency{}, latency{}, s, 2*s),
		"five leave between polls, fifty come back":      comeBack(5, 50, 30, latency{}, latency{}, 10*s, 11*s),

		// Pages are slow, short or lost.
		"pages take 10 s":             {waits: 150, page: latency{back: 10 * s}, minPages: 12},
		"polls take 20 s":             {waits: 50, poll: latency{back: 20 * s}, minPages: 3},
		"short pages":                 {waits: 300, older: 150, far: true, pageSize: 10},
		"a page is lost":              {waits: 115, badPage: only(lost, 9)},
		"pages go on after a loss":    {waits: 121, older: 700, far: true, visits: []visit{{0, 14 * m}}, badPage: only(lost, 9), minPages: 16},
		"pages go on after two":       {waits: 121, older: 700, far: true, visits: []visit{{0, 14 * m}}, badPage: only(lost, 9, 10), minPages: 16},
		"pages go on, cursor expired": {waits: 121, older: 700, far: true, visits: []visit{{0, 14 * m}}, badPage: only(rejected, 10), minPages: 16},
		"cursors lead in a circle":    {waits: 150, circle: true, maxPages: 400},
		"some have ended":             halfEnded,

		// The listing never works.
		"listing rejected":             {waits: 25, badPage: always(rejected), maxPages: 6, late: 64 * s},
		"listing lost":                 {waits: 25, badPage: always(lost), late: 64 * s},
		"listing never answered":       {waits: 25, badPage: always(&poll.Failure{Err: context.DeadlineExceeded, Transient: true}), late: 64 * s},
		"listing rate-limited":         {waits: 25, badPage: always(&poll.Failure{Err: errLimited, RateLimited: true}), late: 64 * s},
		"listing rate-limited for 5 m": {waits: 25, badPage: always(&poll.Failure{Err: errLimited, RateLimited: true, RetryAfter: 5 * m}), late: 64 * s},
		"listing rejected later":       {waits: 60, badPage: func(n int) *poll.Failure { return only(rejected, 4, 5, 6, 7, 8, 9, 10)(n) }, maxPages: 10},

		// Somebody else has polled, or wants fewer polls.
		"another process polled":   {waits: 300, polled: true, visits: []visit{{0, 5 * m}}, maxPolls: 10},
		"the others are patient":   {waits: 50, interval: 4 * h, late: 4*h + m, visits: []visit{{0, 12 * h}}, most: 60},
		"a patient one, far below": {waits: 51, older: 700, far: true, guests: map[int][]visit{50: {{0, h}}}, late: 64 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, sc.run)
		})
	}
}

// calls is a Service made of functions.
type calls struct {
	poll func(ctx context.Context, id string) (poll.Snapshot, *poll.Failure)
	page func(ctx context.Context, cursor string) ([]poll.Snapshot, string, *poll.Failure)
}

func (c calls) Poll(ctx context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	if !wanted() {
		return poll.Snapshot{}, 0, &poll.Failure{Err: errCanceled, Transient: true}
	}
	shown, failure := c.poll(ctx, id)
	return shown, 0, failure
}

func (c calls) Page(ctx context.Context, cursor string, wanted func() bool) ([]poll.Snapshot, string, *poll.Failure) {
	wanted()
	return c.page(ctx, cursor)
}

func busy(_ context.Context, id string) (poll.Snapshot, *poll.Failure) {
	return poll.Snapshot{ID: id, State: "busy"}, nil
}

func newGuest() *guest { return &guest{over: make(chan struct{})} }

// When the last wait ends, the requests under way end, too.
func TestPoller_CancelsRequestsWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]int{"poll": 1, "page": 60} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var running sync.WaitGroup
				block := func(ctx context.Context) *poll.Failure {
					running.Add(1)
					defer running.Done()
					<-ctx.Done()
					return &poll.Failure{Err: ctx.Err(), Transient: true}
				}
				p := poll.New(calls{
					func(ctx context.Context, _ string) (poll.Snapshot, *poll.Failure) { return poll.Snapshot{}, block(ctx) },
					func(ctx context.Context, _ string) ([]poll.Snapshot, string, *poll.Failure) {
						return nil, "", block(ctx)
					},
				})
				g := newGuest()
				for i := range waits {
					p.Join(g, strconv.Itoa(i))
				}
				time.Sleep(s)
				left := time.Now()
				for i := range waits {
					p.Leave(g, strconv.Itoa(i))
				}
				running.Wait() // the bubble deadlocks if a poll is not canceled
				assert.Zero(t, time.Since(left))
			})
		})
	}
}

// After a page was lost, the Poller asks for the same page again.
func TestPoller_RetriesALostPage(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(context.Context) *poll.Failure{
		"transient": func(context.Context) *poll.Failure { return &poll.Failure{Err: errLost, Transient: true} },
		"timeout": func(ctx context.Context) *poll.Failure {
			<-ctx.Done()
			return &poll.Failure{Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var cursors []string
				p := poll.New(calls{busy, func(ctx context.Context, cursor string) ([]poll.Snapshot, string, *poll.Failure) {
					mu.Lock()
					cursors = append(cursors, cursor)
					n := len(cursors)
					mu.Unlock()
					if n == 2 {
						return nil, "", lose(ctx)
					}
					from, _ := strconv.Atoi(cursor)
					var page []poll.Snapshot
					for i := from; i < from+50; i++ {
						page = append(page, poll.Snapshot{ID: strconv.Itoa(i), State: "busy"})
					}
					return page, strconv.Itoa(from + 50), nil
				}})
				g := newGuest()
				for i := range 150 {
					p.Join(g, strconv.Itoa(i))
				}
				time.Sleep(28 * s)
				for i := range 150 {
					p.Leave(g, strconv.Itoa(i))
				}
				assert.Equal(t, []string{"", "50", "50", "100"}, cursors)
			})
		})
	}
}

// A wait that returns while a poll of its meeting is still under way does not start a second
// one, however long the poll takes and whatever the Poller forgets meanwhile.
func TestPoller_NeverPollsAMeetingTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int64
		p := poll.New(calls{
			poll: func(_ context.Context, id string) (poll.Snapshot, *poll.Failure) {
				if id == "slow" {
					most.Store(max(most.Load(), under.Add(1)))
					time.Sleep(100 * s)
					under.Add(-1)
				}
				return poll.Snapshot{ID: id, State: "busy"}, nil
			},
			page: func(context.Context, string) ([]poll.Snapshot, string, *poll.Failure) { return nil, "", nil },
		})
		stays, leaves := newGuest(), newGuest()
		p.Join(stays, "other")
		p.Join(leaves, "slow")
		time.Sleep(15 * s)
		p.Leave(leaves, "slow")
		time.Sleep(25 * s)
		p.Record(poll.Snapshot{ID: "third", State: "busy"}, p.Now())
		time.Sleep(10 * s)
		p.Join(leaves, "slow")
		time.Sleep(5 * m)
		p.Leave(leaves, "slow")
		p.Leave(stays, "other")
		time.Sleep(5 * m)
		assert.EqualValues(t, 1, most.Load(), "polls of one meeting at once")
		assert.Zero(t, p.Kept(), "meetings that nobody waits for")
	})
}

// Waits one after the other, each for a meeting that is ready, take hardly longer than their polls.
func TestPoller_PollsFewNewcomersAtOnce(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"alone": 0, "beside 1,000": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				final := func(_ context.Context, id string) (poll.Snapshot, *poll.Failure) {
					time.Sleep(20 * time.Millisecond)
					return poll.Snapshot{ID: id, State: "ready", Final: strings.HasPrefix(id, "mine")}, nil
				}
				p := poll.New(calls{final, func(context.Context, string) ([]poll.Snapshot, string, *poll.Failure) {
					return nil, "", nil
				}})
				g := newGuest()
				for i := range others {
					p.Join(g, strconv.Itoa(i))
				}
				time.Sleep(m)
				began := time.Now()
				for i := range 100 {
					mine := newGuest()
					p.Join(mine, fmt.Sprint("mine", i))
					<-mine.over
				}
				assert.Less(t, time.Since(began), 100*50*time.Millisecond)
				for i := range others {
					p.Leave(g, strconv.Itoa(i))
				}
				time.Sleep(m) // the last poll ends
			})
		})
	}
}

// After an upload, the next poll is immediate, unless a poll or a page has shown since what it did.
func TestPoller_PollsAtOnceAfterInvalidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state string // that pages show from 25 s on; the upload begins at 25 s and ends at 45 s
		want  int
	}{
		"a page shows the old state": {state: "created", want: 1},
		"a page shows a new state":   {state: "uploaded", want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, polls := time.Now(), new(atomic.Int64)
				p := poll.New(calls{
					func(_ context.Context, id string) (poll.Snapshot, *poll.Failure) {
						polls.Add(1)
						return poll.Snapshot{ID: id, State: test.state}, nil
					},
					func(context.Context, string) (page []poll.Snapshot, next string, f *poll.Failure) {
						state := "created"
						if time.Since(began) >= 25*s {
							state = test.state
						}
						for i := range 50 {
							page = append(page, poll.Snapshot{ID: strconv.Itoa(i), State: state})
						}
						return page, "", nil
					},
				})
				g := newGuest()
				for i := range 50 {
					p.Join(g, strconv.Itoa(i))
				}
				time.Sleep(25 * s) // pages are read at 0 and after 30 s
				uploading := p.Now()
				time.Sleep(20 * s)
				p.Invalidate("7", uploading)
				time.Sleep(s)
				assert.EqualValues(t, test.want, polls.Load())
				for i := range 50 {
					p.Leave(g, strconv.Itoa(i))
				}
			})
		})
	}
}
