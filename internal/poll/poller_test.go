package poll

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

// scripted is a service with an empty list, whose GETs and pages fail as the test says.
type scripted struct {
	mu        sync.Mutex
	began     time.Time
	fails     func(at time.Duration) *Failure
	failing   map[string]*Failure // by meeting
	list      func(cursor string) (Page[int], *Failure)
	pageFails func(at time.Duration) *Failure

	// All meetings have the same age and, after the audio came, the same time of their last change.
	age       time.Duration
	audio     bool
	unchanged time.Duration

	queues time.Duration // until a GET is sent
	takes  time.Duration // from a GET to its response
	gets   []time.Duration
	pages  []string // cursors
}

func (s *scripted) Get(_ context.Context, id string, send func() bool) (Snapshot[int], *Failure) {
	time.Sleep(s.queues)
	if !send() {
		return Snapshot[int]{}, &Failure{Err: errRecalled, Kind: failure.Lost}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Since(s.began).Truncate(10 * time.Millisecond)
	s.gets = append(s.gets, at)
	if s.takes > 0 {
		s.mu.Unlock()
		time.Sleep(s.takes)
		s.mu.Lock()
	}
	if s.fails != nil {
		if f := s.fails(at); f != nil {
			return Snapshot[int]{}, f
		}
	}
	if f := s.failing[id]; f != nil {
		return Snapshot[int]{}, f
	}
	shown := Snapshot[int]{ID: id, Idle: !s.audio, Created: time.Now().Add(-s.age)}
	if s.audio {
		shown.Updated = time.Now().Add(-s.unchanged)
	}
	return shown, nil
}

func (s *scripted) Page(_ context.Context, cursor string, send func() bool) (Page[int], *Failure) {
	send()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = append(s.pages, cursor)
	if s.pageFails != nil {
		if f := s.pageFails(time.Since(s.began)); f != nil {
			return Page[int]{}, f
		}
	}
	if s.list != nil {
		return s.list(cursor)
	}
	return Page[int]{}, nil
}

// polls returns when the GETs were sent.
func (s *scripted) polls() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gets)
}

// cursors returns those of the pages that were requested.
func (s *scripted) cursors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pages)
}

func newPoller(s Service[int]) *Poller[int] { return New(s, func(error) {}) }

func inSeconds(times []time.Duration) (seconds []int) {
	for _, t := range times {
		seconds = append(seconds, int(t.Seconds()))
	}
	return seconds
}

// ended returns when a wait ended, and with which error; or why it would have ended with its
// context after forty minutes.
func ended(s *scripted, p *Poller[int], within time.Duration) (after time.Duration, err, trouble error) {
	sub := p.Subscribe("m", false)
	timeout := time.After(within)
	for {
		select {
		case u := <-sub.C():
			if u.Err != nil {
				return time.Since(s.began), u.Err, sub.Cancel()
			}
		case <-timeout:
			return time.Since(s.began), nil, sub.Cancel()
		}
	}
}

func TestPoller_EndsWaitsByTheKindOfAFailure(t *testing.T) {
	t.Parallel()
	err := errors.New("failed")
	for _, c := range []struct {
		name  string
		kind  failure.Kind
		after [2]time.Duration // the wait ends between these times; 0: never
	}{
		{"a lost connection never ends a wait", failure.Lost, [2]time.Duration{}},
		{"a 429 never ends a wait", failure.RateLimited, [2]time.Duration{}},
		{
			"a foreign failure ends it after ten minutes", failure.ForeignStatus,
			[2]time.Duration{10 * time.Minute, 13 * time.Minute},
		},
		{"a rejected request ends it at once", failure.Rejected, [2]time.Duration{0, time.Second}},
		{"so does a meeting that no response has shown", failure.Gone, [2]time.Duration{0, time.Second}},
		{"a rejected key ends it at once", failure.KeyRejected, [2]time.Duration{0, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fails := func(time.Duration) *Failure { return &Failure{Err: err, Kind: c.kind} }
				s := &scripted{began: time.Now(), fails: fails}
				after, final, trouble := ended(s, newPoller(s), 20*time.Minute)
				if c.after[1] == 0 {
					require.NoError(t, final)
					require.ErrorIs(t, trouble, err)
					return
				}
				require.ErrorIs(t, final, err)
				assert.GreaterOrEqual(t, after, c.after[0])
				assert.LessOrEqual(t, after, c.after[1])
				polls := len(s.polls())
				time.Sleep(10 * time.Minute)
				assert.Len(t, s.polls(), polls, "nobody waits any more")
			})
		})
	}
}

