package test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
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

// lateStorage takes one recording and rejects all others. The service only notices the recording after a
// while.
type lateStorage struct {
	next http.RoundTripper
	// delay is how long the service takes to notice.
	delay time.Duration
	// readsFirst makes it read a recording before it rejects it.
	readsFirst bool
	// took is how long a recording takes to arrive.
	took time.Duration

	mu     sync.Mutex
	stored bool
	wholes int // how many recordings were sent whole
}

func (s *lateStorage) RoundTrip(req *http.Request) (*http.Response, error) {
	op, _ := testkit.Identify(req)
	if op != minutes.OpUpload {
		return s.next.RoundTrip(req)
	}
	rejection := testkit.Canned(http.StatusForbidden, "<Error><Code>AccessDenied</Code></Error>")
	s.mu.Lock()
	rejects := s.stored
	s.mu.Unlock()
	if rejects && !s.readsFirst {
		return rejection(req)
	}
	time.Sleep(s.took)
	recording, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.wholes++
	rejects = s.stored
	s.stored = true
	s.mu.Unlock()
	if rejects {
		return rejection(req)
	}
	noticed := req.Clone(context.WithoutCancel(req.Context()))
	noticed.Body = io.NopCloser(bytes.NewReader(recording))
	if s.delay == 0 {
		return s.next.RoundTrip(noticed)
	}
	time.AfterFunc(s.delay, func() { _, _ = s.next.RoundTrip(noticed) })
	return testkit.Canned(http.StatusOK, "")(req)
}

// Two workers process the same recording, one of them perhaps in two runs. Storage rejects the second
// recording, and the service is slow to notice the first. That is nobody's failure: each worker gets the
// minutes of one meeting with one recording.
func TestProcess_ServesTwoWorkersAlthoughStorageTakesOneRecording(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{0, 3 * time.Second, 8 * time.Second, 20 * time.Second, time.Minute}
	for seed := range testbase.Many(6000, 100) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 55))
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			storage := &lateStorage{
				next:       testkit.Direct(srv).Transport,
				delay:      delays[seed%len(delays)],
				readsFirst: rnd.IntN(2) == 0,
				took:       testkit.UpTo(rnd, 10*time.Second),
			}
			work := func(lifetime time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), lifetime)
				defer cancel()
				c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: storage}))
				params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "rec-1"}
				r, err := c.Meetings.Process(ctx, params, testkit.Audio(1000), nil)
				if err == nil {
					assert.NotNil(t, r.Minutes)
				}
				return err
			}
			starts := []time.Duration{0, testkit.UpTo(rnd, 30*time.Second)}
			lifetime := time.Hour
			if rnd.IntN(4) == 0 {
				lifetime = testkit.UpTo(rnd, 30*time.Second) // then the worker is restarted
			}
			var workers sync.WaitGroup
			for i, start := range starts {
				workers.Go(func() {
					time.Sleep(start)
					if i == 0 && lifetime < time.Hour {
						_ = work(lifetime)
					}
					assert.NoError(t, work(time.Hour), "seed %d, worker %d, %+v", seed, i, storage)
				})
			}
			workers.Wait()
			meetings := srv.Meetings()
			require.Len(t, meetings, 1)
			require.NotNil(t, meetings[0].Audio)
			require.EqualValues(t, 1000, meetings[0].Audio.Size)
			require.LessOrEqual(t, storage.wholes, 9, "three in each run")
		})
		if t.Failed() {
			return
		}
	}
}
