package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// many is WaitAll or ProcessAll.
type many struct {
	input func(n int) string // a meeting id, or a job's external id; its minutes take a quarter of an hour
	run   func(ctx context.Context, inputs iter.Seq[string]) iter.Seq2[*minutes.Result, error]
}

// eachOfMany runs a test for each of them, in a bubble. The bubble fails the test if a goroutine is
// left.
func eachOfMany(t *testing.T, test func(t *testing.T, srv *minutestest.Server, all many)) {
	t.Parallel()
	for _, name := range []string{"WaitAll", "ProcessAll"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				testbase.Timeout(t, 7*24*time.Hour)
				srv := minutestest.NewServer(t,
					minutestest.WithWorld(testkit.LongStages()),
					minutestest.WithoutAudit(minutestest.ViolationUploadURL))
				c := testkit.Client(srv, minutes.WithUploadConcurrency(2))
				all := many{
					input: func(n int) string { return testkit.Uploaded(t, direct(srv), "Weekly").ID },
					run: func(ctx context.Context, inputs iter.Seq[string]) iter.Seq2[*minutes.Result, error] {
						return c.Meetings.WaitAll(ctx, inputs, nil)
					},
				}
				if name == "ProcessAll" {
					all.input = func(n int) string { return fmt.Sprint("rec-", n) }
					all.run = func(ctx context.Context, inputs iter.Seq[string]) iter.Seq2[*minutes.Result, error] {
						return c.Meetings.ProcessAll(ctx, jobsOf(inputs), nil)
					}
				}
				test(t, srv, all)
			})
		})
	}
}

// jobsOf yields a job for each external id.
func jobsOf(externalIDs iter.Seq[string]) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for id := range externalIDs {
			params := weekly(id)
			params.Title = id
			if !yield(minutes.Job{Params: params, Source: testkit.Audio(100)}) {
				return
			}
		}
	}
}

// channel is a sequence that blocks until someone sends.
func channel[T any](ch <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range ch {
			if !yield(v) {
				return
			}
		}
	}
}

// requireIdle checks that the Client sends no further request.
func requireIdle(t *testing.T, srv *minutestest.Server) {
	t.Helper()
	synctest.Wait() // a request that was just cancelled may still arrive
	before := len(srv.Requests())
	time.Sleep(time.Hour)
	require.Len(t, srv.Requests(), before)
}

func TestParallel_YieldsWhileInputsBlock(t *testing.T) {
	eachOfMany(t, func(t *testing.T, _ *minutestest.Server, all many) {
		inputs := make(chan string)
		began := time.Now()
		n := 0
		go func() {
			for i := range 3 {
				inputs <- all.input(i)
				time.Sleep(3 * time.Hour)
			}
			close(inputs)
		}()
		for r, err := range all.run(t.Context(), channel(inputs)) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			require.NotNil(t, r.Minutes)
			assert.InDelta(t, time.Duration(n)*3*time.Hour+15*time.Minute, time.Since(began), float64(2*time.Minute))
			n++
		}
		assert.Equal(t, 3, n)
		assert.Equal(t, 9*time.Hour, time.Since(began), "until the inputs end")
	})
}