// Only foreign failures alone end a wait. After any other outcome, the ten minutes begin again.
func TestPoller_ForgetsForeignFailuresWhenSomethingElseComes(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]*Failure{
		"a good response":   nil,
		"a 429":             {Err: errDown, Kind: failure.RateLimited},
		"a lost connection": {Err: errLost, Kind: failure.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{began: time.Now(), fails: func(at time.Duration) *Failure {
					if at%(9*time.Minute) < 3*time.Minute {
						return other
					}
					return &Failure{Err: errors.New("certificate"), Kind: failure.ForeignStatus}
				}}
				_, final, _ := ended(s, newPoller(s), 20*time.Minute)
				require.NoError(t, final)
			})
		})
	}
}

func TestPoller_PollsAtTheRightTimes(t *testing.T) {
	t.Parallel()
	unavailable := func(retryAfter time.Duration) func(time.Duration) *Failure {
		return func(at time.Duration) *Failure {
			if at > time.Second {
				return nil
			}
			return &Failure{Err: errDown, Kind: failure.Lost, RetryAfter: retryAfter}
		}
	}
	for _, c := range []struct {
		name    string
		service *scripted
		rarely  bool
		act     func(p *Poller[int]) // at 10 s
		want    []int                // in seconds
	}{
		{name: "every thirty seconds", want: []int{0, 30, 60, 90}},
		{name: "after a Retry-After", service: &scripted{fails: unavailable(80 * time.Second)}, want: []int{0, 80}},
		{name: "after five minutes of a longer one", service: &scripted{fails: unavailable(time.Hour)}, want: []int{0}},
		{
			name:    "not early if the audio is known already",
			service: &scripted{audio: true},
			act:     func(p *Poller[int]) { p.Ask("m", true) },
			want:    []int{0, 30, 60, 90},
		},
		{name: "at once after an upload", act: func(p *Poller[int]) { p.Ask("m", true) }, want: []int{0, 10, 40, 70}},
		{
			name: "until the second 404, if the first comes soon after a response",
			service: &scripted{fails: func(at time.Duration) *Failure {
				if at < 5*time.Second {
					return nil
				}
				return &Failure{Err: errors.New("404"), Kind: failure.Gone}
			}},
			act:  func(p *Poller[int]) { p.Ask("m", true) },
			want: []int{0, 10, 40},
		},
		{
			name: "not early to confirm a page",
			act:  func(p *Poller[int]) { p.Ask("m", false) },
			want: []int{0, 30, 60, 90},
		},
		{name: "later after the user's own poll", act: func(p *Poller[int]) {
			p.Record(Snapshot[int]{ID: "m"}, p.Sending())
		}, want: []int{0, 40, 70}},
		{
			name:    "rarely without audio, if the wait allows it",
			service: &scripted{age: 35 * time.Minute}, rarely: true,
			want: []int{0, 70},
		},
		{name: "otherwise as ever", service: &scripted{age: 35 * time.Minute}, want: []int{0, 30, 60, 90}},
		{
			name:    "as ever once another wait joins",
			service: &scripted{age: 35 * time.Minute}, rarely: true,
			act: func(p *Poller[int]) {
				sub := p.Subscribe("m", false)
				time.AfterFunc(90*time.Second, func() { _ = sub.Cancel() })
			},
			want: []int{0, 30, 60, 90},
		},
		{
			name:    "as ever with audio, if it changes",
			service: &scripted{age: 9 * time.Hour, audio: true, unchanged: 5 * time.Hour}, rarely: true,
			want: []int{0, 30, 60, 90},
		},
		{
			name:    "rarely with audio, if it has not changed for six hours",
			service: &scripted{age: 9 * time.Hour, audio: true, unchanged: 6 * time.Hour}, rarely: true,
			want: []int{0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := cmp.Or(c.service, &scripted{})
				s.began = time.Now()
				p := newPoller(s)
				sub := p.Subscribe("m", c.rarely)
				time.Sleep(10 * time.Second)
				if c.act != nil {
					c.act(p)
				}
				time.Sleep(90 * time.Second)
				_ = sub.Cancel()
				_ = sub.Cancel() // does nothing
				time.Sleep(time.Hour)
				require.Equal(t, c.want, inSeconds(s.polls()), "nobody polls after Cancel")
			})
		})
	}
}

