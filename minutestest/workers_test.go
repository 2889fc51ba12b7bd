package minutestest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// clients are the ways in which two workers reach a Server.
var clients = map[string]func(t *testing.T, srv *minutestest.Server) [2]*minutes.Client{
	"a Client each": func(_ *testing.T, srv *minutestest.Server) [2]*minutes.Client {
		return [2]*minutes.Client{srv.Client(), srv.Client()}
	},
	"one Client": func(_ *testing.T, srv *minutestest.Server) [2]*minutes.Client {
		client := srv.Client()
		return [2]*minutes.Client{client, client}
	},
	"a Client each, on one key and one connection": func(t *testing.T,
		srv *minutestest.Server) (list [2]*minutes.Client) {
		for i := range list {
			client, err := minutes.New(minutestest.BaseURL, srv.Key(), minutes.WithHTTPClient(srv.HTTPClient()))
			require.NoError(t, err)
			list[i] = client
		}
		return list
	},
}

// inManyRuns runs test in a new bubble for each way and seed, with faults.
func inManyRuns(t *testing.T,
	test func(t *testing.T, srv *minutestest.Server, workers [2]*minutes.Client, rnd *rand.Rand)) {
	t.Helper()
	for name, of := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range testbase.Many(200, 2) {
				synctest.Test(t, func(t *testing.T) {
					testbase.Timeout(t, 7*24*time.Hour)
					rnd := rand.New(rand.NewPCG(uint64(seed), 1))
					srv := newSlow(t)
					for range rnd.IntN(3) {
						op := []minutes.Operation{minutes.OpMeetingsCreate, minutes.OpMeetingsUploadURL,
							minutes.OpMeetingsGet, minutes.OpMeetingsMinutes}[rnd.IntN(4)]
						fault := []minutestest.Fault{minutestest.RateLimit(""), minutestest.Reset(),
							minutestest.LoseResponse(), minutestest.BadGateway(),
							minutestest.Refuse(minutes.ErrInternal).AfterEffect()}[rnd.IntN(5)]
						srv.Inject(minutestest.Match{Operation: op, Nth: 1 + rnd.IntN(3)}, fault).Optional()
					}
					test(t, srv, of(t, srv), rnd)
					require.Len(t, srv.Meetings(), 1, "seed %d", seed)
					if n := len(srv.Violations()); n > 0 {
						t.Fatalf("seed %d: %d violations", seed, n) // NewServer reports them
					}
				})
			}
		})
	}
}

func TestAudit_DoesNotBlameTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	inManyRuns(t, func(t *testing.T, _ *minutestest.Server, workers [2]*minutes.Client, rnd *rand.Rand) {
		lag := time.Duration(rnd.IntN(4)*rnd.IntN(30)) * time.Second
		var wg sync.WaitGroup
		for i, client := range workers {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * lag)
				assert.NoError(t, processWeekly(t.Context(), client))
			})
		}
		wg.Wait()
	})
}

func TestAudit_DoesNotBlameAKilledProcessAndItsSuccessor(t *testing.T) {
	t.Parallel()
	inManyRuns(t, func(t *testing.T, _ *minutestest.Server, workers [2]*minutes.Client, rnd *rand.Rand) {
		ctx, kill := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(rnd.Int64N(int64(20*time.Minute))), kill)
		err := processWeekly(ctx, workers[0])
		if !errors.Is(err, context.Canceled) {
			require.NoError(t, err)
		}
		kill()
		synctest.Wait()
		require.NoError(t, processWeekly(t.Context(), workers[1]))
	})
}

// While two workers of one program wait for their second request for an upload URL, another program
// uploads. So each of the two gets the error that the meeting has its audio, once.
func TestAudit_DoesNotBlameTwoWorkersWhoComeTooLate(t *testing.T) {
	t.Parallel()
	for of, workers := range clients {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithoutAudit(minutestest.ViolationPoll))
				busy := minutestest.Respond(503, "text/plain", "busy").WithHeader("Retry-After", "1")
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, busy, busy)
				var wg sync.WaitGroup
				for _, client := range workers(t, srv) {
					wg.Go(func() { assert.NoError(t, processWeekly(t.Context(), client)) })
				}
				time.Sleep(time.Millisecond)
				audio := minutes.FromReader(strings.NewReader("audio"), "audio/mpeg")
				require.NoError(t, srv.Client().Meetings.Upload(t.Context(), srv.Meetings()[0].ID, audio, nil))
				wg.Wait()
				tooLate := 0
				for _, r := range srv.Requests(minutes.OpMeetingsUploadURL) {
					if r.Code == string(minutes.ErrBadRequest) {
						tooLate++
					}
				}
				assert.Equal(t, 2, tooLate)
			})
		})
	}
}

// A poller in any language with a fixed timer of the interval is sometimes late on a busy machine,
// and then on time again.
func TestAudit_DoesNotBlameAFixedTimer(t *testing.T) {
	t.Parallel()
	for interval, late := range map[time.Duration]time.Duration{
		minutestest.MinPollInterval: time.Second,
		99 * time.Millisecond:       33 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithMinPollInterval(interval))
			srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
			c := callerOf(srv)
			id := c.upload(t, "Weekly", "audio")
			rnd := rand.New(rand.NewPCG(7, 7))
			timer := time.NewTicker(interval)
			defer timer.Stop()
			for range testbase.Many(200, 60) {
				<-timer.C
				time.Sleep(time.Duration(rnd.Int64N(int64(late))))
				assert.Equal(t, minutes.StatusTranscribing, c.status(t, id))
			}
		})
	}
}

// processWeekly does the whole job of a slow recording.
func processWeekly(ctx context.Context, client *minutes.Client) error {
	_, err := client.Meetings.Process(ctx, weekly(), minutestest.SlowRecording(100_000, 10_000), nil)
	return err
}
