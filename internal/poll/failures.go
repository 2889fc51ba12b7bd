package poll

import "time"

const (
	maxFailed  = 20              // failed polls in a row that end a wait,
	minFailing = 9 * time.Minute // if they took at least this long
)

// failures are failed polls in a row.
type failures struct {
	polls    int           // how many, with those of other polls in an outage
	own      int           // how many of this meeting
	since    time.Duration // time of the first
	reported bool          // the observer has received a warning
}

// works records that the service works. At the end of an outage, only a meeting's own failures
// still count.
func (p *plan) works(now time.Duration) {
	p.rejected, p.pollRejected = 0, false
	if p.pacer.limited > 0 { // pages probably succeed again, too
		p.retryAt = now
	}
	if p.pacer.good(now) {
		for w, f := range p.failures {
			if f.polls = f.own; f.own > 0 {
				p.failures[w] = f
			} else {
				delete(p.failures, w)
			}
		}
	}
}

// countFailures counts a failure of a poll of w, or of a page if w is nil. In an outage, the failure
// also counts for all waits that have failed as often as w, so that the failures of one bad meeting
// hurt no other. It does not count for a wait that must not poll yet. countFailures returns the
// watches with too many failures in a row.
func (p *plan) countFailures(w *watch, now time.Duration, outage bool) (ended []*watch) {
	before := p.failures[w].polls
	for _, x := range p.watches {
		f := p.failures[x]
		if x.role == idle || x != w && (!outage || f.polls < before || x.free > now+minPollInterval) {
			continue
		}
		if f.polls++; f.polls == 1 {
			f.since = now
		}
		if x == w {
			f.own++
		}
		if p.failures[x] = f; f.polls >= maxFailed && now-f.since >= minFailing {
			ended = append(ended, x)
		}
	}
	return ended
}

// keyRejected records that the service rejected the key of a request. It reports whether that
// ends all waits: after two in a row, at least one of them a poll if any meeting is awaited.
func (p *plan) keyRejected(poll bool) (all bool) {
	p.rejected++
	p.pollRejected = p.pollRejected || poll || p.waiting == p.following
	return p.rejected >= 2 && p.pollRejected
}
