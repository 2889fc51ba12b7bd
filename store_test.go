package minutes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// fourMinutes is a World whose meetings need four minutes.
func fourMinutes() minutestest.World {
	w := minutestest.DefaultWorld()
	w.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 2 * time.Minute, Write: time.Minute}
	return w
}

// life is a process that dies. After its end it reaches neither the service nor the store.
type life struct {
	minutes.Store
	network http.RoundTripper
	context.Context
}

var errDead = errors.New("the process is dead")

func (l life) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.Err() != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errDead
	}
	return l.network.RoundTrip(r)
}

func (l life) Load(ctx context.Context, id string) (minutes.MeetingState, error) {
	if l.Err() != nil {
		return minutes.MeetingState{}, errDead
	}
	return l.Store.Load(ctx, id)
}

func (l life) Save(ctx context.Context, id string, old, next minutes.MeetingState) (bool, error) {
	if l.Err() != nil {
		return false, errDead
	}
	return l.Store.Save(ctx, id, old, next)
}

func (l life) Delete(ctx context.Context, id string) error {
	if l.Err() != nil {
		return errDead
	}
	return l.Store.Delete(ctx, id)
}

// live runs a process until its kill. The audit sees all processes as one program.
func live(t *testing.T, srv *minutestest.Server, store minutes.Store, kill time.Duration, run func(context.Context, *minutes.Client) (*minutes.Result, error)) (*minutes.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kill)
	defer cancel()
	l := life{store, srv.HTTPClient().Transport, ctx}
	return run(ctx, testkit.Client(srv, minutes.WithStore(l), minutes.WithHTTPClient(&http.Client{Transport: l})))
}

// requirePollsApart requires that two GETs of a meeting are at least thirty seconds apart, whoever
// sent them, and that no request for an upload URL was in vain.
func requirePollsApart(t *testing.T, srv *minutestest.Server) {
	t.Helper()
	last := map[string]time.Time{}
	for _, r := range srv.Requests(minutes.OpMeetingsGet) {
		if at, again := last[r.MeetingID]; again {
			require.GreaterOrEqual(t, r.At.Sub(at), 30*time.Second, "GETs of %s", r.MeetingID)
		}
		last[r.MeetingID] = r.At
	}
	for _, r := range srv.Requests(minutes.OpMeetingsUploadURL) {
		require.NotEqual(t, http.StatusBadRequest, r.Status, "an upload URL for a meeting with audio")
	}
}

// A job gets its minutes although its process is killed every twenty seconds and the meeting needs
// four minutes.
func TestWithStore_JobEndsInACrashLoop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first time.Duration // the first kill
		begin func(context.Context, *minutes.Client, string, minutes.Source) (*minutes.Result, error)
	}{
		"Resume": {20 * time.Second, func(ctx context.Context, c *minutes.Client, id string, source minutes.Source) (*minutes.Result, error) {
			return c.Meetings.Resume(ctx, id, source, nil)
		}},
		"Resume, killed during the upload": {5 * time.Second, func(ctx context.Context, c *minutes.Client, id string, source minutes.Source) (*minutes.Result, error) {
			return c.Meetings.Resume(ctx, id, source, nil)
		}},
		"Process": {20 * time.Second, func(ctx context.Context, c *minutes.Client, _ string, source minutes.Source) (*minutes.Result, error) {
			return c.Meetings.Process(ctx, weekly("rec-1"), source, nil)
		}},
		"Process, killed during the upload": {5 * time.Second, func(ctx context.Context, c *minutes.Client, _ string, source minutes.Source) (*minutes.Result, error) {
			return c.Meetings.Process(ctx, weekly("rec-1"), source, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), weekly("rec-1"))
				require.NoError(t, err)
				var r *minutes.Result
				kills, kill := 0, test.first
				for ; kills < 60; kills, kill = kills+1, 20*time.Second {
					r, err = live(t, srv, minutes.DirStore(dir), kill, func(ctx context.Context, c *minutes.Client) (*minutes.Result, error) {
						return test.begin(ctx, c, m.ID, minutestest.SlowRecording(100_000, 20_000))
					})
					if err == nil {
						break
					}
				}
				require.NoError(t, err)
				require.NotEmpty(t, r.Minutes.Content)
				require.Less(t, kills, 60)
				synctest.Wait()
				oneMeeting(t, srv, 1)
				requirePollsApart(t, srv)
				require.Empty(t, filesIn(t, dir), "the state of a meeting that has ended")
			})
		})
	}
}

