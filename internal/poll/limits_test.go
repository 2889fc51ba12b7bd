package poll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// storm is a scenario in which the service rejects requests, or the Client limits itself, while the
// user's calls and the polls of waits compete.
type storm struct {
	scenario
	// calls is what the user does in each process, beside its waits.
	calls func(context.Context, *user)
}

// stormBounds are what a storm must keep, apart from bounds. 0 means no bound.
type stormBounds struct {
	bounds
	// rejections is the number of 429s.
	rejections int
	// failed is the share of the user's calls that fail.
	failed float64
	// late is how many times as long as in an ideal client the user's work takes.
	late float64
	// uploaded is when the last upload of an import ends.
	uploaded time.Duration
}

// user makes the user's calls in one process, as the root does it: with retries, and on the
// throttle of the poller. Its fields are guarded by the service's lock.
type user struct {
	*process
	api *rest.Client
	// made is the number of calls.
	made int
	// failed is the number of those that failed.
	failed int
	// late is the longest time that a piece of work took, compared with that of an ideal client.
	late float64
	// uploaded is when the last upload of an import ended.
	uploaded time.Duration
}

func newUser(p *process) *user {
	u := &user{process: p}
	u.api = rest.New(rest.Config{
		Base:       &url.URL{Scheme: "https", Host: "minutes.example"},
		Key:        rest.FixedKey("key"),
		Transport:  testbase.RoundTripper(u.roundTrip),
		Timeout:    30 * time.Second,
		MaxRetries: 6,
		Throttle:   p.throttle,
		Mask:       rest.NewMask("key"),
	})
	return u
}

