package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errGoexit = errors.New("the transport ended its goroutine (runtime.Goexit)")

// poll makes one poll and reports its outcome to the plan and to the waiters, even if the
// transport calls runtime.Goexit, as a test's FailNow does.
func (p *Poller) poll(ctx context.Context, w *watch, sentAt time.Duration) {
	var s Snapshot
	var maxAge time.Duration
	failure, sent := &Failure{Err: errGoexit, Transient: true}, false
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dequeue(ctx, &sent)
		if ctx.Err() != nil {
			return // nobody waits any more
		}
		now := p.now()
		if failure != nil {
			p.pollFailed(w, now, sentAt, failure)
		} else {
			old := w.old(s, sentAt)
			p.observeRecovery(w)
			p.plan.polled(w, now, maxAge)
			if !old {
				p.notify(w, s, sentAt)
			}
		}
		p.run(now)
	}()
	s, maxAge, failure = p.service.Poll(ctx, w.id, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dequeue(ctx, &sent)
		if w.seen > sentAt { // a page has shown the meeting meanwhile
			return false
		}
		p.cycle.Polls++
		return true
	})
}

// dequeue records, once, that a request does not wait to be sent any more. The next may wait.
func (p *Poller) dequeue(ctx context.Context, sent *bool) {
	if !*sent && ctx.Err() == nil {
		*sent = true
		p.queued--
		p.reschedule(p.now())
	}
}

// pollFailed reports the outcome of a failed poll. Some failures end waits.
func (p *Poller) pollFailed(w *watch, now, sentAt time.Duration, failure *Failure) {
	switch {
	case failure.RateLimited:
		p.trouble, p.troubled = failure.Err, now
		p.plan.pollRateLimited(w, now, sentAt, failure.RetryAfter)
	case w.seen > sentAt: // another request has shown the meeting since; the poll may not have been sent
		p.plan.pollEnded(w)
	case failure.NotBefore > 0:
		p.plan.pollPutOff(w, now, failure.NotBefore)
	case !failure.Transient:
		p.plan.pollEnded(w)
		all := failure.KeyRejected && p.plan.keyRejected(true)
		if !failure.KeyRejected {
			p.plan.works(now)
		}
		p.observeFailure(w, p.plan.failures[w].polls+1, failure.Err)
		p.fail(w, failure.Err)
		if all {
			p.failAll(failure.Err)
		}
	default:
		p.trouble, p.troubled = failure.Err, now
		ended := p.plan.pollFailed(w, now, sentAt, failure.RetryAfter)
		if w.waited() {
			p.observeFailure(w, p.plan.failures[w].polls, failure.Err)
		}
		p.failTooMany(ended, now, failure.Err)
	}
}

// fail ends every wait for a meeting.
func (p *Poller) fail(w *watch, err error) {
	w.fail(err)
	p.releaseIfIdle(w)
}

// ErrPollsFailed is in the error of a wait that ended after too many failed polls in a row.
var ErrPollsFailed = errors.New("status checks failed")

// failTooMany ends the waits for meetings with too many failures in a row.
func (p *Poller) failTooMany(ended []*watch, now time.Duration, err error) {
	for _, w := range ended {
		f := p.plan.failures[w]
		p.fail(w, fmt.Errorf("%d consecutive %w over %v (for this or other meetings): %w",
			f.polls, ErrPollsFailed, (now-f.since).Round(time.Second), err))
	}
}

// failAll ends all follows and all waits.
func (p *Poller) failAll(err error) {
	for _, f := range p.followers {
		f.waiter.Fail("", Snapshot{}, err)
	}
	for _, w := range p.plan.watches {
		if w.waited() {
			p.fail(w, err)
		}
	}
}

// page reads one page and reports its outcome to the plan and to the waiters.
func (p *Poller) page(ctx context.Context, cursor string, sentAt time.Duration) {
	began := time.Now()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := time.AfterFunc(never, cancel)
	defer timeout.Stop()
	var page []Snapshot
	var next string
	failure, sent := &Failure{Err: errGoexit, Transient: true}, false
	defer func() { // also if the transport calls runtime.Goexit
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dequeue(ctx, &sent)
		if failure == nil && ctx.Err() == nil {
			p.showFollowers(page, cursor, next, began)
		}
		shown := p.notifyPage(page, sentAt)
		if ctx.Err() != nil {
			return // nobody waits any more
		}
		now := p.now()
		if failure != nil {
			p.pageFailed(now, sentAt, cursor, failure, limited.Err() != nil)
		} else {
			p.plan.pageRead(now, sentAt, shown, next)
		}
		p.run(now)
	}()
	page, next, failure = p.service.Page(limited, cursor, func() bool {
		timeout.Reset(stuck)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dequeue(ctx, &sent)
		p.cycle.Pages++
		return true
	})
}

// pageFailed reports the outcome of a failed page. slow means that it timed out. Some failures
// end waits.
func (p *Poller) pageFailed(now, sentAt time.Duration, cursor string, failure *Failure, slow bool) {
	switch {
	case failure.RateLimited:
		p.plan.pageRateLimited(now, sentAt, failure.RetryAfter)
	case failure.KeyRejected:
		p.plan.pageRejected(now, true)
		if p.plan.keyRejected(false) {
			p.failAll(failure.Err)
		}
	case failure.Transient || slow:
		p.failTooMany(p.plan.pageFailed(now, sentAt, failure.RetryAfter, slow), now, failure.Err)
	default:
		p.plan.pageRejected(now, false)
		p.passLost(cursor)
	}
}

// notifyPage notifies the waiters of a page. It returns the page's watches that still
// have waiters.
func (p *Poller) notifyPage(page []Snapshot, sentAt time.Duration) []*watch {
	shown := make([]*watch, 0, len(page))
	for _, s := range page {
		w := p.plan.watches[s.ID]
		if w == nil {
			continue
		}
		waited := w.waited()
		s.Page = true
		if !w.old(s, sentAt) {
			waited = p.notify(w, s, sentAt)
		}
		if waited {
			shown = append(shown, w)
		}
	}
	return shown
}

// observeFailure reports the nth failed poll in a row to the observer, if that is worth it.
func (p *Poller) observeFailure(w *watch, n int, err error) {
	f := p.plan.failures[w]
	if n < several || f.reported || p.Observer == nil {
		return
	}
	f.reported = true
	p.plan.failures[w] = f
	go p.Observer.PollsFail(w.id, n, err)
}

// observeRecovery reports a snapshot to the observer if a report of failures preceded it.
func (p *Poller) observeRecovery(w *watch) {
	if f := p.plan.failures[w]; f.reported {
		go p.Observer.PollsRecovered(w.id, f.polls)
	}
}
