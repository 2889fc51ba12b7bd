package network_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
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

// requireWords checks that the text of an error contains words.
func requireWords(t *testing.T, err error, words ...string) {
	t.Helper()
	require.Error(t, err)
	for _, word := range words {
		assert.Contains(t, err.Error(), word)
	}
}

// requirePermanent checks the error of something that no retry helps.
func requirePermanent(t *testing.T, err error, attempts *atomic.Int32, words ...string) {
	t.Helper()
	requireWords(t, err, words...)
	t.Logf("%d attempts, retryable %v: %v", attempts.Load(), minutes.Retryable(err), err)
	assert.False(t, minutes.Retryable(err), "Retryable")
	assert.EqualValues(t, 1, attempts.Load(), "attempts")
	assert.False(t, minutes.KeyRejected(err), "the proxy rejected the request, not the service the key")
}

// If a proxy rejects a request, the error names the proxy. If its status is known, the error is
// permanent.
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
		{"wrong password", "401", "BasicAuth " + proxyUser + " another\n", nil}, // not 407: tinyproxy is like that
		{"filter", "403", "Filter \"" + filter + "\"\n", nil},
		{"filter, own transport", "Filtered", "Filter \"" + filter + "\"\n", []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: withoutPassword})}},
		{"filter after password", "403", "BasicAuth " + proxyUser + " " + proxyPassword + "\nFilter \"" + filter + "\"\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOrigin(t)
			port := proxyAddr[strings.LastIndex(proxyAddr, ":")+1:]
			start(t, proxyAddr, "Listen 127.0.0.1\nPort "+port+"\nTimeout 60\nAllow 127.0.0.1\nLogLevel Critical\n"+test.config,
				"tinyproxy", "-d", "-c")
			check := func(t *testing.T, err error, attempts *atomic.Int32) {
				t.Helper()
				if test.status == "Filtered" { // another transport reports the proxy's own words, without the status
					requireWords(t, err, proxyAddr, test.status)
				} else {
					requirePermanent(t, err, attempts, proxyAddr, test.status)
				}
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
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.TLSClientConfig = nil, &tls.Config{MaxVersion: tls.VersionTLS12}
	for name, test := range map[string]struct {
		scheme, server string
		opts           []minutes.Option
	}{
		"server too old":      {"https", `listen ADDR ssl http2; ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;`, nil},
		"client too old":      {"https", `listen ADDR ssl http2; ssl_protocols TLSv1.3;`, []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: transport})}},
		"HTTPS to plain HTTP": {"https", `listen ADDR;`, nil},
		"plain HTTP to HTTPS": {"http", `listen ADDR ssl;`, nil},
	} {
		for _, what := range []minutes.Operation{minutes.OpUsageGet, minutes.OpUpload} {
			if test.scheme == "http" && what == minutes.OpUpload {
				continue // upload URLs are https
			}
			t.Run(fmt.Sprint(name, ", ", what), func(t *testing.T) {
				t.Parallel()
				o := newOrigin(t)
				addr := nginx(t, o, "", test.server+` location / { `+passOn+` }`)
				count, attempts := counted(what)
				base := test.scheme + "://" + addr
				if what == minutes.OpUsageGet {
					_, err := o.client(t, base, append(test.opts, count)...).Usage.Get(t.Context())
					requirePermanent(t, err, attempts)
					return
				}
				o.storage.Store(addr)
				c := o.client(t, "http://"+o.addr, append(test.opts, count)...)
				requirePermanent(t, c.Meetings.Upload(t.Context(), create(t, c, "Weekly"), testkit.Audio(1000), nil), attempts)
			})
		}
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
		"client certificate": {
			`ssl_verify_client on; ssl_client_certificate CERT; location / { ` + passOn + ` }`,
			[]string{"400 No required SSL certificate was sent", "nginx", host}, nil,
		},
		"no server behind the proxy": {
			`location / { proxy_pass http://127.0.0.1:1; }`, []string{"502 Bad Gateway", "nginx", host}, nil,
		},
		"slow server behind the proxy": {
			`location / { proxy_read_timeout 500ms; proxy_pass http://SILENT; }`, []string{"504 Gateway Time-out", "nginx", host}, nil,
		},
		"redirect to another host": {
			`location / { return 301 https://login.example.com/sso?token=s3cr3t; }`,
			[]string{"301", "login.example.com"}, []string{"s3cr3t", "token="},
		},
		"page without title": {
			`location / { default_type text/plain; return 403 "Blocked by policy 17.\nAsk security."; }`,
			[]string{"403", "Blocked by policy 17.", "nginx", host}, []string{"Ask security"},
		},
		"page that echoes the key": {
			`location / { default_type text/html; return 403 "<html><title>No entry for $http_authorization</title></html>"; }`,
			[]string{"403", "No entry for", "nginx", host}, []string{"KEY"},
		},
		"long title": {
			`location / { default_type text/html; return 403 "<html><title>` + strings.Repeat("0123456789", 20) + `</title></html>"; }`,
			[]string{"403", "0123456789012345", "nginx", host}, []string{strings.Repeat("0123456789", 8) + "0"},
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
				silent := silentAddr(t)
				addr := nginx(t, o, "", `listen ADDR ssl http2; `+strings.ReplaceAll(test.server, "SILENT", silent))
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

// silentAddr is the address of a server that never answers.
func silentAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String() // the kernel accepts connections by itself
}