// Processes are killed at random instants of a job, and others continue at once.
func TestWithStore_OneAudioAfterRandomKills(t *testing.T) {
	t.Parallel()
	for seed := range testbase.Many(500, 20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 23))
			srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
			store := new(testkit.Store)
			audio := minutestest.SlowRecording(100_000, 5_000+rnd.Int64N(100_000))
			source := func(ctx context.Context) (minutes.Recording, error) {
				time.Sleep(testkit.UpTo(rnd, 100*time.Millisecond))
				return audio(ctx)
			}
			for _, op := range []minutes.Operation{minutes.OpMeetingsCreate, minutes.OpMeetingsUploadURL, minutes.OpUpload, minutes.OpMeetingsGet} {
				srv.Inject(minutestest.Match{Operation: op, Times: minutestest.Always}, minutestest.Delay(testkit.UpTo(rnd, 2*time.Second))).Optional()
			}
			id := ""
			job := func(ctx context.Context, c *minutes.Client) (*minutes.Result, error) {
				if id != "" && rnd.IntN(4) > 0 {
					return c.Meetings.Resume(ctx, id, source, nil)
				}
				return c.Meetings.Process(ctx, weekly("rec-1"), source, nil)
			}
			var r *minutes.Result
			var err error
			for range 200 {
				kill := testkit.UpTo(rnd, []time.Duration{3 * time.Second, 40 * time.Second, 5 * time.Minute}[rnd.IntN(3)])
				if r, err = live(t, srv, store, kill, job); err == nil {
					break
				}
				require.ErrorIs(t, err, context.DeadlineExceeded, "seed %d", seed)
				if r.Meeting != nil {
					id = r.Meeting.ID
				}
			}
			require.NoError(t, err, "seed %d", seed)
			require.NotEmpty(t, r.Minutes.Content)
			synctest.Wait()
			oneMeeting(t, srv, 1)
			requirePollsApart(t, srv)
		})
	}
}

// Processes that share a store poll a meeting as one process would, even if they begin at once.
func TestWithStore_ProcessesShareThePollInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
		store := new(testkit.Store)
		id := testkit.Uploaded(t, testkit.Client(srv), "Weekly").ID
		began := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				m, err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Wait(t.Context(), id, nil)
				if assert.NoError(t, err) {
					assert.Equal(t, minutes.StatusMinutesReady, m.Status)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		assert.Less(t, time.Since(began), 4*time.Minute+70*time.Second)
		polls := srv.Requests(minutes.OpMeetingsGet)
		polls = slices.DeleteFunc(polls, func(r minutestest.Request) bool { return r.At.Sub(began) >= 4*time.Minute }) // then the meeting has ended
		for i := 1; i < len(polls); i++ {
			assert.GreaterOrEqual(t, polls[i].At.Sub(polls[i-1].At), 30*time.Second)
		}
		assert.GreaterOrEqual(t, len(polls), 7, "one every half a minute")
	})
}

// A process deletes the state of a meeting that has ended. If it dies before it stores the
// minutes, and the next one in its first poll, the third must not take the meeting for new.
func TestResume_RequestsNoUploadURLOnceEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Uploaded(t, testkit.Client(srv), "Weekly").ID
		_, err := srv.Advance(id, minutes.StatusMinutesReady)
		require.NoError(t, err)
		store := new(testkit.Store)
		requested := len(srv.Requests(minutes.OpMeetingsUploadURL))
		ctx, kill := context.WithCancel(t.Context())
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.Call(func(minutestest.Request) { kill() }))
		_, err = testkit.Client(srv, minutes.WithStore(store)).Meetings.Resume(ctx, id, testkit.Audio(10), nil)
		require.ErrorIs(t, err, context.Canceled)
		r, err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Resume(t.Context(), id, testkit.Audio(10), nil)
		require.NoError(t, err)
		require.NotEmpty(t, r.Minutes.Content)
		require.Len(t, srv.Requests(minutes.OpMeetingsUploadURL), requested)
		require.Zero(t, store.Len())
	})
}

