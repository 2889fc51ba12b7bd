package poll_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// office is a service at which others create meetings, and the followers of one process.
type office struct {
	t      testing.TB
	random *rand.Rand
	began  time.Time
	habits

	mu       sync.Mutex
	list     []*talk // the newest last, or the one changed last
	byID     map[string]*talk
	created  int
	changes  int
	frozen   time.Time // until then, the listing shows no new meeting
	poller   *poll.Poller
	follower *listener
	handled  map[string]bool // by any run
	figures  figures
}

// habits are how an office and its service behave.
type habits struct {
	byChange bool
	offset   bool          // cursors count meetings, so that pages repeat meetings
	clock    time.Duration // of the service, compared with ours
	late     time.Duration // until a meeting appears in the listing, at most
	reject   float64       // share of the cursors that are rejected
	losePage float64
	losePoll float64
	limit    float64 // share of the requests that get a 429
	freezes  bool    // the listing shows no new meeting for up to a minute
	short    bool    // pages hold anything from nothing to all
}

// talk is a meeting of an office.
type talk struct {
	id      string
	place   int // in the listing, from the oldest
	created time.Time
	updated time.Time
	visible time.Time
	ends    time.Time // zero: never
	polled  time.Time
	audio   bool
	final   bool
	deleted bool
}

type figures struct {
	pages, polls int
	within       int // polls of a meeting within the minimum poll interval
	notified     time.Duration
	found        time.Duration
	twice        int
}

func newOffice(t testing.TB, seed uint64, h habits) *office {
	o := &office{t: t, random: rand.New(rand.NewPCG(seed, 3)), began: time.Now(), habits: h,
		byID: make(map[string]*talk), handled: make(map[string]bool)}
	o.poller = poll.New(o)
	return o
}

// create creates a meeting that has audio and ends after d, or has none if d is 0.
func (o *office) create(d time.Duration) *talk {
	now := time.Now()
	o.created++
	o.changes++
	x := &talk{id: fmt.Sprint("mtg_", o.created), place: o.changes, created: now, updated: now, visible: now, audio: d > 0}
	if now.Before(o.frozen) {
		x.visible = o.frozen
	} else if o.late > 0 {
		x.visible = now.Add(time.Duration(o.random.Int64N(int64(o.late))))
	}
	o.list = append(o.list, x)
	o.byID[x.id] = x
	if d > 0 {
		o.endAfter(x, d)
	}
	return x
}

func (o *office) endAfter(x *talk, d time.Duration) {
	x.ends = time.Now().Add(d)
	time.AfterFunc(d, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		x.final = true
		o.change(x)
	})
}

// change moves a meeting to the top if the listing is ordered so.
func (o *office) change(x *talk) {
	x.updated = time.Now()
	if !o.byChange {
		return
	}
	if at := slices.Index(o.list, x); at >= 0 {
		o.list = append(slices.Delete(o.list, at, at+1), x)
		o.changes++
		x.place = o.changes
	}
}

func (o *office) delete(x *talk) {
	x.deleted = true
	o.list = slices.DeleteFunc(o.list, func(y *talk) bool { return x == y })
}

func (o *office) show(x *talk) poll.Snapshot {
	state := "created"
	if x.final {
		state = "ready"
	} else if x.audio {
		state = "busy"
	}
	return poll.Snapshot{ID: x.id, State: state, Final: x.final, Created: x.created.Add(o.clock).Unix(), Updated: x.updated.Add(o.clock).Unix()}
}