func TestPoller_ShowsTheLatestSnapshot(t *testing.T) {
	t.Parallel()
	type response struct {
		request int // which was sent first, second, ...
		page    bool
		updated int // in minutes
		meeting int // counts if it is the last one that is wanted
	}
	for _, c := range []struct {
		name      string
		responses []response
		want      int
	}{
		{"the response to a later GET counts", []response{{1, false, 1, 1}, {2, false, 2, 2}}, 2},
		{"even if it was updated earlier, because clocks differ", []response{{1, false, 9, 1}, {2, false, 2, 2}}, 2},
		{"the response to an earlier GET does not", []response{{2, false, 1, 1}, {1, false, 2, 2}}, 1},
		{"a page counts", []response{{1, false, 1, 1}, {2, true, 2, 2}}, 2},
		{"even if nothing was updated", []response{{1, false, 1, 1}, {2, true, 1, 2}}, 2},
		{"but not if the last GET shows a later update", []response{{1, false, 2, 1}, {2, true, 1, 2}}, 1},
		{"or the last page does", []response{{1, false, 2, 1}, {2, true, 9, 2}, {3, true, 3, 3}}, 2},
		{"a page that was requested before the last GET does not", []response{{2, false, 1, 1}, {1, true, 2, 2}}, 1},
		{
			"after a GET with an early clock, pages with it count",
			[]response{{1, false, 9, 1}, {2, false, 2, 2}, {3, true, 3, 3}}, 3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPoller(&scripted{})
			requests := []Sent{p.Sending(), p.Sending(), p.Sending()}
			for _, r := range c.responses {
				s := Snapshot[int]{ID: "m", Meeting: r.meeting, Updated: time.Unix(int64(r.updated)*60, 0)}
				s.Page = r.page
				s.Sent = requests[r.request-1]
				p.publish(p.meeting("m"), s)
			}
			require.Equal(t, c.want, p.meeting("m").last.Meeting)
		})
	}
}

func TestPoller_ReportsTroubleOnce(t *testing.T) {
	t.Parallel()
	down := &Failure{Err: errDown, Kind: failure.Lost}
	foreign := &Failure{Err: errDown, Kind: failure.ForeignStatus}
	for _, c := range []struct {
		name    string
		failure *Failure
		lasts   time.Duration // until GETs work again
		others  int           // waits for other meetings
		follow  bool          // while the first page of the list fails
		want    []error
	}{
		{"an outage", down, 20 * time.Minute, 0, false, []error{errDown, nil}},
		{"one failure of each of three meetings", down, time.Second, 2, false, []error{errDown, nil}},
		{"two failures are an accident", down, 45 * time.Second, 0, false, nil},
		{"another server answers for one meeting", foreign, 9 * time.Minute, 0, false, []error{errDown, nil}},
		{"it answers twice", foreign, 45 * time.Second, 0, false, nil},
		{"one page that a discovery needs", down, -1, 0, true, []error{errDown, nil}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{began: time.Now(), fails: func(at time.Duration) *Failure {
				if at > c.lasts {
					return nil
				}
				return c.failure
			}}
			s.list = func(string) (Page[int], *Failure) {
				if len(s.pages) == 1 {
					return Page[int]{}, down
				}
				return Page[int]{}, nil
			}
			var p *Poller[int]
			var mu sync.Mutex
			var reports []error
			p = New[int](s, func(err error) {
				p.Ask("other", true) // no lock is held
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, err)
			})
			for i := range c.others {
				defer p.Subscribe(string(rune('a'+i)), false).Cancel()
			}
			if c.follow {
				defer p.Discover(s.began).Cancel()
			}
			ended(s, p, 40*time.Minute)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, c.want, reports, c.name)
		})
	}
}

