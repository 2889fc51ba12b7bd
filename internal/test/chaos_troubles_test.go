package test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A trouble is what goes wrong with one request: a fault of the service or of the
// network.
type trouble struct {
	kind  string
	fault minutestest.Fault
	err   error         // instead of the fault: there is no connection, for this reason
	late  time.Duration // instead of the fault: the client gets a reset, and the request takes effect this much later
}

func faulty(kind string, f minutestest.Fault) trouble { return trouble{kind: kind, fault: f} }

// callTroubles returns one trouble of each kind that may hit a request to the API.
func callTroubles(rnd *rand.Rand) []trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	unavailable := minutestest.Respond(http.StatusServiceUnavailable, "text/plain", "busy")
	slow := minutestest.Respond(http.StatusGatewayTimeout, "text/html", "<h1>504</h1>")
	return []trouble{
		faulty("429", minutestest.RateLimit("")),
		faulty("429 with seconds", minutestest.RateLimit(fmt.Sprint(int(seconds.Seconds())))),
		faulty("429 with date", minutestest.RateLimit(time.Now().Add(seconds).UTC().Format(http.TimeFormat))),
		faulty("429 with a long time", minutestest.RateLimit("90")), // longer than the Client waits
		faulty("500", minutestest.Refuse(minutes.ErrInternal)),
		faulty("500 after effect", minutestest.Refuse(minutes.ErrInternal).AfterEffect()),
		faulty("502", minutestest.BadGateway()),
		faulty("503 after effect", unavailable.AfterEffect()),
		faulty("late 504 after effect", slow.Delayed(seconds).AfterEffect()),
		faulty("reset", minutestest.Reset()),
		faulty("lost response", minutestest.LoseResponse()),
		faulty("response lost late", minutestest.LoseResponse().Delayed(seconds)),
		faulty("truncated response", minutestest.Truncate(rnd.Int64N(200))),
		faulty("dripping response", minutestest.Drip(seconds*4)), // sometimes longer than an attempt may take
		faulty("slow response", minutestest.Delay(seconds*4)),
		{kind: "connection refused", err: testbase.ErrRefused},
		{kind: "late effect", late: seconds / 8},
	}
}

// uploadTroubles returns one trouble of each kind that may hit a PUT to storage.
func uploadTroubles(rnd *rand.Rand) []trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	return []trouble{
		// Someone on the way responds before the recording is sent.
		faulty("early 200", minutestest.Respond(http.StatusOK, "", "")),
		faulty("200 with HTML", minutestest.Respond(http.StatusOK, "text/html", "<title>Log in</title>")),
		faulty("429", minutestest.RateLimit("")),
		faulty("429 with seconds", minutestest.RateLimit("7")),
		faulty("503", minutestest.RefuseUpload(503, "SlowDown")),
		faulty("500 after effect", minutestest.RefuseUpload(500, "InternalError").AfterEffect()),
		faulty("408", minutestest.RefuseUpload(408, "RequestTimeout")),
		faulty("reset", minutestest.Reset()),
		faulty("lost response", minutestest.LoseResponse()),
		faulty("response lost late", minutestest.LoseResponse().Delayed(seconds)),
		faulty("reset midway", minutestest.ResetUpload(rnd.Int64N(40_000))),
		faulty("slow response", minutestest.Delay(seconds*5)), // sometimes longer than an upload may stall
		faulty("expired URL", testkit.Expired()),
		{kind: "connection refused", err: testbase.ErrRefused},
		{kind: "late effect", late: seconds / 8},
	}
}

// edgeTroubles returns one trouble of each kind that something in front of the service
// causes. No retry of a call helps.
func edgeTroubles() []trouble {
	list := []trouble{
		{kind: "untrusted certificate", err: testbase.ErrUntrusted},
		{kind: "CONNECT rejected with 503", err: &rest.ProxyError{Host: proxyHost, Status: "503 Service Unavailable"}},
	}
	for _, status := range []int{401, 403, 404, 407} {
		text := http.StatusText(status)
		page := minutestest.Respond(status, "text/html", "<title>"+text+"</title>")
		list = append(list, trouble{kind: fmt.Sprint("page with ", status), fault: page})
		if status == 403 || status == 407 {
			rejected := &rest.ProxyError{Host: proxyHost, Status: fmt.Sprint(status, " ", text)}
			list = append(list, trouble{kind: fmt.Sprint("CONNECT rejected with ", status), err: rejected})
		}
	}
	return list
}

const proxyHost = "proxy.example:3128"

// These kinds of requests differ in their troubles.
const (
	calls   = "call: "
	polls   = "poll: "
	uploads = "upload: "
)

// kindOf returns the kind of a request. The poller makes polls, also of pages.
func kindOf(op minutes.Operation, polled bool) string {
	switch {
	case op == minutes.OpUpload:
		return uploads
	case polled:
		return polls
	}
	return calls
}

// draw decides whether a request gets a trouble, and which. Without one, it has no kind.
func (c *chaos) draw(rnd *rand.Rand, op minutes.Operation, polled bool) (what trouble) {
	of := kindOf(op, polled)
	if during, applies := c.duringOutage(of); applies {
		return during
	}
	if c.noFaults.Load() || rnd.Float64() >= c.rate {
		return trouble{}
	}
	list := callTroubles(rnd)
	switch {
	case of == uploads && rnd.IntN(4) > 0:
		list = uploadTroubles(rnd)
	case op == minutes.OpMeetingsList && polled && rnd.IntN(8) == 0:
		list = []trouble{faulty(noListing, minutestest.Refuse(minutes.ErrInsufficientScope))}
	case of == uploads || rnd.IntN(8) == 0:
		list = edgeTroubles()
	}
	what = list[rnd.IntN(len(list))]
	if what.late > 0 && (!c.lateEffects || op == minutes.OpMeetingsGet || op == minutes.OpMeetingsList) {
		what = faulty("lost response", minutestest.LoseResponse())
	}
	what.kind = of + what.kind
	return what
}

// noListing is a listing without the scope for it.
const noListing = "listing without scope"

// outage is a time in which every request gets the same fault, or every poll the same trouble.
type outage struct {
	kind     string
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

// drawLongOutage draws a time in which the service asks everybody to come back later.
func drawLongOutage(rnd *rand.Rand, from time.Time) outage {
	later := fmt.Sprint(120 + rnd.IntN(780))
	from = from.Add(testkit.UpTo(rnd, 10*time.Minute))
	return outage{
		kind: "outage: maintenance",
		from: from, to: from.Add(testkit.UpTo(rnd, 20*time.Minute)),
		what:   minutestest.Respond(503, "text/plain", "maintenance").WithHeader("Retry-After", later),
		upload: minutestest.RefuseUpload(503, "SlowDown"),
	}
}