// When ctx is done, each meeting that is pending has its own Result, and then an error ends the
// loop. The inputs see the end at their next yield, and that input is not started.
func TestParallel_EndsWithContext(t *testing.T) {
	eachOfMany(t, func(t *testing.T, srv *minutestest.Server, all many) {
		inputs := make(chan string, 2)
		inputs <- all.input(0)
		inputs <- all.input(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began := time.Now()
		var ended []string
		for r, err := range all.run(ctx, channel(inputs)) {
			require.Equal(t, 5*time.Minute, time.Since(began))
			if err != nil {
				require.Nil(t, r)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				asWaitError(t, err, "")
				ended = append(ended, "all")
				continue
			}
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			asWaitError(t, r.Err, r.MeetingID)
			require.Equal(t, minutes.StatusTranscribing, r.Meeting.Status, "as last seen")
			ended = append(ended, "one")
		}
		require.Equal(t, []string{"one", "one", "all"}, ended)
		inputs <- "taken, not begun"
		synctest.Wait()
		inputs <- "not taken"
		requireIdle(t, srv)
		require.Len(t, inputs, 1)
		require.Len(t, srv.Requests(minutes.OpMeetingsCreate), 2)
	})
}

// An input that was read while the loop's body ran has its own Result, even if ctx is done by then.
func TestParallel_AccountsForInputReadDuringTheBody(t *testing.T) {
	eachOfMany(t, func(t *testing.T, srv *minutestest.Server, all many) {
		inputs := make(chan string, 2)
		inputs <- all.input(0)
		second := all.input(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var results []error
		requests := 0
		for r, err := range all.run(ctx, channel(inputs)) {
			if err != nil {
				results = append(results, err)
				continue
			}
			results = append(results, r.Err)
			if r.Err == nil {
				inputs <- second
				time.Sleep(2 * time.Hour)
				requests = len(srv.Requests())
			}
		}
		require.Len(t, results, 3)
		require.NoError(t, results[0])
		require.ErrorIs(t, results[1], context.DeadlineExceeded)
		require.ErrorIs(t, results[2], context.DeadlineExceeded)
		require.Len(t, srv.Requests(), requests)
		close(inputs)
	})
}

// If the service rejects the key, each pending meeting has its own Result as well.
func TestParallel_EndsWithKey(t *testing.T) {
	eachOfMany(t, func(t *testing.T, srv *minutestest.Server, all many) {
		inputs := make(chan string, 2)
		inputs <- all.input(0)
		inputs <- all.input(1)
		time.AfterFunc(5*time.Minute, func() {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		})
		var ended []string
		for r, err := range all.run(t.Context(), channel(inputs)) {
			if err != nil {
				require.True(t, minutes.KeyRejected(err), "%v", err)
				ended = append(ended, "all")
				continue
			}
			require.True(t, minutes.KeyRejected(r.Err), "%v", r.Err)
			require.NotNil(t, r.Meeting, "as last seen")
			ended = append(ended, "one")
		}
		require.Equal(t, []string{"one", "one", "all"}, ended)
		requireIdle(t, srv)
		close(inputs)
	})
}

func TestParallel_EndsWhenLoopIsLeftWhileInputsBlock(t *testing.T) {
	eachOfMany(t, func(t *testing.T, srv *minutestest.Server, all many) {
		blocked := make(chan struct{})
		rejected := false
		first := all.input(0)
		inputs := func(yield func(string) bool) {
			assert.True(t, yield(first))
			<-blocked
			rejected = !yield("not begun")
		}
		for r, err := range all.run(t.Context(), inputs) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			break
		}
		requireIdle(t, srv)
		close(blocked)
		requireIdle(t, srv)
		assert.True(t, rejected)
		assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 1)
	})
}

func TestParallel_EndsIfLoopPanics(t *testing.T) {
	eachOfMany(t, func(t *testing.T, srv *minutestest.Server, all many) {
		inputs := slices.Values([]string{all.input(0), all.input(1), all.input(2)})
		require.PanicsWithValue(t, "the loop", func() {
			for range all.run(t.Context(), inputs) {
				panic("the loop")
			}
		})
		requireIdle(t, srv)
	})
}