// roundTrip is the service's response to one attempt.
func (u *user) roundTrip(req *http.Request) (*http.Response, error) {
	u.mu.Lock()
	takes, f := u.accept(request{at: time.Since(u.began)}, u.latency)
	u.mu.Unlock()
	if canceled := sleep(req.Context(), takes); canceled != nil {
		return nil, canceled.Err
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	if f != nil {
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	return resp, nil
}

// call makes one call, and reports whether it succeeded within a time.
func (u *user) call(ctx context.Context, within time.Duration) bool {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	resp, err := u.api.Call(limited, rest.Request{Method: http.MethodGet, Path: "/", Repeatable: true})
	good := err == nil && resp.Status == http.StatusOK
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil { // the scenario has ended
		return false
	}
	u.made++
	if !good {
		u.failed++
	}
	u.userTook = append(u.userTook, time.Since(began))
	return good
}

// waitFor waits for a new meeting, whose minutes take some time.
func (u *user) waitFor(ctx context.Context, takes time.Duration) {
	u.mu.Lock()
	now := time.Now()
	m := u.add(u.number%len(u.lists), now, now.Add(takes/2), now.Add(takes))
	u.mu.Unlock()
	u.wait(ctx, m, false)
}

// compare records how long a piece of work took, compared with an ideal client.
func (u *user) compare(took, ideal time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.late = max(u.late, took.Seconds()/ideal.Seconds())
}

// gets makes Gets at random times, which fail after twenty seconds.
func gets(perSecond float64) func(context.Context, *user) {
	return func(ctx context.Context, u *user) {
		for sleep(ctx, time.Duration(u.exponential()/perSecond*float64(time.Second))) == nil {
			go u.call(ctx, 20*time.Second)
		}
	}
}

// alwaysCalls makes one Get after the other.
func alwaysCalls(ctx context.Context, u *user) {
	for ctx.Err() == nil {
		if !u.call(ctx, time.Hour) {
			_ = sleep(ctx, second) // otherwise a call that a pause ends at once would stop the clock
		}
	}
}

// imports processes recordings, four at a time until they are uploaded. Each takes two calls, a
// wait and a third call.
func imports(n int, takes, ideal time.Duration) func(context.Context, *user) {
	return func(ctx context.Context, u *user) {
		began := time.Now()
		var all sync.WaitGroup
		slots := make(chan struct{}, 4)
		for range n {
			slots <- struct{}{}
			all.Go(func() {
				created := u.call(ctx, time.Hour)
				gotURL := created && u.call(ctx, time.Hour)
				uploaded := gotURL && sleep(ctx, 2*time.Second) == nil
				<-slots
				if !uploaded {
					return
				}
				u.mu.Lock()
				u.uploaded = time.Since(began)
				u.mu.Unlock()
				u.waitFor(ctx, takes)
				u.call(ctx, time.Hour)
			})
		}
		all.Wait()
		u.compare(time.Since(began), ideal)
	}
}

// afterBurst waits for a meeting, in a process that begins with five calls.
func afterBurst(ctx context.Context, u *user) {
	for range 5 {
		go u.call(ctx, time.Hour)
	}
	began := time.Now()
	takes := 10*minute + time.Duration(u.number)*15*second
	u.waitFor(ctx, takes)
	u.compare(time.Since(began), takes+floor)
}

// afterStorm makes twenty calls, six minutes after an hour of 429s. Each must succeed at once.
func afterStorm(ctx context.Context, u *user) {
	_ = sleep(ctx, stormBegins+time.Hour+6*minute)
	for range 20 {
		u.call(ctx, second)
	}
}

const stormBegins = 5 * minute

// hourOf429s rejects all requests for an hour.
func hourOf429s() func(request) *Failure {
	return func(r request) *Failure {
		if r.at < stormBegins || r.at >= stormBegins+time.Hour {
			return nil
		}
		return &Failure{Err: errLimited, Kind: failure.RateLimited}
	}
}

func hourOf429sThatAsk() func(request) *Failure {
	reject := hourOf429s()
	return func(r request) *Failure {
		f := reject(r)
		if f != nil {
			f.RetryAfter = second
		}
		return f
	}
}

// slidingWindow rejects a request if there were n others in the last minute. Rejected ones count as
// well.
func slidingWindow(n int) func() func(request) *Failure {
	return func() func(request) *Failure {
		var sent []time.Duration
		return func(r request) *Failure {
			sent = slices.DeleteFunc(sent, func(at time.Duration) bool { return at <= r.at-time.Minute })
			sent = append(sent, r.at)
			if len(sent) <= n {
				return nil
			}
			return &Failure{Err: errLimited, Kind: failure.RateLimited}
		}
	}
}

// atRandom rejects a share of the requests.
func atRandom(share float64) func() func(request) *Failure {
	return func() func(request) *Failure {
		random := rand.New(rand.NewPCG(3, 4))
		return func(request) *Failure {
			if random.Float64() >= share {
				return nil
			}
			return &Failure{Err: errLimited, Kind: failure.RateLimited}
		}
	}
}

// storms are what the poller and the throttle must pass together. rejects makes the scenario's
// fault. Those that are not quick run in long tests only.
var storms = []struct {
	name    string
	rejects func() func(request) *Failure
	storm
	stormBounds
	quick bool
}{
	{
		"an hour of 429s", hourOf429s,
		storm{scenario{waits: 1, lasts: 75 * minute}, afterStorm},
		stormBounds{rejections: 130, bounds: bounds{unseen: 66 * minute}},
		true,
	},
	{
		"an hour of 429s, each with a Retry-After of a second", hourOf429sThatAsk,
		storm{scenario{waits: 1, lasts: 75 * minute}, afterStorm},
		stormBounds{rejections: 130, bounds: bounds{unseen: 62 * minute}},
		true,
	},
	{
		"20 processes that need 40 a minute of 60, of which rejected ones count", slidingWindow(60),
		storm{scenario{processes: 20, apart: true, lasts: time.Hour}, afterBurst},
		stormBounds{late: 2, failed: 0.4},
		true,
	},
	{
		"1 % rejected at random", atRandom(0.01),
		storm{scenario{waits: 100}, gets(1.2)},
		stormBounds{failed: 0.01, bounds: bounds{p99: 40 * second}},
		true,
	},
	{
		"5 % rejected at random", atRandom(0.05),
		storm{scenario{waits: 100}, gets(1.2)},
		stormBounds{failed: 0.03, bounds: bounds{p99: 60 * second}},
		true,
	},
	{
		"two Gets a second, 5 % rejected at random", atRandom(0.05),
		storm{scenario{waits: 100}, gets(2)},
		stormBounds{failed: 0.03, bounds: bounds{p99: 75 * second}},
		false,
	},
	{
		"600 spread waits, 1 % rejected at random", atRandom(0.01),
		storm{scenario{waits: 600, oneIn: 30}, gets(0.1)},
		stormBounds{failed: 0.01, bounds: bounds{p99: 150 * second}},
		false,
	},
	{
		"six Gets a second and 600 spread waits, WithRateLimit(9, 9)", nil,
		storm{scenario{waits: 600, oneIn: 30, limit: 9}, gets(6)},
		stormBounds{bounds: bounds{user: second, unseen: 8 * minute}},
		false,
	},
	{
		"an import of 5,000, WithRateLimit(1, 5)", nil,
		storm{scenario{limit: 1, lasts: 6 * time.Hour}, imports(5000, 5*minute, 15_000*second+5*minute)},
		stormBounds{late: 1.1},
		false,
	},
	{
		"an import of 5,000, quota of 60 a minute", nil,
		storm{scenario{quota: 60, lasts: 6 * time.Hour}, imports(5000, 5*minute, 15_000*second+5*minute)},
		stormBounds{late: 1.15, uploaded: 280 * minute, bounds: bounds{p99: time.Hour}},
		false,
	},
	{
		"an import of 5,000, one request a second and bursts of ten", nil,
		storm{scenario{edge: 1, burst: 10, lasts: 6 * time.Hour}, imports(5000, 5*minute, 15_000*second+5*minute)},
		stormBounds{late: 1.15, uploaded: 280 * minute, bounds: bounds{p99: time.Hour}},
		false,
	},
	{
		"30 spread waits, quota of 60 a minute that says when to come back", nil,
		storm{scenario{waits: 30, oneIn: 50, quota: 60, asks: true}, gets(0.2)},
		stormBounds{failed: 0.01, bounds: bounds{p99: 60 * second, user: 12 * second}},
		true,
	},
	{"a busy caller, a request in two seconds", nil, besideBusyCaller(0.5), busyBounds, true},
	{"a busy caller, a request a second", nil, besideBusyCaller(1), busyBounds, true},
	{"a busy caller, two requests a second", nil, besideBusyCaller(2), busyBounds, true},
	{"a busy caller, five requests a second", nil, besideBusyCaller(5), busyBounds, true},
}

// besideBusyCaller has a new wait in every three minutes, beside a user who makes one call after the
// other.
func besideBusyCaller(perSecond float64) storm {
	return storm{scenario{newcomers: 3 * minute, takes: 2 * minute, edge: perSecond, lasts: time.Hour}, alwaysCalls}
}

var busyBounds = stormBounds{bounds: bounds{p99: 90 * second, first: minute}}

// run simulates a storm, and returns the bounds that it misses.
func (w storm) run(b stormBounds, rejects func() func(request) *Failure) []string {
	rejections := 0
	if rejects != nil {
		reject := rejects()
		w.fault = func(r request) *Failure {
			f := reject(r)
			if f != nil {
				rejections++
			}
			return f
		}
	}
	var users []*user
	m := runWith(w.scenario, func(ctx context.Context, processes []*process) {
		for _, p := range processes {
			u := newUser(p)
			users = append(users, u)
			go w.calls(ctx, u)
		}
	})
	var all user
	for _, u := range users {
		all.made += u.made
		all.failed += u.failed
		all.late = max(all.late, u.late)
		all.uploaded = max(all.uploaded, u.uploaded)
	}
	missed := b.misses(m)
	if share := float64(all.failed) / float64(all.made); all.made == 0 || share > b.failed {
		missed = append(missed, fmt.Sprintf("%d of %d calls failed", all.failed, all.made))
	}
	if rejections > b.rejections && b.rejections > 0 {
		missed = append(missed, fmt.Sprintf("%d requests were rejected", rejections))
	}
	if b.late > 0 && (all.late > b.late || all.late == 0) {
		missed = append(missed, fmt.Sprintf("the work took %.2f times as long as the ideal", all.late))
	}
	if b.uploaded > 0 && (all.uploaded > b.uploaded || all.uploaded == 0) {
		missed = append(missed, fmt.Sprintf("the last upload ended after %v", all.uploaded))
	}
	return missed
}

func TestPoller_KeepsBoundsInStorms(t *testing.T) {
	t.Parallel()
	for _, w := range storms {
		if !w.quick && !testbase.Long() {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { assert.Empty(t, w.storm.run(w.stormBounds, w.rejects)) })
		})
	}
}