// A GET of which nobody awaits the response may have reached the service.
func TestPoller_DoesNotPollAgainSoonAfterAllHaveLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now(), takes: time.Second}
		p := newPoller(s)
		sub := p.Subscribe("m", false)
		time.Sleep(time.Second / 2)
		require.NoError(t, sub.Cancel())
		defer p.Subscribe("m", false).Cancel()
		time.Sleep(40 * time.Second)
		require.Equal(t, []int{0, 30}, inSeconds(s.polls()))
	})
}

func TestPoller_SendsNoGETThatNobodyNeedsAnyMore(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(p *Poller[int], a *Subscription[int]){
		"because nobody awaits it": func(_ *Poller[int], a *Subscription[int]) { _ = a.Cancel() },
		"because a response has shown it": func(p *Poller[int], _ *Subscription[int]) {
			p.Record(Snapshot[int]{ID: "a"}, p.Sending())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{began: time.Now(), queues: time.Second}
				p := newPoller(s)
				a := p.Subscribe("a", false)
				defer func() { _ = a.Cancel() }()
				defer p.Subscribe("b", false).Cancel()
				time.Sleep(time.Second / 2)
				meanwhile(p, a)
				time.Sleep(20 * time.Second)
				require.Len(t, s.polls(), 1)
			})
		})
	}
}

func TestPoller_RemembersAPollForAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		p := newPoller(s)
		p.Record(Snapshot[int]{ID: "old"}, p.Sending())
		time.Sleep(80 * time.Second)
		p.Record(Snapshot[int]{ID: "other"}, p.Sending())
		require.Contains(t, p.meetings, "old", "a page may contradict it")
		time.Sleep(35 * time.Second)
		p.Record(Snapshot[int]{ID: "m"}, p.Sending())
		require.NotContains(t, p.meetings, "old")
		time.Sleep(12 * time.Second)
		defer p.Subscribe("m", false).Cancel()
		time.Sleep(40 * time.Second)
		require.Equal(t, []int{145}, inSeconds(s.polls()))
	})
}

func TestPoller_TakesARepeatedCursorForTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now(), list: func(string) (Page[int], *Failure) {
			return Page[int]{Shown: []Snapshot[int]{{ID: "new", Created: time.Now()}}, Next: "again"}, nil
		}}
		defer newPoller(s).Discover(s.began).Cancel()
		time.Sleep(20 * time.Second)
		require.Equal(t, []string{"", "again"}, s.cursors())
	})
}

// A service that ignores the cursor shows the first page again and again, each time with a cursor that
// leads on. Neither waits nor a discovery read on for ever.
func TestPoller_DoesNotReadAListThatRepeatsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		s.list = func(cursor string) (Page[int], *Failure) {
			var all []Snapshot[int]
			for i := range 50 {
				all = append(all, Snapshot[int]{ID: strconv.Itoa(i), Created: s.began})
			}
			return Page[int]{Shown: all, Next: cursor + "x"}, nil
		}
		p := newPoller(s)
		for i := range 60 {
			defer p.Subscribe(strconv.Itoa(i), false).Cancel()
		}
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, len(s.cursors()), 30, "three pages in each cycle")
		defer p.Discover(s.began).Cancel()
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, len(s.cursors()), 60)
	})
}