func (o *office) Poll(_ context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	if !wanted() {
		return poll.Snapshot{}, 0, failed(errLost)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.polls++
	x, now := o.byID[id], time.Now()
	if o.random.Float64() < o.limit {
		return poll.Snapshot{}, 0, failed(errLimited)
	}
	if now.Sub(x.polled) < floor {
		o.figures.within++
	}
	x.polled = now
	switch {
	case o.random.Float64() < o.losePoll:
		return poll.Snapshot{}, 0, failed(errLost)
	case x.deleted:
		return poll.Snapshot{}, 0, failed(errGone)
	}
	return o.show(x), 0, nil
}

func (o *office) Page(_ context.Context, cursor string, wanted func() bool) ([]poll.Snapshot, string, *poll.Failure) {
	if !wanted() {
		return nil, "", failed(errLost)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.pages++
	switch {
	case o.random.Float64() < o.limit:
		return nil, "", failed(errLimited)
	case o.random.Float64() < o.losePage:
		return nil, "", failed(errLost)
	}
	if cursor != "" && o.random.Float64() < o.reject {
		return nil, "", failed(errBarred)
	}
	size := pageSize
	if o.short {
		size = o.random.IntN(pageSize + 1)
	}
	from := o.find(cursor)
	var page []poll.Snapshot
	at := from
	for ; at > 0 && len(page) < size; at-- {
		if x := o.list[at-1]; !x.visible.After(time.Now()) {
			page = append(page, o.show(x))
		}
	}
	switch {
	case at == 0:
		return page, "", nil
	case o.offset:
		return page, fmt.Sprint(len(o.list)-at, "@", o.figures.pages), nil
	}
	return page, fmt.Sprint(o.list[at-1].place, "@", o.figures.pages), nil
}

// find returns the end of the part of the list that a cursor leads to: so many meetings are
// above it, or its place is the next.
func (o *office) find(cursor string) int {
	if cursor == "" {
		return len(o.list)
	}
	var n int
	fmt.Sscanf(cursor, "%d@", &n)
	if o.offset {
		return max(0, len(o.list)-n)
	}
	from, _ := slices.BinarySearchFunc(o.list, n+1, func(x *talk, n int) int { return cmp.Compare(x.place, n) })
	return from
}

// listener is one run of a program that follows the office.
type listener struct {
	o    *office
	seen map[string]bool
	done map[string]bool
	left bool
}

// start begins a run.
func (o *office) start(since time.Time) {
	o.follower = &listener{o: o, seen: make(map[string]bool), done: make(map[string]bool)}
	o.poller.Follow(o.follower, since)
}

// stop ends it, as a kill would.
func (o *office) stop() {
	o.mu.Lock()
	o.follower.left = true
	o.mu.Unlock()
	o.poller.Unfollow(o.follower)
}

// Interval is as that of minutes.Follow.
func (l *listener) Interval(last poll.Snapshot) time.Duration {
	if last.State != "created" {
		return 0
	}
	return time.Since(time.Unix(last.Created, 0)) / 30
}

func (l *listener) Notify(s poll.Snapshot, _ bool, _ time.Duration) (over, confirm bool) {
	o, now := l.o, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.byID[s.ID]
	if o.handled[s.ID] && !l.done[s.ID] {
		return true, false // as if Skip excluded it
	}
	if !l.seen[s.ID] {
		l.seen[s.ID] = true
		o.figures.found = max(o.figures.found, now.Sub(x.visible))
	}
	if s.Final {
		if l.done[s.ID] {
			o.figures.twice++
		}
		l.done[s.ID], o.handled[s.ID] = true, true
		if !x.ends.Before(o.began) {
			o.figures.notified = max(o.figures.notified, now.Sub(x.ends))
		}
	}
	return s.Final, false
}

func (l *listener) Fail(id string, _ poll.Snapshot, err error) {
	if errors.Is(err, errGone) {
		return
	}
	go func() {
		l.o.mu.Lock()
		left := l.left
		l.o.mu.Unlock()
		if !left {
			l.o.poller.Join(l, id)
		}
	}()
}

// happen lets one thing happen.
func (o *office) happen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	upTo := func(d time.Duration) time.Duration { return time.Duration(o.random.Int64N(int64(d))) + 1 }
	some := func(do func(x *talk)) {
		if len(o.list) > 0 {
			do(o.list[o.random.IntN(len(o.list))])
		}
	}
	switch o.random.IntN(9) {
	case 8:
		if o.freezes && o.random.IntN(10) == 0 && time.Now().After(o.frozen) {
			o.frozen = time.Now().Add(upTo(time.Minute)) // with clock, at most the margin of two minutes
		}
	case 0:
		some(o.delete)
	case 1, 2:
		some(o.change)
	case 3: // audio for one without
		some(func(x *talk) {
			if !x.audio {
				x.audio = true
				o.endAfter(x, upTo(20*time.Minute))
			}
		})
	case 4:
		for range o.random.IntN(200) * o.random.IntN(2) * o.random.IntN(2) { // imported
			o.create(1)
		}
	case 5:
		o.create(0)
	default:
		o.create(upTo(20 * time.Minute))
	}
}

// live lets an hour pass in an office, with restarts, and requires that no meeting is lost.
func live(t testing.TB, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 4))
	draw := func(most float64) float64 { return most * max(0, random.Float64()*2-1) }
	o := newOffice(t, seed, habits{
		byChange: random.IntN(2) == 0, offset: random.IntN(3) == 0,
		clock: time.Duration((random.Float64()*2 - 1) * float64(time.Minute)),
		late:  time.Duration(draw(float64(50 * time.Second))), losePage: draw(0.5), losePoll: draw(0.5),
		reject: draw(0.3), limit: draw(0.2), short: random.IntN(4) == 0,
	})
	o.freezes = !o.byChange && random.IntN(3) == 0
	o.mu.Lock()
	for range random.IntN(300) {
		o.create(1)
	}
	o.mu.Unlock()
	time.Sleep(time.Duration(random.Int64N(int64(time.Hour))))
	since, before := time.Now(), o.created
	o.start(since)
	restarts, pace := random.IntN(4) == 0, time.Duration(1+random.IntN(60))*time.Second
	for time.Since(since) < time.Hour {
		time.Sleep(time.Duration(random.Int64N(int64(pace))))
		o.happen()
		if restarts && random.IntN(100) == 0 {
			o.stop()
			time.Sleep(time.Duration(random.Int64N(int64(5 * time.Minute))))
			o.start(since)
		}
	}
	o.mu.Lock()
	o.losePage, o.losePoll, o.limit, o.reject = 0, 0, 0, 0
	o.mu.Unlock()
	time.Sleep(time.Hour)
	o.stop()
	synctest.Wait()
	for _, x := range o.byID {
		var number int
		fmt.Sscanf(x.id, "mtg_%d", &number)
		if number > before && x.final && !x.deleted && !assert.True(t, o.handled[x.id], "%s is lost: created %v, %+v", x.id, x.created.Sub(since), o.habits) {
			break
		}
	}
	assert.Zero(t, o.figures.twice, "yielded twice in a run: %+v", o.habits)
	assert.Zero(t, o.figures.within, "polls within 30 s: %+v", o.habits)
	time.Sleep(2 * time.Minute)
	require.Zero(t, o.poller.Kept())
}

func TestFollow_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testbase.Many(400, 10)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { live(t, seed) })
		})
	}
}

// FuzzFollow lets the fuzzer choose the office.
func FuzzFollow(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { live(t, seed) })
	})
}