// naturalLoops runs a batch of meetings titled 0 to n-1 through a loop of each kind, with the body
// that a Go programmer would write. It returns the errors of the meetings by title.
func naturalLoops(c *minutes.Client, n int) map[string]func(context.Context) (map[string]error, error) {
	titled := func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprint(i)) {
				return
			}
		}
	}
	loop := func(results iter.Seq2[*minutes.Result, error]) (map[string]error, error) {
		got := map[string]error{}
		for r, err := range results {
			if err != nil {
				return got, err
			}
			got[r.Meeting.Title] = r.Err
			if len(got) == n {
				break // Follow has no end
			}
		}
		return got, nil
	}
	return map[string]func(context.Context) (map[string]error, error){
		"All": func(ctx context.Context) (map[string]error, error) {
			got := map[string]error{}
			for m, err := range c.Meetings.All(ctx, nil) {
				if err != nil {
					return got, err
				}
				got[m.Title] = nil
			}
			return got, nil
		},
		"WaitAll": func(ctx context.Context) (map[string]error, error) {
			ids := func(yield func(string) bool) {
				for title := range titled {
					m, err := c.Meetings.FindByExternalID(context.WithoutCancel(ctx), title)
					if err != nil || !yield(m.ID) {
						return
					}
				}
			}
			return loop(c.Meetings.WaitAll(ctx, ids, nil))
		},
		"ProcessAll": func(ctx context.Context) (map[string]error, error) {
			return loop(c.Meetings.ProcessAll(ctx, jobsOf(titled), nil))
		},
		"Follow": func(ctx context.Context) (map[string]error, error) {
			return loop(c.Meetings.Follow(ctx, &minutes.FollowOptions{Since: time.Now().Add(-time.Hour)}))
		},
	}
}

// In each loop of the package, "if err != nil { return err }" is right: an error of one meeting
// does not end the loop, and when ctx is done, its error does.
func TestLoops_EndOnlyWithTheirOwnError(t *testing.T) {
	t.Parallel()
	const n = 6
	for _, name := range []string{"All", "WaitAll", "ProcessAll", "Follow"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				testbase.Timeout(t, 24*time.Hour)
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				for i := 0; i < n; i += 3 {
					srv.Script(minutestest.Script{Title: fmt.Sprint(i), Outcome: minutes.StatusTranscriptionFailed})
				}
				if name != "ProcessAll" {
					for job := range jobsOf(func(yield func(string) bool) {
						for i := range n {
							yield(fmt.Sprint(i))
						}
					}) {
						opts := &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded}
						_, err := direct(srv).Meetings.Process(t.Context(), job.Params, job.Source, opts)
						require.NoError(t, err)
					}
				}
				loop := naturalLoops(direct(srv), n)[name]
				ctx, cancel := context.WithCancel(t.Context())
				got, err := loop(ctx)
				require.NoError(t, err)
				require.Len(t, got, n)
				for i := range n {
					failed, ok := errors.AsType[*minutes.MeetingFailedError](got[fmt.Sprint(i)])
					require.Equal(t, i%3 == 0 && name != "All", ok)
					if ok {
						require.Equal(t, minutes.StatusTranscriptionFailed, failed.Status)
					}
				}
				cancel()
				_, err = loop(ctx)
				require.ErrorIs(t, err, context.Canceled)
			})
		})
	}
}

// A sequence that reads a channel cannot give an input back, so a loop whose ctx is done reads
// none.
func TestParallel_ReadsNothingIfContextIsDone(t *testing.T) {
	eachOfMany(t, func(t *testing.T, _ *minutestest.Server, all many) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		queue := make(chan string, 1)
		queue <- all.input(0)
		for r, err := range all.run(ctx, channel(queue)) {
			assert.Nil(t, r)
			assert.ErrorIs(t, err, context.Canceled)
		}
		assert.Len(t, queue, 1)
		close(queue)
	})
}

// Whenever ctx is done, the loop ends with its error, even if all inputs were read and each has its
// Result.
func TestParallel_EndsWithContextAfterTheLastInput(t *testing.T) {
	eachOfMany(t, func(t *testing.T, _ *minutestest.Server, all many) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var last error
		for _, err := range all.run(ctx, slices.Values([]string{all.input(0), all.input(1)})) {
			last = err
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
	})
}

// When the loop ends, its inputs have ended as well unless they block, so that what they use is
// free.
func TestParallel_InputsEndBeforeTheLoop(t *testing.T) {
	eachOfMany(t, func(t *testing.T, _ *minutestest.Server, all many) {
		first := all.input(0)
		leaving := make(chan struct{})
		running := true // the race detector checks that the loop has ended after the inputs
		inputs := func(yield func(string) bool) {
			defer func() { running = false }()
			assert.True(t, yield(first))
			<-leaving
			for yield(first) { // which WaitAll skips
				time.Sleep(time.Millisecond)
			}
			time.Sleep(10 * time.Millisecond) // cleans up
		}
		for range all.run(t.Context(), inputs) {
			close(leaving)
			break
		}
		require.False(t, running)
	})
}