func TestPoller_ACrowdThatBeginsTogetherNeedsOneSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		s.list = func(string) (Page[int], *Failure) {
			var all []Snapshot[int]
			for i := range 40 {
				all = append(all, Snapshot[int]{ID: strconv.Itoa(i)})
			}
			return Page[int]{Shown: all}, nil
		}
		p := newPoller(s)
		for i := range 40 {
			defer p.Subscribe(strconv.Itoa(i), false).Cancel()
		}
		time.Sleep(29 * time.Second)
		require.Len(t, s.cursors(), 1)
		require.Less(t, len(s.polls()), 10, "the page has shown the others")
		time.Sleep(30 * time.Second)
		require.Len(t, s.cursors(), 2)
	})
}

// After an outage of everything, waits and discoveries come back within half a minute, whenever it
// began.
func TestPoller_ComesBackSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
		for began := range 30 {
			synctest.Test(t, func(t *testing.T) {
				from := 90*time.Second + time.Duration(began)*time.Second
				down := func(at time.Duration) *Failure {
					if at < from || at >= from+lasts {
						return nil
					}
					return &Failure{Err: errDown, Kind: failure.Lost}
				}
				lone := &scripted{began: time.Now(), fails: down}
				defer newPoller(lone).Subscribe("m", false).Cancel()
				list := &scripted{began: time.Now(), pageFails: down}
				defer newPoller(list).Discover(time.Now()).Cancel()
				time.Sleep(from + lasts)
				gets := len(lone.polls())
				pages := len(list.cursors())
				time.Sleep(31 * time.Second)
				require.Greater(t, len(lone.polls()), gets, "a wait")
				require.Greater(t, len(list.cursors()), pages, "a discovery")
			})
		}
	}
}

func TestSubscription_CancelReturnsTheFailureThatConcernsTheWait(t *testing.T) {
	t.Parallel()
	down := &Failure{Err: errDown, Kind: failure.Lost}
	foreign := &Failure{Err: errors.New("sign in"), Kind: failure.ForeignStatus}
	limited := &Failure{Err: errLimited, Kind: failure.RateLimited}
	for _, c := range []struct {
		name    string
		failing map[string]*Failure
		after   time.Duration
		want    error // of the wait for a; others wait for b, c and d, in this order
	}{
		{"its own one", map[string]*Failure{"a": foreign, "b": down, "c": down, "d": down}, second, foreign.Err},
		{"that of an outage", map[string]*Failure{"b": down, "c": down, "d": down}, second, errDown},
		{"a 429", map[string]*Failure{"d": limited}, second, errLimited},
		{"none if its polls work and others fail now and then", map[string]*Failure{"b": down, "c": down}, second, nil},
		{"none if its polls work and another meeting fails", map[string]*Failure{"d": down}, 65 * second, nil},
		{"none if all works", nil, second, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPoller(&scripted{began: time.Now(), failing: c.failing})
				waits := make(map[string]*Subscription[int])
				for _, id := range []string{"a", "b", "c", "d"} {
					waits[id] = p.Subscribe(id, false)
				}
				time.Sleep(c.after)
				require.ErrorIs(t, waits["a"].Cancel(), c.want)
				for _, w := range waits {
					_ = w.Cancel()
				}
			})
		})
	}
}

func TestSubscription_CancelReturnsTheFailureOfAnOutageThatBeganBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := &Failure{Err: errDown, Kind: failure.Lost, RetryAfter: MaxAsked}
		s := &scripted{began: time.Now(), fails: func(time.Duration) *Failure { return down }}
		p := newPoller(s)
		var waits []*Subscription[int]
		for _, id := range []string{"a", "b", "c"} {
			waits = append(waits, p.Subscribe(id, false))
		}
		time.Sleep(time.Second)
		for _, w := range waits {
			require.ErrorIs(t, w.Cancel(), errDown)
		}
		gets := len(s.polls())
		later := p.Subscribe("later", false)
		time.Sleep(time.Minute)
		require.Len(t, s.polls(), gets, "the pause outlasts the waits")
		require.ErrorIs(t, later.Cancel(), errDown)
	})
}