// The first request of Resume depends on the stored state.
func TestResume_StartsFromStoredState(t *testing.T) {
	t.Parallel()
	const get, url = minutes.OpMeetingsGet, minutes.OpMeetingsUploadURL
	for name, test := range map[string]struct {
		polled, sent time.Duration // ago; 0: never
		first        minutes.Operation
		after        time.Duration // when the first request is made
		upload       time.Duration // when the upload URL is requested
	}{
		"nothing":                              {0, 0, get, 0, 0},
		"a poll just now, no upload":           {time.Second, 0, url, 0, 0},
		"a poll long ago, no upload":           {time.Hour, 0, url, 0, 0},
		"a poll in the future, no upload":      {-time.Hour, 0, url, 0, 0},
		"an upload just now":                   {0, time.Second, get, 0, 32 * time.Second},
		"an upload in the future":              {0, -time.Hour, get, 0, 32 * time.Second},
		"a poll, then an upload":               {10 * time.Second, 5 * time.Second, get, 22 * time.Second, 54 * time.Second},
		"a poll, then at once an upload":       {10 * time.Second, 10*time.Second - time.Millisecond, get, 22 * time.Second, 22 * time.Second},
		"an upload, then a poll":               {10 * time.Second, 15 * time.Second, get, 22 * time.Second, 22 * time.Second},
		"an upload, then a poll, all long ago": {time.Hour, 2 * time.Hour, get, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
				id := testkit.Waiting(t, srv)
				store := new(testkit.Store)
				began := time.Now()
				ago := func(d time.Duration) time.Time {
					if d == 0 {
						return time.Time{}
					}
					return began.Add(-d).UTC()
				}
				_, err := store.Save(t.Context(), id, minutes.MeetingState{}, minutes.MeetingState{PolledAt: ago(test.polled), UploadStartedAt: ago(test.sent)})
				require.NoError(t, err)
				before := len(srv.Requests())
				r, err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Resume(t.Context(), id, testkit.Audio(10), nil)
				require.NoError(t, err)
				require.NotEmpty(t, r.Minutes.Content)
				first := srv.Requests()[before]
				assert.Equal(t, test.first, first.Operation)
				assert.InDelta(t, test.after, first.At.Sub(began), float64(1200*time.Millisecond))
				assert.InDelta(t, test.upload, srv.Requests(url)[0].At.Sub(began), float64(2500*time.Millisecond))
				assert.Len(t, srv.Requests(minutes.OpUpload), 1)
				assert.Zero(t, store.Len())
				assert.Less(t, time.Since(began), 10*time.Minute, "a time in the future delays no poll")
			})
		})
	}
}

// A wait stores whether it found audio from elsewhere, so that a later Resume uploads only if needed.
func TestResume_UsesStateThatAWaitStored(t *testing.T) {
	t.Parallel()
	for name, hasAudio := range map[string]bool{"audio": true, "no audio": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
				id, store := testkit.Waiting(t, srv), new(testkit.Store)
				if hasAudio {
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
				defer cancel()
				_, err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Wait(ctx, id, nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				saves, before := store.Saves(), len(srv.Requests())
				_, err = testkit.Client(srv, minutes.WithStore(store)).Meetings.Resume(t.Context(), id, testkit.Audio(10), nil)
				require.NoError(t, err)
				if hasAudio {
					assert.Equal(t, 4, saves, "four polls")
					assert.Len(t, srv.Requests(minutes.OpMeetingsUploadURL), 1, "by the first Client")
				} else {
					assert.Equal(t, minutes.OpMeetingsUploadURL, srv.Requests()[before].Operation)
				}
			})
		})
	}
}

// Resume does not disturb a running upload of another process.
func TestResume_DoesNotDisturbAnotherUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.SlowUpload(10_000))
		id, store := testkit.Waiting(t, srv), new(testkit.Store)
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Second)
				_, err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Resume(t.Context(), id, testkit.Audio(100_000), nil)
				assert.NoError(t, err)
			})
		}
		both.Wait()
		synctest.Wait()
		assert.Len(t, srv.Requests(minutes.OpMeetingsUploadURL), 1)
		oneMeeting(t, srv, 1)
	})
}