// OnStatus and Handled run on the goroutine of the loop, so that they need no lock. The loop can be
// left while they wait for the body.
func TestLoops_CallbacksRunOnTheLoop(t *testing.T) {
	t.Parallel()
	const n = 4
	for _, name := range []string{"WaitAll", "ProcessAll", "Follow"} {
		for _, leave := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/leave=%t", name, leave), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
					c := direct(srv)
					seen := map[string]int{} // the race detector checks that one goroutine writes
					onStatus := func(m *minutes.Meeting) { seen[m.ID]++ }
					handled := func(m *minutes.Meeting) bool {
						seen[m.ID]++
						return false
					}
					var ids []string
					if name != "ProcessAll" {
						for range n {
							ids = append(ids, testkit.Uploaded(t, c, "Weekly").ID)
						}
					}
					externalIDs := slices.Values([]string{"0", "1", "2", "3"})
					loop := map[string]iter.Seq2[*minutes.Result, error]{
						"WaitAll": c.Meetings.WaitAll(t.Context(), slices.Values(ids),
							&minutes.WaitOptions{OnStatus: onStatus}),
						"ProcessAll": c.Meetings.ProcessAll(t.Context(), jobsOf(externalIDs),
							&minutes.ProcessOptions{OnStatus: onStatus}),
						"Follow": c.Meetings.Follow(t.Context(),
							&minutes.FollowOptions{OnStatus: onStatus, Handled: handled}),
					}[name]
					results := 0
					for r, err := range loop {
						require.NoError(t, err)
						seen[r.MeetingID]++
						results++
						if leave || results == n {
							break
						}
					}
					if !leave {
						require.Len(t, seen, n)
						for _, times := range seen {
							require.GreaterOrEqual(t, times, 3)
						}
					}
				})
			})
		}
	}
}

// While the body runs, only a few results are fetched in advance, so that a slow body does not fill
// the memory. Other calls of the same Client are not slower for that.
func TestLoops_FetchFewResultsInAdvance(t *testing.T) {
	t.Parallel()
	n := testbase.Many(40, 12)
	for _, name := range []string{"WaitAll", "ProcessAll", "Follow"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				for i := range n {
					m, _, err := direct(srv).Meetings.Create(t.Context(), weekly(fmt.Sprint(i)))
					require.NoError(t, err)
					require.NoError(t, direct(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
				}
				time.Sleep(time.Hour)
				other := testkit.Uploaded(t, direct(srv), "another")
				other, err := direct(srv).Meetings.Wait(t.Context(), other.ID, nil)
				require.NoError(t, err)
				var ids, externalIDs []string
				for _, m := range srv.Meetings()[:n] {
					ids = append(ids, m.ID)
					externalIDs = append(externalIDs, m.ExternalID)
				}
				c := direct(srv)
				loop := map[string]iter.Seq2[*minutes.Result, error]{
					"WaitAll":    c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil),
					"ProcessAll": c.Meetings.ProcessAll(t.Context(), jobsOf(slices.Values(externalIDs)), nil),
					"Follow": c.Meetings.Follow(t.Context(),
						&minutes.FollowOptions{Since: time.Now().Add(-2 * time.Hour)}),
				}[name]
				results := 0
				calls := 0
				begun := time.Now()
				for r, err := range loop {
					require.NoError(t, err)
					require.NoError(t, r.Err)
					results++
					if results == 2 { // while all eight places are taken
						began := time.Now()
						_, err := c.Meetings.WaitForMinutes(t.Context(), other.ID, nil)
						require.NoError(t, err)
						require.Less(t, time.Since(began), time.Second)
						calls++
					}
					time.Sleep(time.Minute)
					fetched := len(srv.Requests(minutes.OpMeetingsMinutes)) - calls
					require.LessOrEqual(t, fetched, results+8)
					if results == n {
						break
					}
				}
				require.Equal(t, n, results)
				atMost := time.Duration(n+3) * time.Minute
				require.Less(t, time.Since(begun), atMost, "the next result is ready when the body is")
			})
		})
	}
}

