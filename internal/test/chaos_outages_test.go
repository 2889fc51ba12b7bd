package test

import (
	"math/rand/v2"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// outage is a time in which every request gets the same fault, or every poll the same trouble.
type outage struct {
	kind     string // in the tally
	from, to time.Time
	what     minutestest.Fault
	upload   minutestest.Fault
	polls    *trouble // of polls and their pages; other requests get none
}

// outageKinds returns one outage of each kind, without its times.
func outageKinds() []outage {
	unavailable := minutestest.Respond(503, "text/html", "<h1>503</h1>")
	list := []outage{
		{kind: "429", what: minutestest.RateLimit(""), upload: minutestest.RateLimit("")},
		{kind: "500", what: minutestest.Refuse("INTERNAL_ERROR"), upload: minutestest.RefuseUpload(500, "InternalError")},
		{kind: "503", what: unavailable, upload: minutestest.RefuseUpload(503, "SlowDown")},
		{kind: "503 with a long time", what: unavailable.WithHeader("Retry-After", "900"), upload: minutestest.RefuseUpload(503, "SlowDown")},
		{kind: "resets", what: minutestest.Reset(), upload: minutestest.Reset()},
		{kind: "lost responses", what: minutestest.LoseResponse(), upload: minutestest.LoseResponse()},
		{kind: "no responses", what: minutestest.Delay(time.Hour), upload: minutestest.Delay(time.Hour)},
	}
	for _, edge := range edgeTroubles() {
		list = append(list, outage{kind: "rejected polls", polls: &edge})
	}
	for i := range list {
		list[i].kind = "outage: " + list[i].kind
	}
	return list
}

func drawOutage(rnd *rand.Rand, from time.Time) outage {
	kinds := outageKinds()
	at := rnd.IntN(8)
	if kinds[at].polls != nil { // one kind of eight
		at += rnd.IntN(len(kinds) - at)
	}
	o := kinds[at]
	o.from = from.Add(testkit.UpTo(rnd, 10*time.Minute))
	o.to = o.from.Add(testkit.UpTo(rnd, 3*time.Minute))
	return o
}

// duringOutage returns the trouble of an outage that is under way.
func (c *chaos) duringOutage(of string) (what trouble, applies bool) {
	now := time.Now()
	for _, o := range c.outages {
		switch {
		case now.Before(o.from), now.After(o.to), o.polls != nil && of != polls:
			continue
		case o.polls != nil:
			what = *o.polls
		case of == uploads:
			what.fault = o.upload
		default:
			what.fault = o.what
		}
		what.kind = o.kind
		return what, true
	}
	return trouble{}, false
}
