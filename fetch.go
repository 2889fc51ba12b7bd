package minutes

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// fetch fetches the minutes of r.Meeting, and the transcript if the options ask for it. It asks
// again until they are ready, and after each failure that may be temporary. Each request is one
// attempt, for which the fetch holds one of the Client's eight slots. unseen is held during the
// requests and after success. Between two requests neither is held, so meetings whose minutes are
// never ready do not stop the others. If patience is not 0, it is the longest time for which the fetch
// may fail, even temporarily.
func (c *core) fetch(ctx context.Context, r *Result, o WaitOptions, unseen *slot, patience time.Duration) error {
	c.fetches.begin(r)
	defer c.fetches.end(r)
	requesting := slot{tokens: c.fetchSlots}
	defer requesting.free()
	failures := fetchFailures{patience: patience}
	var last error
	for attempt := 1; ; attempt++ {
		err := unseen.acquire(ctx)
		if err == nil {
			err = requesting.acquire(ctx)
		}
		if err != nil {
			return &WaitError{MeetingID: r.MeetingID, Meeting: r.Meeting, Err: rest.Join(last, err)}
		}
		last = c.fetchTexts(ctx, r, o)
		if last == nil {
			c.logFetch(ctx, r, c.fetches.succeeded(r), nil)
			return nil
		}
		unseen.free()
		delay, again := failures.next(last, c.unknownYet(r.MeetingID, last), time.Now())
		if attempt == fetchesFail {
			c.logFetch(ctx, r, c.fetches.failed(r), last)
		}
		if again && failures.inARow > 0 {
			// An outage gets few requests, however many meetings are ready.
			_ = rest.Sleep(ctx, time.Second)
		}
		requesting.free()
		if !again || rest.Sleep(ctx, delay) != nil {
			return &WaitError{MeetingID: r.MeetingID, Meeting: r.Meeting, Err: rest.WithCause(ctx, last)}
		}
	}
}

// fetchTexts makes one attempt at each text that r lacks, until one fails.
func (c *core) fetchTexts(ctx context.Context, r *Result, o WaitOptions) (err error) {
	if o.fetchesMinutes() && r.Minutes == nil {
		in := minutesRequest(r.MeetingID, o.Format)
		in.Once = true
		r.Minutes, _, err = call[Minutes](ctx, c, OpMeetingsMinutes, in)
	}
	if err == nil && o.Transcript {
		in := transcriptRequest(r.MeetingID)
		in.Once = true
		r.Transcript, _, err = call[Transcript](ctx, c, OpMeetingsTranscript, in)
	}
	return err
}

// fetchesFail is how many failures of a fetch are worth a warning.
const fetchesFail = 3

// fetches is what a Client knows of its fetches under way. Each has the Result that it fills.
type fetches struct {
	mu sync.Mutex
	// failing has each of them, and whether it has failed so often.
	failing map[*Result]bool
}

func (f *fetches) begin(r *Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing == nil {
		f.failing = make(map[*Result]bool)
	}
	f.failing[r] = false
}

func (f *fetches) end(r *Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failing, r)
}

// failed notes that a fetch is failing, and reports whether it is the only one.
func (f *fetches) failed(r *Result) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing[r] = true
	return f.countFailing() == 1
}

// succeeded notes that a fetch has succeeded, and reports whether it was the only one that was failing.
func (f *fetches) succeeded(r *Result) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last = f.failing[r] && f.countFailing() == 1
	f.failing[r] = false
	return last
}

// countFailing returns how many are failing. The caller holds mu.
func (f *fetches) countFailing() (n int) {
	for _, failing := range f.failing {
		if failing {
			n++
		}
	}
	return n
}

// stats returns how many there are, and the earliest creation of their meetings.
func (f *fetches) stats() (n int, oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.failing { // whose Meeting does not change during a fetch
		if r.Meeting != nil {
			oldest = earliest(oldest, r.Meeting.CreatedAt.Time())
		}
	}
	return len(f.failing), oldest
}

// earliest returns the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fetchFailures decides after each failure of a fetch whether and when it asks again.
type fetchFailures struct {
	patience     time.Duration // how long temporary failures are outlasted; 0 means for ever
	since        time.Time     // when the first failure came
	inARow       int           // without a good response, such as one that says that the minutes are not ready
	foreignSince time.Time     // when the present row of foreign failures began; zero if something else came last
}

// next returns the delay before the next request. Like a wait, a fetch ends after ten
// minutes of nothing but foreign failures. unknownYet is what core.unknownYet says of err.
func (f *fetchFailures) next(err error, unknownYet bool, now time.Time) (delay time.Duration, again bool) {
	kind := kindOf(err)
	ends := failure.Means[kind].EndsWait
	f.since = cmp.Or(f.since, now)
	impatient := f.patience > 0 && now.Sub(f.since) >= f.patience
	switch {
	case impatient:
		return 0, false
	case kind == failure.NotReady && ends == failure.Never:
		f.inARow = 0
		f.foreignSince = time.Time{}
		return poll.Interval, true
	case ends == failure.Never, unknownYet:
		f.foreignSince = time.Time{}
	case ends != failure.Later && ends != failure.AllLater:
		return 0, false
	case f.foreignSince.IsZero():
		f.foreignSince = now
	case now.Sub(f.foreignSince) >= poll.Hopeless:
		return 0, false
	}
	asked, _ := RetryAfter(err)
	delay = rest.Delay(f.inARow, min(asked, poll.MaxAsked))
	f.inARow++
	return delay, true
}