// WaitAll yields each id once, whether it is repeated while its meeting is pending or later.
func TestWaitAll_YieldsEachIDOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := direct(srv)
		srv.Script(minutestest.Script{Title: "bad", Outcome: minutes.StatusTranscriptionFailed})
		good := testkit.Uploaded(t, c, "good")
		bad := testkit.Uploaded(t, c, "bad")
		ids := func(yield func(string) bool) {
			for i, id := range []string{good.ID, bad.ID, good.ID, "", "mtg_unknown", "mtg_unknown", good.ID} {
				if i == 6 {
					time.Sleep(time.Hour)
				}
				if !yield(id) {
					return
				}
			}
		}
		got := map[string]int{}
		for r, err := range c.Meetings.WaitAll(t.Context(), ids, &minutes.WaitOptions{Transcript: true}) {
			require.NoError(t, err)
			var failed *minutes.MeetingFailedError
			var bad *minutes.ParamError
			switch {
			case r.Err == nil:
				require.NotNil(t, r.Minutes)
				require.NotNil(t, r.Transcript)
				got["done "+r.MeetingID]++
			case errors.As(r.Err, &failed):
				require.Equal(t, failed.Meeting, r.Meeting)
				got["failed "+r.MeetingID]++
			case errors.As(r.Err, &bad):
				got["unusable "+r.MeetingID]++
			case errors.Is(r.Err, minutes.ErrNotFound):
				got["gone "+r.MeetingID]++
			}
		}
		want := map[string]int{"done " + good.ID: 1, "failed " + bad.ID: 1, "unusable ": 1, "gone mtg_unknown": 1}
		assert.Equal(t, want, got)
	})
}

// A sequence should stop when yield returns false. WaitAll takes none of the ids that come after that.
func TestWaitAll_TakesNoIDAfterFalse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		var meetings []string
		for range 20 {
			meetings = append(meetings, testkit.Waiting(t, srv))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		careless := func(yield func(string) bool) {
			for i, id := range meetings {
				if i == 5 {
					<-ctx.Done()
				}
				yield(id)
			}
		}
		results := 0
		for r := range c.Meetings.WaitAll(ctx, careless, nil) {
			if r != nil {
				results++
			}
		}
		require.LessOrEqual(t, results, 6, "the sixth had been asked for")
	})
}

// Twelve meetings whose minutes are never ready do not stop another one. While the loop's body
// runs, fetches go on. When ctx is done, they end.
func TestWaitAll_FetchesStopNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := direct(srv)
		var ids []string
		for range 11 {
			ids = append(ids, testkit.Uploaded(t, c, "Weekly").ID)
		}
		for _, id := range ids[:9] {
			minutesOf := minutestest.Match{
				Operation: minutes.OpMeetingsMinutes,
				MeetingID: id,
				Times:     minutestest.Always,
			}
			srv.Inject(minutesOf, minutestest.Refuse(minutes.ErrMinutesNotReady))
		}
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Minute+10*time.Second)
		defer cancel()
		began := time.Now()
		ready := 0
		pending := 0
		for r, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			switch {
			case err != nil:
				require.ErrorIs(t, err, context.DeadlineExceeded)
			case r.Err == nil:
				ready++
				if ready == 1 {
					require.Less(t, time.Since(began), time.Minute)
					before := len(srv.Requests("meetings.minutes"))
					time.Sleep(5 * time.Minute)
					require.Greater(t, len(srv.Requests("meetings.minutes")), before+60)
				}
			default:
				require.ErrorIs(t, r.Err, minutes.ErrMinutesNotReady)
				pending++
			}
		}
		require.Equal(t, []int{2, 9}, []int{ready, pending})
		require.Equal(t, 31*time.Minute+10*time.Second, time.Since(began))
		requireIdle(t, srv)
	})
}

