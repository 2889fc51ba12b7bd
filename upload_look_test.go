package minutes_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// An upload that asks for the audio has its answer from a look that begins
// afterwards, a single one or a page, and as soon as the floor allows.
func TestUploadDuringALook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others   int // are waited for
		interval time.Duration
		lost     bool          // the reply, not the audio
		takes    time.Duration // to learn so
	}{
		"a look, and the audio did not arrive":      {0, 0, false, 0},
		"a look, and the audio arrived":             {0, 0, true, 0},
		"long after a look, no audio":               {0, 4 * time.Hour, false, 0},
		"long after a look, and the audio arrived":  {0, 4 * time.Hour, true, 0},
		"a page, and the audio did not arrive":      {49, 0, false, 0},
		"a page, and the audio arrived":             {49, 0, true, 0},
		"long after a page, no audio":               {49, 4 * time.Hour, false, 0},
		"long after a page, the audio arrived":      {49, 4 * time.Hour, true, 0},
		"the second page of an upload, no audio":    {49, 0, false, 40 * time.Second},
		"the second page of an upload, which ended": {49, 0, true, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), test.others, 1, testkit.Ages)
				id := waiting(t, srv)
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: id, Hold: minutes.StatusAudioUploaded}))
				ids = append(ids, id)
				c, _ := testkit.WatchLateLooks(srv, 10*time.Second)
				fault := minutestest.ResetUpload(0)
				if test.lost {
					fault = minutestest.LoseReply()
				}
				srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, MeetingID: id}, fault.Delayed(test.takes))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{Interval: test.interval}) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				lost := time.Now().Add(45 * time.Second) // during the second look, if there is one
				time.Sleep(45*time.Second - test.takes)
				rec, sum := noise(5000)
				require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
				requireArrived(t, srv, id, sum)
				assert.LessOrEqual(t, time.Since(lost), 50*time.Second)
				urls := 1
				if !test.lost {
					urls = 2
				}
				assert.Len(t, srv.Requests("meetings.upload_url")[test.others:], urls)
				wg.Wait()
				synctest.Wait()
			})
		})
	}
}

// An upload that asks for the audio during a look that is refused has its answer
// from the next one.
func TestUploadDuringALookThatIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		id := waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.RateLimit("").Delayed(10*time.Second))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), id, nil)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		require.NoError(t, c.Meetings.Upload(t.Context(), id, audio(10), nil))
		assert.Len(t, srv.Requests("meetings.get"), 2)
		wg.Wait()
		synctest.Wait()
	})
}
