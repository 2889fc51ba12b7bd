package network_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// nginx rejects requests over its limit with a bare 429. Batches that start all at once finish
// completely, with default options.
func TestProcess_FinishesBatchesThroughRateLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ jobs, perSecond, burst int }{
		{40, 5, 5},
		{6, 1, 1},
	} {
		name := fmt.Sprintf("%d jobs at %d a second, burst %d", test.jobs, test.perSecond, test.burst)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			zone := fmt.Sprintf(`
	limit_req_zone $binary_remote_addr zone=api:1m rate=%dr/s;
	limit_req_status 429;
`, test.perSecond)
			locations := fmt.Sprintf(`
	listen ADDR ssl http2;
	location / { %[1]s }
	location /v1/ { limit_req zone=api burst=%[2]d nodelay; %[1]s }
`, passOn, test.burst)
			addr := nginx(t, o, zone, locations)
			client := o.client(t, "https://"+addr)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			began := time.Now()
			failed := make([]error, test.jobs)
			var group sync.WaitGroup
			for i := range failed {
				group.Go(func() {
					params := &minutes.MeetingCreateParams{Title: fmt.Sprint("job ", i), Date: "2026-11-20"}
					_, failed[i] = client.Meetings.Process(ctx, params, testkit.Audio(1000), nil)
				})
			}
			group.Wait()
			finished := 0
			for i, err := range failed {
				if err == nil {
					finished++
				} else if i-finished < 3 { // the others fail alike
					t.Logf("job %d: %v", i, err)
				}
			}
			t.Logf("%d of %d jobs finished, in %v", finished, test.jobs, time.Since(began).Round(time.Second))
			assert.Equal(t, test.jobs, finished)
		})
	}
}