// A fetch whose minutes are not ready gives its place to the next one at once.
func TestWaitAll_FetchesThatAreNotReadyDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, 24*time.Hour)
		srv := minutestest.NewServer(t)
		c := direct(srv, minutes.WithRateLimit(0, 0))
		meetings := testbase.Many(100, 40)
		var ids []string
		for range meetings {
			ids = append(ids, testkit.Uploaded(t, c, "Weekly").ID)
		}
		fetches := minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: meetings - 1}
		srv.Inject(fetches, minutestest.Refuse(minutes.ErrMinutesNotReady))
		time.Sleep(time.Hour)
		began := time.Now()
		for r, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			require.Less(t, time.Since(began), 3*time.Second)
			break // the others are not ready
		}
	})
}

// If the minutes of many meetings are ready at once, a few requests for them at a time leave room
// for the user's calls.
func TestWaitAll_FetchesEightAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, 24*time.Hour)
		srv := minutestest.NewServer(t)
		var ids []string
		for range 20 {
			ids = append(ids, testkit.Uploaded(t, direct(srv), "Weekly").ID)
		}
		fetches := minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: minutestest.Always}
		srv.Inject(fetches, minutestest.Delay(time.Second))
		time.Sleep(time.Hour)
		for r, err := range direct(srv).Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
		}
		first := srv.Requests(minutes.OpMeetingsMinutes)[0].At
		within := 0
		for _, r := range srv.Requests("meetings.minutes") {
			if r.At.Sub(first) < time.Second {
				within++
			}
		}
		require.Equal(t, 8, within)
	})
}

