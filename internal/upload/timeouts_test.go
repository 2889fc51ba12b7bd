package upload

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
)

// Stall limits only the body, and Response only the response.
func TestTimeouts_LimitBodyAndResponseSeparately(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits   Timeouts
		perByte  time.Duration // the transport waits before each byte of the body
		response time.Duration // from the last byte to the response
		givesUp  time.Duration // when the attempt gives up; 0: never
	}{
		"a slow body":                        {Timeouts{Stall: time.Minute, Response: time.Minute}, 50 * time.Second, 0, 0},
		"a body that stalls":                 {Timeouts{Stall: time.Minute, Response: time.Hour}, 2 * time.Hour, 0, time.Minute},
		"a slow body, longer limits":         {Timeouts{Stall: 10 * time.Minute, Response: 12 * time.Minute}, 9 * time.Minute, 0, 0},
		"a response after 90 seconds":        {Timeouts{Stall: time.Minute, Response: 5 * time.Minute}, 0, 90 * time.Second, 0},
		"a response after the limit":         {Timeouts{Stall: time.Minute, Response: 5 * time.Minute}, 0, time.Hour, 5 * time.Minute},
		"a response after the shorter limit": {Timeouts{Stall: time.Hour, Response: 5 * time.Minute}, 0, 10 * time.Minute, 5 * time.Minute},
		"a response after an hour":           {Timeouts{Stall: time.Minute, Response: 2 * time.Hour}, 0, time.Hour, 0},
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
						if err := rest(req.Context(), test.perByte); err != nil {
							return nil, err
						}
						if _, err := io.ReadFull(req.Body, make([]byte, 1)); err == io.EOF {
							break
						}
					}
					if err := rest(req.Context(), test.response); err != nil {
						return nil, err
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
				})
				p := put(t, "https://storage.example/k?s=1", next, audio(10))
				p.Timeouts = test.limits
				start := time.Now()
				r := p.attempt(t.Context())
				if test.givesUp == 0 {
					require.Equal(t, stored, judge(r))
					return
				}
				require.True(t, r.Stalled)
				require.NotEqual(t, stored, judge(r))
				late, ok := errors.AsType[net.Error](r.Err)
				require.True(t, ok)
				require.True(t, late.Timeout())
				require.NotErrorIs(t, r.Err, context.DeadlineExceeded)
				require.ErrorContains(t, r.Err, test.givesUp.String())
				require.GreaterOrEqual(t, time.Since(start), test.givesUp)
				require.LessOrEqual(t, time.Since(start), test.givesUp+test.givesUp/3)
			})
		})
	}
}