// A failing store delays requests. Twenty failures in a row end a wait, like failed polls.
func TestWithStore_OutlastsStoreFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	for name, test := range map[string]struct {
		down time.Duration
		ends bool
	}{"for five minutes": {5 * time.Minute, false}, "for good": {24 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()))
				id := testkit.Uploaded(t, testkit.Client(srv), "Weekly").ID
				began := time.Now()
				store := &testkit.Store{Err: func(string) error {
					if time.Since(began) < test.down {
						return broken
					}
					return nil
				}}
				c := testkit.Client(srv, minutes.WithStore(store))
				_, err := c.Meetings.Wait(t.Context(), id, nil)
				for _, r := range srv.Requests(minutes.OpMeetingsGet) {
					assert.GreaterOrEqual(t, r.At.Sub(began), test.down, "a GET without a save")
				}
				if !test.ends {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, broken)
				wait, ok := errors.AsType[*minutes.WaitError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, id, wait.MeetingID)
				assert.ErrorContains(t, err, "20 consecutive status checks failed")
				assert.GreaterOrEqual(t, time.Since(began), 9*time.Minute)
			})
		})
	}
	t.Run("an upload", func(t *testing.T) {
		t.Parallel()
		for _, times := range []int64{1, 100} {
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				var calls atomic.Int64
				store := &testkit.Store{Err: func(string) error {
					if calls.Add(1) <= times {
						return broken
					}
					return nil
				}}
				err := testkit.Client(srv, minutes.WithStore(store)).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
				if times == 1 {
					require.NoError(t, err, "the attempt is retried")
					require.Len(t, srv.Requests(minutes.OpUpload), 1)
					return
				}
				require.ErrorIs(t, err, broken)
				_, ok := errors.AsType[*minutes.StorageError](err)
				require.True(t, ok, "%v", err)
				require.Empty(t, srv.Requests(minutes.OpUpload), "a PUT without a save")
			})
		}
	})
}

// stubborn is a store whose state always differs from the one that the Client loaded.
type stubborn struct{ testkit.Store }

func (*stubborn) Save(context.Context, string, minutes.MeetingState, minutes.MeetingState) (bool, error) {
	return false, nil
}

func TestWithStore_GivesUpIfNothingIsSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		err := testkit.Client(srv, minutes.WithStore(new(stubborn))).Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil)
		require.ErrorContains(t, err, "other processes changed it first")
		require.Empty(t, srv.Requests(minutes.OpUpload))
	})
}

// The Client deletes the state of a meeting that has ended or is gone, and only then.
func TestWithStore_DeletesStatesOfEndedMeetings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until minutes.Status
		end   func(srv *minutestest.Server, c *minutes.Client, id string) error
		left  int
	}{
		"minutes ready": {},
		"earlier state": {until: minutes.StatusTranscribed, left: 1},
		"failed": {end: func(srv *minutestest.Server, _ *minutes.Client, id string) error {
			_, err := srv.Advance(id, minutes.StatusMinutesFailed)
			return err
		}},
		"deleted by another": {end: func(srv *minutestest.Server, _ *minutes.Client, id string) error {
			return testkit.Client(srv).Meetings.Delete(context.Background(), id)
		}},
		"deleted by this Client": {end: func(_ *minutestest.Server, c *minutes.Client, id string) error {
			return c.Meetings.Delete(context.Background(), id)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(fourMinutes()), minutestest.WithoutAudit(minutestest.ViolationPoll))
				if name == "failed" {
					require.NoError(t, srv.Script(minutestest.Script{Outcome: minutes.StatusMinutesFailed}))
				}
				store := new(testkit.Store)
				c := testkit.Client(srv, minutes.WithStore(store))
				id := testkit.Uploaded(t, c, "Weekly").ID
				require.Equal(t, 1, store.Len(), "the upload")
				if test.end != nil {
					time.AfterFunc(time.Minute, func() { assert.NoError(t, test.end(srv, c, id)) })
				}
				_, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Until: test.until})
				require.Equal(t, test.end != nil, err != nil, "%v", err)
				synctest.Wait()
				assert.Equal(t, test.left, store.Len())
			})
		})
	}
}

// Dense waits use pages, which need no save.
func TestWithStore_PagesCostNoSave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		waits := testbase.Many(500, 150)
		ids := testkit.Crowd(t, srv, waits, 1, 20*time.Minute)
		store := new(testkit.Store)
		for _, err := range testkit.Client(srv, minutes.WithStore(store)).Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.LessOrEqual(t, store.Saves(), 3*len(srv.Requests(minutes.OpMeetingsGet)))
		assert.Less(t, store.Saves(), waits/5, "of waits for up to twenty minutes")
		assert.Zero(t, store.Len())
	})
}

