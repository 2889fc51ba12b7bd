package minutes_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
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

// collected is WaitAll or ProcessAll, with the errors that it yields.
type collected struct {
	input func(n int) string // a meeting id, or a job's external id; its minutes take a quarter of an hour
	run   func(ctx context.Context, inputs iter.Seq[string], onStatus func(*minutes.Meeting)) iter.Seq[error]
}

// eachCollected runs a test for each of them, in a bubble. The bubble fails the test if a
// goroutine is left.
func eachCollected(t *testing.T, test func(t *testing.T, srv *minutestest.Server, all collected)) {
	t.Parallel()
	for _, name := range []string{"WaitAll", "ProcessAll"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()), minutestest.WithoutAudit(minutestest.ViolationUploadURL))
				c := testkit.Client(srv, minutes.WithUploadConcurrency(2))
				all := collected{
					input: func(n int) string {
						if name == "ProcessAll" {
							return fmt.Sprint("rec-", n)
						}
						return testkit.Uploaded(t, c, "Weekly").ID
					},
					run: func(ctx context.Context, inputs iter.Seq[string], onStatus func(*minutes.Meeting)) iter.Seq[error] {
						switch name {
						case "WaitAll":
							return errorsOf(c.Meetings.WaitAll(ctx, inputs, &minutes.WaitOptions{OnStatus: onStatus}))
						}
						jobs := func(yield func(minutes.Job) bool) {
							for id := range inputs {
								if !yield(opening(id)) {
									return
								}
							}
						}
						return errorsOf(c.Meetings.ProcessAll(ctx, jobs, &minutes.ProcessOptions{OnStatus: onStatus}))
					},
				}
				test(t, srv, all)
			})
		})
	}
}

func errorsOf[T any](seq iter.Seq2[T, error]) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, err := range seq {
			if !yield(err) {
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

func TestCollect_YieldsWhileInputsBlock(t *testing.T) {
	eachCollected(t, func(t *testing.T, _ *minutestest.Server, all collected) {
		inputs := make(chan string)
		began, n := time.Now(), 0
		go func() {
			for i := range 5 {
				inputs <- all.input(i)
				time.Sleep(3 * time.Hour)
			}
			close(inputs)
		}()
		for err := range all.run(t.Context(), channel(inputs), nil) {
			require.NoError(t, err)
			assert.InDelta(t, time.Duration(n)*3*time.Hour+15*time.Minute, time.Since(began), float64(2*time.Minute))
			n++
		}
		assert.Equal(t, 5, n)
		assert.Equal(t, 15*time.Hour, time.Since(began), "until the inputs end")
	})
}

// The inputs see the end at their next yield. The Client does not start that input.
func TestCollect_EndsWithContextWhileInputsBlock(t *testing.T) {
	eachCollected(t, func(t *testing.T, srv *minutestest.Server, all collected) {
		inputs := make(chan string, 1)
		inputs <- all.input(0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began, n := time.Now(), 0
		for err := range all.run(ctx, channel(inputs), nil) {
			n++
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, 1, n)
		assert.Equal(t, 5*time.Minute, time.Since(began))
		inputs <- "taken, not begun"
		synctest.Wait()
		inputs <- "not taken"
		requireIdle(t, srv)
		assert.Len(t, inputs, 1)
		assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 1)
	})
}

func TestCollect_EndsWhenLoopIsLeftWhileInputsBlock(t *testing.T) {
	eachCollected(t, func(t *testing.T, srv *minutestest.Server, all collected) {
		blocked := make(chan struct{})
		rejected := false
		first := all.input(0)
		inputs := func(yield func(string) bool) {
			assert.True(t, yield(first))
			<-blocked
			rejected = !yield("not begun")
		}
		for err := range all.run(t.Context(), inputs, nil) {
			require.NoError(t, err)
			break
		}
		requireIdle(t, srv)
		close(blocked)
		requireIdle(t, srv)
		assert.True(t, rejected)
		assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 1)
	})
}

// Chance decides whether the loop sees the end or the input first.
func TestCollect_StartsNoInputAfterItsEnd(t *testing.T) {
	for _, leave := range []bool{false, true} {
		for range testbase.Many(20, 2) {
			t.Run(fmt.Sprint("leave ", leave), func(t *testing.T) {
				eachCollected(t, func(t *testing.T, srv *minutestest.Server, all collected) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					inputs := make(chan string, 1)
					inputs <- all.input(0)
					ended := false
					seq := func(yield func(string) bool) { channel(inputs)(yield); ended = true }
					n := 0
					for err := range all.run(ctx, seq, nil) {
						if n++; err != nil {
							assert.ErrorIs(t, err, context.Canceled)
							continue
						}
						inputs <- "rec-1"
						synctest.Wait()
						if leave {
							break
						}
						cancel()
					}
					assert.LessOrEqual(t, n, 2)
					requireIdle(t, srv)
					assert.True(t, ended)
					assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 1)
				})
			})
		}
	}
}

func TestCollect_EndsIfLoopBreaks(t *testing.T) {
	for name, breaks := range map[string]func(){"panics": func() { panic("the loop") }, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			eachCollected(t, func(t *testing.T, srv *minutestest.Server, all collected) {
				inputs := slices.Values([]string{all.input(0), all.input(1), all.input(2)})
				var panicked any
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { panicked = recover() }()
					for range all.run(t.Context(), inputs, nil) {
						breaks()
					}
					t.Error("the loop did not break")
				})
				wg.Wait()
				assert.Equal(t, name == "panics", panicked == "the loop")
				requireIdle(t, srv)
			})
		})
	}
}
