package test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// A job whose process dies again and again, at any point, with one or two workers and
// with faults, results in one meeting with one recording and one set of minutes.
func TestProcessKilled(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed)
		c.live = func(worker int, rnd *rand.Rand) life { return c.dyingLife(worker, deaths[rnd.IntN(len(deaths))], rnd) }
		rnd := rand.New(rand.NewPCG(seed, 1))
		c.callers.Go(func() { c.process("m0", rnd) })
		c.finish()
	})
}

// A death is the point of its job at which a process dies.
type death struct {
	op   minutes.Operation // at a request of this kind
	when string
}

// When a process dies.
const (
	beforeIt = "before" // the request is not sent
	midway   = "midway" // half of its body is
	afterIt  = "after"  // it takes effect, but its response is not read
)

var deaths = [...]death{
	{"meetings.create", beforeIt}, {"meetings.create", afterIt},
	{"meetings.upload_url", beforeIt}, {"meetings.upload_url", afterIt},
	{minutes.OpUpload, beforeIt}, {minutes.OpUpload, midway}, {minutes.OpUpload, afterIt},
	{"meetings.get", beforeIt}, {"meetings.get", afterIt},
	{"meetings.minutes", beforeIt}, {"meetings.minutes", afterIt},
}

// dyingLife returns a life that ends if its job reaches the point. Each life has its own Client, and each worker its key.
func (c *chaos) dyingLife(worker int, at death, rnd *rand.Rand) life {
	ctx, cancel := context.WithCancel(context.Background())
	d := &dying{death: at, left: int64(1 + rnd.IntN(3)*rnd.IntN(2)), next: c.newNetwork(rnd.Uint64()), die: cancel}
	return life{ctx, cancel, c.srv.ClientWithKey(chaosKeys[worker], minutes.WithHTTPClient(&http.Client{Transport: d}))}
}

// dying is the network of a process that dies. After the death, no request passes.
type dying struct {
	death
	next http.RoundTripper
	left int64 // which request of its kind is the last
	n    atomic.Int64
	dead atomic.Bool
	die  func()
}

var errDead = errors.New("the process is dead")

func (d *dying) RoundTrip(req *http.Request) (*http.Response, error) {
	op, _ := testkit.Identify(req)
	switch {
	case d.dead.Load():
	case op != d.op || d.n.Add(1) != d.left:
		return d.next.RoundTrip(req)
	default:
		d.dead.Store(true)
		d.last(req)
		d.die()
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, errDead
}

// last sends the request at which the process dies, or a part of it.
func (d *dying) last(req *http.Request) {
	if d.when == beforeIt {
		return
	}
	if d.when == midway {
		body := req.Body
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(io.LimitReader(body, req.ContentLength/2))
	}
	if resp, err := d.next.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}