// Each method that waits rejects parameters that are invalid, or that it cannot use, before any
// request. A loop yields that once.
func TestWaits_RejectUnusableParams(t *testing.T) {
	t.Parallel()
	c := testkit.Silent(t).Meetings
	ctx := t.Context()
	no := context.Context(nil)
	open := testkit.Audio(10)
	one := func(m *minutes.Meeting, err error) []error {
		assert.Nil(t, m)
		return []error{err}
	}
	result := func(r *minutes.Result, err error) []error {
		assert.Nil(t, r)
		return []error{err}
	}
	all := func(seq iter.Seq2[*minutes.Result, error]) (errs []error) {
		for r, err := range seq {
			assert.Nil(t, r)
			errs = append(errs, err)
		}
		return errs
	}
	type waitOptions = minutes.WaitOptions
	wait := func(id string, o waitOptions) []error { return one(c.Wait(ctx, id, &o)) }
	forMinutes := func(id string, o waitOptions) []error { return result(c.WaitForMinutes(ctx, id, &o)) }
	waitAll := func(o waitOptions) []error { return all(c.WaitAll(ctx, slices.Values([]string{"mtg_1"}), &o)) }
	process := func(o minutes.ProcessOptions) []error { return result(c.Process(ctx, weekly(""), open, &o)) }
	resume := func(id string, o minutes.ProcessOptions) []error { return result(c.Resume(ctx, id, open, &o)) }
	jobs := slices.Values([]minutes.Job{{Params: weekly(""), Source: open}})
	processAll := func(o minutes.ProcessOptions) []error { return all(c.ProcessAll(ctx, jobs, &o)) }
	follow := func(o minutes.FollowOptions) []error { return all(c.Follow(ctx, &o)) }
	const transcribing = minutes.StatusTranscribing
	const transcribed = minutes.StatusTranscribed
	for _, test := range []struct {
		param string
		errs  []error
	}{
		{"ctx", one(c.Wait(no, "mtg_1", nil))},
		{"ctx", result(c.WaitForMinutes(no, "mtg_1", nil))},
		{"ctx", all(c.WaitAll(no, slices.Values([]string{"mtg_1"}), nil))},
		{"ctx", result(c.Process(no, weekly(""), open, nil))},
		{"ctx", result(c.Resume(no, "mtg_1", open, nil))},
		{"ctx", all(c.ProcessAll(no, jobs, nil))},
		{"ctx", all(c.Follow(no, nil))},
		{"id", wait("", waitOptions{})},
		{"id", forMinutes("", waitOptions{})},
		{"id", resume("", minutes.ProcessOptions{})},
		{"ids", all(c.WaitAll(ctx, nil, nil))},
		{"params", result(c.Process(ctx, nil, open, nil))},
		{"source", result(c.Process(ctx, weekly(""), nil, nil))},
		{"jobs", all(c.ProcessAll(ctx, nil, nil))},
		{"opts.Until", wait("mtg_1", waitOptions{Until: "done"})},
		{"opts.Until", wait("mtg_1", waitOptions{Until: minutes.StatusMinutesFailed})},
		{"opts.Until", waitAll(waitOptions{Until: "done"})},
		{"opts.Until", process(minutes.ProcessOptions{Until: "done"})},
		{"opts.Until", resume("mtg_1", minutes.ProcessOptions{Until: "done"})},
		{"opts.Until", processAll(minutes.ProcessOptions{Until: minutes.StatusAudioRejected})},
		{"opts.Until", follow(minutes.FollowOptions{Until: "soon"})},
		{"opts.Since", follow(minutes.FollowOptions{Once: true})},
		{"opts.AudioTimeout", follow(minutes.FollowOptions{Once: true, Since: time.Now(), AudioTimeout: time.Hour})},
		{"opts.OnStatus", follow(minutes.FollowOptions{
			Once: true, Since: time.Now(), OnStatus: func(*minutes.Meeting) {},
		})},
		{"opts.AudioTimeout", wait("mtg_1", waitOptions{AudioTimeout: -1})},
		{"opts.AudioTimeout", follow(minutes.FollowOptions{AudioTimeout: -1})},
		// Not used:
		{"opts.Format", wait("mtg_1", waitOptions{Format: minutes.FormatHTML})},
		{"opts.Transcript", wait("mtg_1", waitOptions{Transcript: true})},
		{"opts.Until", forMinutes("mtg_1", waitOptions{Until: transcribed})},
		{"opts.Format", waitAll(waitOptions{Until: transcribed, Format: minutes.FormatHTML})},
		{"opts.Format", waitAll(waitOptions{Format: "md"})},
		{"opts.Transcript", waitAll(waitOptions{Until: transcribing, Transcript: true})},
		{"opts.Format", process(minutes.ProcessOptions{Until: transcribed, Format: minutes.FormatHTML})},
		{"opts.Format", process(minutes.ProcessOptions{Format: "md"})},
		{"opts.Format", follow(minutes.FollowOptions{Format: "HTML"})},
		{"opts.Transcript", resume("mtg_1", minutes.ProcessOptions{Until: transcribing, Transcript: true})},
		{"opts.Transcript", processAll(minutes.ProcessOptions{Until: transcribing, Transcript: true})},
		{"opts.Format", follow(minutes.FollowOptions{Until: transcribed, Format: minutes.FormatHTML})},
		{"opts.Transcript", follow(minutes.FollowOptions{Until: transcribing, Transcript: true})},
		{"opts.AudioTimeout", wait("mtg_1", waitOptions{Until: minutes.StatusCreated, AudioTimeout: time.Hour})},
		{"opts.AudioTimeout", follow(minutes.FollowOptions{Until: minutes.StatusCreated, AudioTimeout: time.Hour})},
	} {
		require.Len(t, test.errs, 1)
		testkit.RequireParamError(t, test.errs[0], test.param, "")
	}
	for param, job := range map[string]minutes.Job{"params": {Source: open}, "source": {Params: weekly("")}} {
		for r, err := range c.ProcessAll(ctx, slices.Values([]minutes.Job{job}), nil) {
			require.NoError(t, err)
			require.Equal(t, job.Params, r.Params)
			testkit.RequireParamError(t, r.Err, param, "")
		}
	}
}
