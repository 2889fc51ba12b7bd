package network_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
		{"no password", "407", "BasicAuth " + proxyUser + " another\n", []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: withoutPassword})}},
		{"filter after password", "403", "BasicAuth " + proxyUser + " " + proxyPassword + "\nFilter \"" + filter + "\"\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrigin(t)
			port := proxyAddr[strings.LastIndex(proxyAddr, ":")+1:]
			start(t, proxyAddr, "Listen 127.0.0.1\nPort "+port+"\nTimeout 60\nAllow 127.0.0.1\nLogLevel Critical\n"+test.config,
				"tinyproxy", "-d", "-c")
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
						_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
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

// If the two sides cannot agree on a protocol, no retry helps.
func TestClient_DoesNotRetryProtocolMismatch(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]string{
		"server too old":      `listen ADDR ssl http2; ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;`,
		"HTTPS to plain HTTP": `listen ADDR;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			addr := nginx(t, o, "", server+` location / { `+passOn+` }`)
			calls, attempts := counted(minutes.OpUsageGet)
			_, err := o.client(t, "https://"+addr, calls).Usage.Get(t.Context())
			requirePermanent(t, err, attempts)
			o.storage.Store(addr)
			uploads, attempts := counted(minutes.OpUpload)
			c := o.client(t, "http://"+o.addr, uploads)
			requirePermanent(t, c.Meetings.Upload(t.Context(), create(t, c, "Weekly"), testkit.Audio(1000), nil), attempts)
		})
	}
}

// The error shows which host responded instead of the service, and with which page.
func TestClient_ReportsHTMLErrorPages(t *testing.T) {
	t.Parallel()
	const host = "ADDR" // replaced by nginx's address
	for name, test := range map[string]struct {
		server string
		shows  []string
		hides  []string
	}{
		"no server behind the proxy": {
			`location / { proxy_pass http://127.0.0.1:1; }`, []string{"502 Bad Gateway", "nginx", host}, nil,
		},
		"redirect to another host": {
			`location / { return 301 https://login.example.com/sso?token=s3cr3t; }`,
			[]string{"301", "login.example.com"}, []string{"s3cr3t", "token="},
		},
		"page that echoes the key": {
			`location / { default_type text/html; return 403 "<html><title>No entry for $http_authorization</title></html>"; }`,
			[]string{"403", "No entry for", "nginx", host}, []string{"KEY"},
		},
		"large upload": { // only an upload is rejected
			`location / { ` + strings.ReplaceAll(passOn, "client_max_body_size 0", "client_max_body_size 1k") + ` }`,
			[]string{"413 Request Entity Too Large", "nginx", host}, nil,
		},
	} {
		for _, what := range []minutes.Operation{minutes.OpUsageGet, minutes.OpUpload} {
			if name == "large upload" && what != minutes.OpUpload {
				continue
			}
			t.Run(fmt.Sprint(name, ", ", what), func(t *testing.T) {
				t.Parallel()
				o := newOrigin(t)
				addr := nginx(t, o, "", `listen ADDR ssl http2; `+test.server)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				opts := minutes.WithMaxRetries(0)
				var err error
				if what == minutes.OpUsageGet {
					_, err = o.client(t, "https://"+addr, opts).Usage.Get(ctx)
				} else {
					o.storage.Store(addr)
					c := o.client(t, "http://"+o.addr, opts)
					err = c.Meetings.Upload(ctx, create(t, c, "Weekly"), testkit.Audio(100_000), nil)
				}
				require.Error(t, err)
				t.Log(err)
				for _, text := range test.shows {
					assert.Contains(t, err.Error(), strings.ReplaceAll(text, host, addr))
				}
				for _, text := range test.hides {
					assert.NotContains(t, err.Error(), strings.ReplaceAll(text, "KEY", o.Key()))
				}
			})
		}
	}
}
