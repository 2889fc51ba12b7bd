package poll_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// follows are an hour of Follow in an office.
var follows = []struct {
	name      string
	habits    habits
	old       int           // finished meetings, before Follow begins
	waits     int           // other waits, for unfinished meetings below those
	abandoned int           // meetings without audio since a day ago, one in apart
	apart     int           // meetings since then
	hourly    int           // new meetings an hour, spread evenly,
	takes     time.Duration // from creation to end
	imported  int           // meetings after ten minutes; they end within as long as takes
	without   bool          // nobody follows
	perMinute float64       // bound of requests a minute
	notified  time.Duration // bound from a meeting's end until Follow knows it
	quick     bool
}{
	{name: "idle, over 100,000", old: 100_000, perMinute: 3},
	{name: "1,000 an hour, 20 minutes each", old: 1000, hourly: 1000, takes: 20 * time.Minute, perMinute: 25, notified: time.Minute, quick: true},
	{name: "1,000 an hour, by change", habits: habits{byChange: true}, old: 1000, hourly: 1000, takes: 20 * time.Minute, perMinute: 40, notified: time.Minute, quick: true},
	{name: "10,000 other waits, nobody follows", waits: 10_000, without: true, perMinute: 440},
	{name: "10,000 other waits", waits: 10_000, perMinute: 440},
	{name: "10,000 other waits, 100 an hour", waits: 10_000, hourly: 100, takes: 20 * time.Minute, perMinute: 440, notified: 90 * time.Second},
	{name: "5,000 imported at once", old: 1000, imported: 5000, takes: 20 * time.Minute, perMinute: 100, notified: time.Minute},
	{name: "5,000 imported, finished", old: 1000, imported: 5000, perMinute: 20, notified: time.Minute},
	{name: "3,000 without audio since a day", abandoned: 3000, apart: 1, perMinute: 6, quick: true},
	{name: "3,000 without audio, one in 20", abandoned: 3000, apart: 20, perMinute: 80},
}

// followed lets an hour pass.
func followed(t testing.TB, i int) figures {
	f := follows[i]
	o := newOffice(t, 1, f.habits)
	o.mu.Lock()
	for range f.waits {
		o.create(1000 * time.Hour)
	}
	for range f.old {
		o.create(1)
	}
	o.mu.Unlock()
	time.Sleep(time.Hour)
	since := time.Now()
	o.mu.Lock()
	for range f.abandoned {
		o.create(0)
		for range f.apart - 1 {
			o.create(1)
		}
	}
	o.mu.Unlock()
	if f.abandoned > 0 {
		time.Sleep(24 * time.Hour)
	}
	wait := &others{}
	for i := range f.waits {
		o.poller.Join(wait, o.list[i].id)
	}
	if !f.without {
		o.start(since)
	}
	if f.abandoned > 0 { // the first reading is over
		time.Sleep(10 * time.Minute)
	}
	o.mu.Lock()
	before := o.figures
	o.figures.notified, o.figures.found = 0, 0
	o.began = time.Now()
	o.mu.Unlock()
	if f.imported > 0 {
		time.AfterFunc(10*time.Minute, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			for range f.imported {
				o.create(1 + time.Duration(o.random.Int64N(int64(f.takes+1))))
			}
		})
	}
	hour := time.Now().Add(time.Hour)
	for range f.hourly {
		time.Sleep(time.Hour / time.Duration(f.hourly))
		o.mu.Lock()
		o.create(f.takes)
		o.mu.Unlock()
	}
	time.Sleep(time.Until(hour))
	o.mu.Lock()
	after := o.figures
	o.mu.Unlock()
	if !f.without {
		o.stop()
	}
	for i := range f.waits {
		o.poller.Leave(wait, o.list[i].id)
	}
	synctest.Wait()
	after.pages -= before.pages
	after.polls -= before.polls
	return after
}

// others waits for meetings that do not end.
type others struct{ _ int }

func (*others) Notify(poll.Snapshot, bool, time.Duration) (over, confirm bool) { return false, false }
func (*others) Fail(string, poll.Snapshot, error)                              {}
func (*others) Interval(poll.Snapshot) time.Duration                           { return 0 }

func TestFollow_Figures(t *testing.T) {
	t.Parallel()
	for i, f := range follows {
		if !f.quick && !testbase.Long() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := followed(t, i)
				t.Logf("%d pages, %d polls, notified %v, found %v", got.pages, got.polls, got.notified, got.found)
				assert.LessOrEqual(t, float64(got.pages+got.polls)/60, f.perMinute, "requests a minute")
				assert.LessOrEqual(t, got.notified, f.notified, "notified at the latest")
				assert.Zero(t, got.within, "polls within 30 s")
				if f.notified > 0 {
					assert.Positive(t, got.notified)
				}
			})
		})
	}
}

// BenchmarkFollows measures the same. `go run ./docs waiting` makes a table of it.
func BenchmarkFollows(b *testing.B) {
	for i, f := range follows {
		b.Run(f.name, func(b *testing.B) {
			for range b.N {
				inBubble(b, func(t *testing.T) {
					got := followed(t, i)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(got.pages+got.polls)/60, "requests/min")
					b.ReportMetric(100*float64(got.polls)/float64(max(1, got.pages+got.polls)), "%-polls")
					if got.found > 0 {
						b.ReportMetric(got.found.Seconds(), "s-found")
					}
					if got.notified > 0 {
						b.ReportMetric(got.notified.Seconds(), "s-notified")
					}
				})
			}
		})
	}
}
