package minutes_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
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

// There are as many concurrent uploads as slots, whoever began them. An upload that waits for a
// slot does not open its recording, sends nothing, does not stall and obeys its context.
func TestUploadSlots_LimitConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Minute // longer than anything may stall
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		var now, most int
		var mu sync.Mutex
		change := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		network := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if op, _ := testkit.Identify(req); op == minutes.OpUpload {
				change(1)
				defer change(-1)
				defer time.Sleep(took)
			}
			return srv.HTTPClient().Transport.RoundTrip(req)
		})
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: network}), minutes.WithUploadConcurrency(2), minutes.WithUploadTimeouts(minutes.UploadTimeouts{Stall: time.Minute, Response: time.Hour}))
		open := func(ctx context.Context) (minutes.Recording, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Less(t, now, 2, "a recording is opened once there is a slot")
			return testkit.Audio(10)(ctx)
		}
		opts := &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded}
		began := time.Now()
		var wg sync.WaitGroup
		var ended []time.Duration
		start := func(f func() error) {
			wg.Go(func() {
				assert.NoError(t, f())
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, time.Since(began).Truncate(time.Minute))
			})
			synctest.Wait()
		}
		first, second := testkit.Waiting(t, srv), testkit.Waiting(t, srv)
		start(func() error { return c.Meetings.Upload(t.Context(), first, testkit.Audio(10), nil) })
		start(func() error { _, err := c.Meetings.Resume(t.Context(), second, open, opts); return err })
		start(func() error {
			_, err := c.Meetings.Process(t.Context(), weekly("3"), testkit.Audio(10), opts)
			return err
		})
		start(func() error {
			for _, err := range c.Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{{Params: weekly("4"), Source: open}}), opts) {
				return err
			}
			return nil
		})

		n := len(srv.Requests())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		third := testkit.Waiting(t, srv)
		err := c.Meetings.Upload(ctx, third, testkit.Audio(10), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, ok := errors.AsType[*minutes.StorageError](err)
		assert.True(t, ok, "%v", err)
		assert.Equal(t, time.Minute, time.Since(began), "it obeys its context")
		assert.Len(t, srv.Requests(), n+1, "it has asked for nothing")

		wg.Wait()
		assert.Equal(t, 2, most)
		assert.Equal(t, []time.Duration{took, took, 2 * took, 2 * took}, ended)
		require.NoError(t, c.Meetings.Upload(t.Context(), third, testkit.Audio(10), nil), "every slot was released")
	})
}

// A slot that is released as ctx ends is not lost.
func TestUploadSlots_ReleaseAsContextEnds(t *testing.T) {
	t.Parallel()
	for range testbase.Many(50, 15) { // which of the two is seen first is chance
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := testkit.Client(srv, minutes.WithUploadConcurrency(1))
			first, second := testkit.Waiting(t, srv), testkit.Waiting(t, srv)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := c.Meetings.Resume(t.Context(), first, func(context.Context) (minutes.Recording, error) {
					time.Sleep(time.Second)
					cancel()
					return minutes.Recording{}, os.ErrNotExist // which releases the slot
				}, nil)
				assert.ErrorIs(t, err, os.ErrNotExist)
			})
			synctest.Wait()
			_ = c.Meetings.Upload(ctx, second, testkit.Audio(10), nil)
			wg.Wait()
			testkit.Uploaded(t, c, "third")
		})
	}
}