// Once a process knows the interval of Cache-Control, all processes keep it.
func TestWithStore_KeepsTheIntervalOfCacheControl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		slow := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := srv.HTTPClient().Transport.RoundTrip(req)
			if err == nil {
				resp.Header.Set("Cache-Control", "max-age=120")
			}
			return resp, err
		})
		store := new(testkit.Store)
		id := testkit.Uploaded(t, testkit.Client(srv), "Weekly").ID
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				_, err := testkit.Client(srv, minutes.WithStore(store), minutes.WithHTTPClient(&http.Client{Transport: slow})).Meetings.Wait(t.Context(), id, nil)
				assert.NoError(t, err)
			})
		}
		both.Wait()
		polls := srv.Requests(minutes.OpMeetingsGet)
		for i := 2; i < len(polls)-1; i++ { // the second process learns the interval from its first GET
			assert.GreaterOrEqual(t, polls[i].At.Sub(polls[i-1].At), 2*time.Minute)
		}
		require.Greater(t, len(polls), 5)
	})
}

// Resume creates another meeting only with Restart and Params.
func TestResume_RestartsWithParams(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		externalID string
		gone       bool
		opts       minutes.ProcessOptions
		created    bool
	}{
		"failed":                          {"rec-1", false, minutes.ProcessOptions{}, false},
		"failed, Params":                  {"rec-1", false, minutes.ProcessOptions{Params: weekly("rec-1")}, false},
		"failed, Restart":                 {"rec-1", false, minutes.ProcessOptions{Restart: true}, false},
		"failed, both":                    {"rec-1", false, minutes.ProcessOptions{Restart: true, Params: weekly("rec-1")}, true},
		"failed, both, no external id":    {"", false, minutes.ProcessOptions{Restart: true, Params: weekly("")}, true},
		"gone, Restart":                   {"rec-1", true, minutes.ProcessOptions{Restart: true}, false},
		"gone, Params":                    {"rec-1", true, minutes.ProcessOptions{Params: weekly("rec-1")}, false},
		"gone, both":                      {"rec-1", true, minutes.ProcessOptions{Restart: true, Params: weekly("rec-1")}, false},
		"gone, both, without external id": {"", true, minutes.ProcessOptions{Restart: true, Params: weekly("")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv, minutes.WithStore(new(testkit.Store)))
				require.NoError(t, srv.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed}))
				r, err := c.Meetings.Process(t.Context(), weekly(test.externalID), testkit.Audio(10), nil)
				require.Error(t, err)
				failed := r.Meeting.ID
				require.NoError(t, srv.Script(minutestest.Script{}))
				if test.gone {
					require.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), failed))
				}
				opened := 0
				source := func(ctx context.Context) (minutes.Recording, error) {
					opened++
					return testkit.Audio(10)(ctx)
				}
				r, err = testkit.Client(srv).Meetings.Resume(t.Context(), failed, source, &test.opts)
				creates := len(srv.Requests(minutes.OpMeetingsCreate))
				if !test.created {
					_, isFailed := errors.AsType[*minutes.MeetingFailedError](err)
					assert.Equal(t, !test.gone, isFailed, "%v", err)
					assert.Equal(t, test.gone, errors.Is(err, minutes.ErrNotFound), "%v", err)
					assert.Zero(t, opened)
					assert.Equal(t, 1, creates)
					return
				}
				require.NoError(t, err)
				assert.True(t, r.Created)
				assert.NotEqual(t, failed, r.Meeting.ID)
				assert.NotEmpty(t, r.Minutes.Content)
				assert.Equal(t, 1, opened)
				_, still := srv.Meeting(failed)
				assert.False(t, still, "the failed meeting is deleted")
				oneMeeting(t, srv, 1)
			})
		})
	}
}

// ProcessAll keeps no more files open than uploads run.
func TestProcessAll_OpensFewRecordings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		var open, most atomic.Int64
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 40 {
				source := func(ctx context.Context) (minutes.Recording, error) {
					most.Store(max(most.Load(), open.Add(1)))
					return closingAudio(10, func() { open.Add(-1) })(ctx)
				}
				if !yield(minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: source}) {
					return
				}
			}
		}
		for _, err := range testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, nil) {
			require.NoError(t, err)
		}
		assert.LessOrEqual(t, most.Load(), int64(4))
		assert.Zero(t, open.Load())
	})
}

func TestMeetingState_SurvivesJSON(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]minutes.MeetingState{
		`{}`: noState,
		`{"polled_at":"2026-11-22T10:00:00.123Z"}`:                                                polled,
		`{"polled_at":"2026-11-22T10:00:00.123Z","upload_started_at":"2026-11-22T10:00:01.123Z"}`: sent,
	} {
		text, err := json.Marshal(state)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		var back minutes.MeetingState
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, state, back)
	}
}

func TestWithStore_RejectsNil(t *testing.T) {
	t.Parallel()
	_, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithStore(nil))
	testkit.RequireParamError(t, err, "WithStore", "")
}
