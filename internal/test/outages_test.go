package test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// downs are the ways in which the service and storage are down together. Each answers a request.
var downs = map[string]func(*http.Request) (*http.Response, error){
	"refused": func(*http.Request) (*http.Response, error) { return nil, testbase.ErrRefused },
	"reset": func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	},
	"a proxy's 503": func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable,
			Header:     http.Header{"Content-Type": {"text/html"}},
			Body:       io.NopCloser(strings.NewReader("<title>Down</title>")),
		}, nil
	},
}

// outageNetwork loses the service and storage for a while.
type outageNetwork struct {
	next http.RoundTripper
	down func(*http.Request) (*http.Response, error)

	mu sync.Mutex
	// from is when the outage begins.
	from time.Time
	// to is when it ends.
	to time.Time
}

// begin begins an outage.
func (n *outageNetwork) begin(lasts time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.from = time.Now()
	n.to = n.from.Add(lasts)
}

func (n *outageNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	down := !time.Now().Before(n.from) && time.Now().Before(n.to)
	n.mu.Unlock()
	if down {
		closeBody(req)
		return n.down(req)
	}
	return n.next.RoundTrip(req)
}

// A job begins its outage with any of its requests, from the creation to the fetch of the minutes.
func TestOutage_HardlyEndsJobs(t *testing.T) {
	t.Parallel()
	jobs := testbase.Many(200, 5)
	for _, test := range []struct {
		lasts time.Duration
		// failing is the share of the jobs that may fail.
		failing float64
	}{
		{3 * time.Second, 0.01},
		{5 * time.Second, 0.01},
		{8 * time.Second, 0.01},
		{30 * time.Second, 0},
	} {
		for name, down := range downs {
			t.Run(fmt.Sprint(test.lasts, " ", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					testbase.Timeout(t, 24*time.Hour)
					srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
					var failed atomic.Int64
					var all sync.WaitGroup
					for i := range jobs {
						all.Go(func() {
							err := jobInOutage(t, srv, i, test.lasts, down)
							if err != nil {
								failed.Add(1)
								t.Log(err)
							}
						})
					}
					all.Wait()
					require.LessOrEqual(t, float64(failed.Load()), test.failing*float64(jobs))
				})
			})
		}
	}
}

// jobInOutage runs a job in a process of its own. Its outage begins with the request whose number depends on i.
func jobInOutage(
	t *testing.T, srv *minutestest.Server, i int, lasts time.Duration, down func(*http.Request) (*http.Response, error),
) error {
	network := &outageNetwork{next: testkit.Direct(srv).Transport, down: down}
	var requests atomic.Int64
	counted := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		op, _ := testkit.Identify(req)
		// Of the polls, only the first counts, so that the fetch is the fifth request.
		poll := op == minutes.OpMeetingsGet && requests.Load() > 3
		if !poll && requests.Add(1) == int64(1+i%5) {
			network.begin(lasts)
		}
		return network.RoundTrip(req)
	})
	c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: counted}))
	_, err := c.Meetings.Process(t.Context(), params(fmt.Sprint("job-", i)), testkit.Audio(100), nil)
	assert.False(t, network.to.IsZero(), "there was no outage")
	return err
}

// A meeting ends during the outage. The only request that could notice the end of the outage is a poll.
func TestOutage_DelaysALoneWaitByHalfAMinute(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
		for name, down := range downs {
			t.Run(fmt.Sprint(lasts, " ", name), func(t *testing.T) {
				t.Parallel()
				for seed := range testbase.Many(20, 2) {
					rnd := rand.New(rand.NewPCG(uint64(seed), 0))
					synctest.Test(t, func(t *testing.T) { testLoneWait(t, lasts, down, rnd) })
				}
			})
		}
	}
}

func testLoneWait(t *testing.T, lasts time.Duration, down func(*http.Request) (*http.Response, error), rnd *rand.Rand) {
	testbase.Timeout(t, 24*time.Hour)
	srv := minutestest.NewServer(t)
	srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
	network := &outageNetwork{next: testkit.Direct(srv).Transport, down: down}
	c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: network}))
	m := testkit.Uploaded(t, c, "Weekly")
	time.AfterFunc(testkit.UpTo(rnd, time.Minute), func() {
		network.begin(lasts)
		srv.Release(m.ID)
	})
	_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
	require.NoError(t, err)
	require.Less(t, time.Since(network.to), 35*time.Second)
}
