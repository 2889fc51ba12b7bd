package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A trouble is what goes wrong with one request: a fault of the service or of the
// network.
type trouble struct {
	fault minutestest.Fault
	dial  bool          // instead of the fault: the connection is refused
	late  time.Duration // instead of the fault: the client gets a reset, and the request takes effect this much later
	cert  bool          // instead of the fault: the certificate is not trusted
}

func faulty(f minutestest.Fault) trouble { return trouble{fault: f} }

// drawTrouble draws what goes wrong with a request to the API.
func drawTrouble(rnd *rand.Rand) trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	unavailable := minutestest.Respond(http.StatusServiceUnavailable, "text/plain", "busy")
	slow := minutestest.Respond(http.StatusGatewayTimeout, "text/html", "<h1>504</h1>")
	switch rnd.IntN(18) {
	case 0, 1:
		return faulty(minutestest.RateLimit(""))
	case 2:
		return faulty(minutestest.RateLimit(fmt.Sprint(int(seconds.Seconds()))))
	case 3:
		return faulty(minutestest.RateLimit(time.Now().Add(seconds).UTC().Format(http.TimeFormat)))
	case 4:
		return faulty(minutestest.RateLimit("90")) // longer than the Client waits
	case 5:
		return faulty(minutestest.Refuse(minutes.ErrInternal))
	case 6:
		return faulty(minutestest.Refuse(minutes.ErrInternal).AfterEffect())
	case 7:
		return faulty(minutestest.BadGateway())
	case 8:
		return faulty(unavailable.AfterEffect())
	case 9:
		return faulty(slow.Delayed(seconds).AfterEffect())
	case 10:
		return faulty(minutestest.Reset())
	case 11:
		return faulty(minutestest.LoseResponse())
	case 12:
		return faulty(minutestest.LoseResponse().Delayed(seconds))
	case 13:
		return faulty(minutestest.Truncate(rnd.Int64N(200)))
	case 14:
		return faulty(minutestest.Drip(seconds * 4)) // sometimes longer than an attempt may take
	case 15:
		return faulty(minutestest.Delay(seconds * 4))
	case 16:
		return trouble{dial: true}
	}
	return trouble{late: seconds / 8}
}

// drawUploadTrouble draws what goes wrong with a PUT to storage.
func drawUploadTrouble(rnd *rand.Rand) trouble {
	seconds := time.Duration(1+rnd.IntN(20)) * time.Second
	switch rnd.IntN(16) {
	case 14: // someone on the way answers before the recording is sent
		return faulty(minutestest.Respond(http.StatusOK, "", ""))
	case 15:
		return faulty(minutestest.Respond(http.StatusOK, "text/html", "<title>Log in</title>"))
	case 0:
		return faulty(minutestest.RateLimit(""))
	case 1:
		return faulty(minutestest.RateLimit("7"))
	case 2:
		return faulty(minutestest.RefuseUpload(503, "SlowDown"))
	case 3:
		return faulty(minutestest.RefuseUpload(500, "InternalError").AfterEffect())
	case 4:
		return faulty(minutestest.RefuseUpload(408, "RequestTimeout"))
	case 5:
		return faulty(minutestest.Reset())
	case 6:
		return faulty(minutestest.LoseResponse())
	case 7:
		return faulty(minutestest.LoseResponse().Delayed(seconds))
	case 8, 9:
		return faulty(minutestest.ResetUpload(rnd.Int64N(40_000)))
	case 10:
		return faulty(minutestest.Delay(seconds * 5)) // sometimes longer than an upload may stall
	case 11:
		return faulty(testkit.Expired())
	case 12:
		return trouble{dial: true}
	}
	return trouble{late: seconds / 8}
}

// drawEdgeTrouble draws a rejection of polls by something in front of the service, which
// no retry of a call waits out.
func drawEdgeTrouble(rnd *rand.Rand) trouble {
	if rnd.IntN(2) == 0 {
		return trouble{cert: true}
	}
	return faulty(minutestest.Respond([]int{401, 403, 404, 407}[rnd.IntN(4)], "text/html", "<h1>Forbidden</h1>"))
}

// outage is a time in which every request gets the same fault, or every poll the same trouble.
type outage struct {
	from, to time.Time
	what     minutestest.Fault
	upload   minutestest.Fault
	polls    *trouble // of polls and their pages; other requests get none
}

func drawOutage(rnd *rand.Rand, from time.Time) outage {
	unavailable := minutestest.Respond(503, "text/html", "<h1>503</h1>")
	kinds := []outage{
		{what: minutestest.RateLimit(""), upload: minutestest.RateLimit("")},
		{what: minutestest.Refuse(minutes.ErrInternal), upload: minutestest.RefuseUpload(500, "InternalError")},
		{what: unavailable, upload: minutestest.RefuseUpload(503, "SlowDown")},
		{what: unavailable.WithHeader("Retry-After", "900"), upload: minutestest.RefuseUpload(503, "SlowDown")},
		{what: minutestest.Reset(), upload: minutestest.Reset()},
		{what: minutestest.LoseResponse(), upload: minutestest.LoseResponse()},
		{what: minutestest.Delay(time.Hour), upload: minutestest.Delay(time.Hour)},
	}
	edge := drawEdgeTrouble(rnd)
	kinds = append(kinds, outage{polls: &edge})
	o := kinds[rnd.IntN(len(kinds))]
	o.from = from.Add(testkit.UpTo(rnd, 10*time.Minute))
	o.to = o.from.Add(testkit.UpTo(rnd, 3*time.Minute))
	return o
}

// draw decides whether a request gets a trouble, and which.
func (c *chaos) draw(rnd *rand.Rand, op minutes.Operation, polled bool) (trouble, bool) {
	upload := op == minutestest.OpUpload
	now := time.Now()
	for _, o := range c.outages {
		if now.Before(o.from) || now.After(o.to) {
			continue
		}
		switch {
		case o.polls != nil && !polled:
			continue
		case o.polls != nil:
			return *o.polls, true
		case upload:
			return faulty(o.upload), true
		}
		return faulty(o.what), true
	}
	if c.noFaults.Load() || rnd.Float64() >= c.rate {
		return trouble{}, false
	}
	what := drawTrouble(rnd)
	switch {
	case upload:
		what = drawUploadTrouble(rnd)
	case op == "meetings.list" && polled && rnd.IntN(8) == 0:
		what = faulty(minutestest.Refuse(minutes.ErrInsufficientScope))
	case polled && rnd.IntN(8) == 0:
		what = drawEdgeTrouble(rnd)
	}
	if what.late > 0 && (!c.lateEffects || op == "meetings.get" || op == "meetings.list") {
		what = faulty(minutestest.LoseResponse())
	}
	return what, true
}
