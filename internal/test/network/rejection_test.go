package network_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// counted returns an option that counts attempts of an operation.
func counted(op minutes.Operation) (minutes.Option, *atomic.Int32) {
	n := new(atomic.Int32)
	return minutes.WithObserver(func(_ context.Context, a minutes.Attempt) {
		if a.Operation == op {
			n.Add(1)
		}
	}), n
}

// requirePermanent checks the error of something that no retry helps.
func requirePermanent(t *testing.T, err error, attempts *atomic.Int32, words ...string) {
	t.Helper()
	require.Error(t, err)
	for _, word := range words {
		assert.Contains(t, err.Error(), word)
	}
	t.Logf("%d attempts, retryable %v: %v", attempts.Load(), minutes.Retryable(err), err)
	assert.False(t, minutes.Retryable(err), "Retryable")
	assert.EqualValues(t, 1, attempts.Load(), "attempts")
	assert.False(t, minutes.KeyRejected(err), "the proxy rejected the request, not the service the key")
}

// If a proxy rejects a request, the error names the proxy and its status, and is permanent.
func TestClient_ReportsRejectingProxy(t *testing.T) { // not parallel: HTTPS_PROXY has one address
	filter := filepath.Join(t.TempDir(), "filter")
	require.NoError(t, os.WriteFile(filter, []byte("example\n"), 0o600))
	withoutPassword := http.DefaultTransport.(*http.Transport).Clone()
	withoutPassword.Proxy = func(req *http.Request) (*url.URL, error) {
		if req.URL.Scheme == "http" { // the service on this machine
			return nil, nil
		}
		return &url.URL{Scheme: "http", Host: proxyAddr}, nil
	}
	for _, test := range []struct {
		name, status, config string
		opts                 []minutes.Option
	}{
		{
			name:   "no password",
			status: "407",
			config: "BasicAuth " + proxyUser + " another\n",
			opts:   []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: withoutPassword})},
		},
		{
			name:   "filter after password",
			status: "403",
			config: "BasicAuth " + proxyUser + " " + proxyPassword + "\nFilter \"" + filter + "\"\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrigin(t)
			port := proxyAddr[strings.LastIndex(proxyAddr, ":")+1:]
			listen := "Listen 127.0.0.1\nPort " + port + "\nTimeout 60\nAllow 127.0.0.1\nLogLevel Critical\n"
			start(t, proxyAddr, listen+test.config, "tinyproxy", "-d", "-c")
			check := func(t *testing.T, err error, attempts *atomic.Int32) {
				t.Helper()
				requirePermanent(t, err, attempts, proxyAddr, test.status)
				assert.NotContains(t, err.Error(), proxyUser)
				assert.NotContains(t, err.Error(), proxyPassword)
			}
			t.Run("calls", func(t *testing.T) {
				for op, call := range map[minutes.Operation]func(*minutes.Client) error{
					minutes.OpUsageGet: func(c *minutes.Client) error {
						_, err := c.Usage.Get(t.Context())
						return err
					},
					minutes.OpMeetingsCreate: func(c *minutes.Client) error {
						params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
						_, _, err := c.Meetings.Create(t.Context(), params)
						return err
					},
				} {
					count, attempts := counted(op)
					check(t, call(o.client(t, "https://minutes.example", append(test.opts, count)...)), attempts)
				}
			})
			t.Run("uploads", func(t *testing.T) {
				o.storage.Store("storage.example")
				count, attempts := counted(minutes.OpUpload)
				c := o.client(t, "http://"+o.addr, append(test.opts, count)...) // the proxy is not for loopback
				check(t, c.Meetings.Upload(t.Context(), create(t, c, "Weekly"), testkit.Audio(1000), nil), attempts)
			})
		})
	}
}