// A good response to the user's own request ends an outage, too.
func TestPoller_PollsAgainAfterAGoodResponseToTheUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := &Failure{Err: errDown, Kind: failure.Lost, RetryAfter: MaxAsked}
		s := &scripted{began: time.Now(), failing: map[string]*Failure{"a": down, "b": down, "c": down}}
		p := newPoller(s)
		for _, id := range []string{"a", "b", "c"} {
			defer p.Subscribe(id, false).Cancel()
		}
		time.Sleep(time.Second)
		gets := len(s.polls())
		waits := p.Subscribe("d", false)
		time.Sleep(time.Minute)
		require.Len(t, s.polls(), gets, "a pause")
		p.Record(Snapshot[int]{ID: "of the user"}, p.Sending())
		time.Sleep(time.Second)
		require.Len(t, s.polls(), gets+1)
		require.NoError(t, waits.Cancel())
	})
}

func TestSubscription_CancelForgetsAFailureAfterAGoodResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signIn := &Failure{Err: errors.New("sign in"), Kind: failure.ForeignStatus}
		s := &scripted{began: time.Now(), failing: map[string]*Failure{"m": signIn}}
		p := newPoller(s)
		sub := p.Subscribe("m", false)
		time.Sleep(time.Second)
		p.Record(Snapshot[int]{ID: "m"}, p.Sending())
		require.NoError(t, sub.Cancel())
	})
}

func TestPoller_HasAPhaseThatIsZeroInVirtualTime(t *testing.T) {
	t.Parallel()
	require.NotZero(t, newPoller(&scripted{}).plan.phase+newPoller(&scripted{}).plan.phase)
	whole := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Zero(t, phaseOf(whole))
	synctest.Test(t, func(t *testing.T) { require.Zero(t, newPoller(&scripted{}).plan.phase) })

	// However closely one Poller begins after the other, their first two cycles together differ by
	// up to 18 seconds.
	for _, apart := range []time.Duration{1, 100, 600, 1000, 16_384, 999_000, 1_000_100} {
		inSecond := make([]int, 18)
		for i := range 500 {
			phase := phaseOf(whole.Add(time.Duration(i) * apart))
			inSecond[2*phase/time.Second]++
		}
		require.Less(t, slices.Max(inSecond), 50, apart)
	}
}

// A page may show a meeting as it was, long after a GET has shown a later change. If the next page does so
// again, and no GET shows another change, GETs replace pages for a while.
func TestPoller_DistrustsPagesThatGETsContradict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		stale    int  // pages in a row
		confirms bool // the GETs between them
		want     bool // that pages are distrusted
	}{
		{"two, and the GET between them confirms that", 2, true, true},
		{"one", 1, true, false},
		{"two, but the GET between them shows another change: clocks differ", 2, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPoller(&scripted{})
			updated := time.Unix(1000, 0)
			p.Record(Snapshot[int]{ID: "m", Updated: updated}, p.Sending())
			for range c.stale {
				old := Snapshot[int]{ID: "m", Updated: time.Unix(10, 0), Page: true, Sent: p.Sending()}
				p.plan.beginSweep(p.now())
				p.pageRead(firstPage, outcome[int]{Page: Page[int]{Shown: []Snapshot[int]{old}}})
				if !c.confirms {
					updated = updated.Add(-time.Minute)
				}
				p.Record(Snapshot[int]{ID: "m", Updated: updated}, p.Sending())
			}
			require.Equal(t, c.want, p.plan.trustedAt > 0)
		})
	}
}
