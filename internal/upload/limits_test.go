package upload_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// The limit of the body and that of the reply hold each for its own part.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits storage.Limits
		takes  time.Duration // a byte of the body
		reply  time.Duration // after the last
		until  time.Duration // it is given up; 0: never
	}{
		"a slow body":               {storage.Limits{Stall: time.Minute, Reply: time.Minute}, 50 * time.Second, 0, 0},
		"a body that stands still":  {storage.Limits{Stall: time.Minute, Reply: time.Hour}, 2 * time.Hour, 0, time.Minute},
		"with a limit of its own":   {storage.Limits{Stall: 10 * time.Minute, Reply: 12 * time.Minute}, 9 * time.Minute, 0, 0},
		"a reply after 90 seconds":  {storage.Limits{Stall: time.Minute, Reply: 5 * time.Minute}, 0, 90 * time.Second, 0},
		"a reply that never comes":  {storage.Limits{Stall: time.Minute, Reply: 5 * time.Minute}, 0, time.Hour, 5 * time.Minute},
		"a reply that is too late":  {storage.Limits{Stall: time.Hour, Reply: 5 * time.Minute}, 0, 10 * time.Minute, 5 * time.Minute},
		"a reply after a long hour": {storage.Limits{Stall: time.Minute, Reply: 2 * time.Hour}, 0, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rest := func(ctx context.Context, d time.Duration) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(d):
						return nil
					}
				}
				next := roundTripper(func(req *http.Request) (*http.Response, error) {
					for {
						if err := rest(req.Context(), test.takes); err != nil {
							return nil, err
						}
						if _, err := io.ReadFull(req.Body, make([]byte, 1)); err == io.EOF {
							break
						}
					}
					if err := rest(req.Context(), test.reply); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
				})
				p := put(t, "https://storage.example/k?s=1", next, audio(10))
				p.Limits = test.limits
				start := time.Now()
				r := p.Do(t.Context())
				if test.until == 0 {
					require.Equal(t, storage.Stored, r.Outcome)
					return
				}
				require.True(t, r.Stalled)
				require.NotEqual(t, storage.Stored, r.Outcome)
				late, ok := errors.AsType[net.Error](r.Err)
				require.True(t, ok)
				require.True(t, late.Timeout())
				require.NotErrorIs(t, r.Err, context.DeadlineExceeded)
				require.ErrorContains(t, r.Err, test.until.String())
				require.GreaterOrEqual(t, time.Since(start), test.until)
				require.LessOrEqual(t, time.Since(start), test.until+test.until/3)
			})
		})
	}
}
