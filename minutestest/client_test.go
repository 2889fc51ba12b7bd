package minutestest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A crash in the middle of a slow upload leaves a goroutine that sleeps in ReadAt. It must not fail
// the test.
func TestNewServer_LetsSleepersEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := newSlow(t)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			go func() {
				_, err := srv.Client().Meetings.Process(ctx, weekly(), minutestest.SlowRecording(1_000_000, 10_000),
					nil)
				assert.ErrorIs(t, err, context.Canceled)
			}()
			time.Sleep(10 * time.Second)
			kill()
			synctest.Wait()
		})
	}
}

func TestSlowRecording_TakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := minutestest.NewServer(t).Client().Meetings.Process(t.Context(), weekly(),
			minutestest.SlowRecording(1_000_000, 10_000), nil)
		require.NoError(t, err)
		assert.Equal(t, 100*time.Second, time.Since(began).Round(time.Second))
	})
}

// The time of the service moves on, but not that of its clients.
func TestAdvanceClock_LeavesClientsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t)
		c := callerOf(s)
		id := c.create(t, "Weekly")
		c.status(t, id)
		began := time.Now()
		now := s.AdvanceClock(time.Hour)
		assert.Equal(t, time.Hour, now.Sub(began))
		assert.Equal(t, now, s.Now())
		c.status(t, id)
		assert.Len(t, s.Violations(), 1, "the second poll comes at once, by the client's clock")
		assert.Equal(t, time.Hour, s.Requests(minutes.OpMeetingsGet)[1].At.Sub(began))
	})
}

// A caller that polls for new requests gets each one once, even one that began first and ended
// last.
func TestRequestsAfter_MissesNoSlowRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.Delay(time.Second))
		go func() { _, _ = srv.Client().Usage.Get(t.Context()) }()
		synctest.Wait() // the request is under way
		_, err := srv.Client().Members.List(t.Context())
		require.NoError(t, err)
		var got, of []int
		last := 0
		for range 3 {
			for r := range srv.RequestsAfter(last) {
				last = r.Seq
				got = append(got, r.Seq)
			}
			time.Sleep(2 * time.Second)
		}
		for _, r := range srv.Requests() {
			of = append(of, r.Seq)
		}
		assert.Equal(t, []int{2, 1}, got, "in the order in which they ended")
		assert.Equal(t, []int{1, 2}, of, "in the order in which they arrived")
	})
}

// The speed divides stages whatever sets them, but a script or world is shown unchanged.
func TestWithSpeed_DividesEveryStage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithSpeed(60))
		stages := minutestest.Stages{Prepare: time.Minute, Transcribe: time.Minute, Write: time.Minute}
		srv.UpdateWorld(func(w *minutestest.World) error {
			w.Stages = stages
			return nil
		})
		srv.Script(minutestest.Script{Title: "Weekly",
			Stages: &minutestest.Stages{Prepare: time.Minute, Transcribe: time.Hour}})
		id := srv.AddMeetings("org_acme",
			minutestest.WorldMeeting{Title: "Weekly", Status: minutes.StatusAudioUploaded})[0]
		time.Sleep(time.Hour)
		m, _ := srv.Meeting(id)
		require.Len(t, m.History, 6)
		for i, want := range []time.Duration{0, time.Second, time.Minute, 0, 0} {
			assert.Equal(t, want, m.History[i+1].At.Sub(m.History[i].At), m.History[i].Status)
		}
		assert.Equal(t, stages, srv.World().Stages)
		assert.Equal(t, time.Hour, srv.Scripts()[0].Stages.Transcribe)
	})
}

func weekly() *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21", ExternalID: "weekly"}
}

func newSlow(t *testing.T) *minutestest.Server {
	return minutestest.NewServer(t, minutestest.WithWorld(slow()))
}
