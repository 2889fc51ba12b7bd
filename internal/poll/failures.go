package poll

import (
	"maps"
	"slices"
	"time"
)

const (
	maxFailed  = 20              // failed polls in a row that end a wait,
	minFailing = 9 * time.Minute // if they took at least this long
)

// failures are failed polls in a row.
type failures struct {
	polls    int           // how many
	since    time.Duration // time of the first
	reported bool          // the observer has received a warning
}

// works records that the service works. At the end of an outage it forgets the failures,
// except those already reported, which need a recovery message.
func (p *plan) works(now time.Duration) {
	p.rejected, p.pollRejected = 0, false
	if p.pacer.good(now) {
		maps.DeleteFunc(p.failures, func(_ *watch, f failures) bool { return !f.reported })
	}
}

// countFailures counts a failure for each of these watches, or for all if none is named. It returns
// those with too many in a row.
func (p *plan) countFailures(now time.Duration, failing ...*watch) (ended []*watch) {
	if len(failing) == 0 {
		failing = slices.Collect(maps.Values(p.watches))
	}
	for _, w := range failing {
		if w.role == idle {
			continue
		}
		f, before := p.failures[w]
		if !before {
			f.since = now
		}
		if f.polls++; f.polls >= maxFailed && now-f.since >= minFailing {
			ended = append(ended, w)
		}
		p.failures[w] = f
	}
	return ended
}

// keyRejected records that the service rejected the key of a request. It reports whether that
// ends all waits: after two in a row, at least one of them a poll.
func (p *plan) keyRejected(poll bool) (all bool) {
	p.rejected++
	p.pollRejected = p.pollRejected || poll
	return p.rejected >= 2 && p.pollRejected
}
