package network_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

const (
	gatewaysPage = "gateways.md"
	uploadsPage  = "../internal/test/network/uploads.txt"
)

// A gateway whose backend fails answers with a page of its own, or not at all. The Client reports
// what it got, and that it is temporary.
func TestGateways_ReportFailedBackend(t *testing.T) {
	t.Parallel()
	for _, g := range gateways {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			addr := g.start(t, t.TempDir(), b.addr)
			b.set(loses)
			lost := call(t, addr)
			b.set(stalls)
			slow := call(t, addr)
			b.close()
			refused := call(t, addr)
			for _, err := range []error{refused, lost, slow} {
				assert.True(t, minutes.Retryable(err), "%v", err)
			}
			testkit.RequireRow(t, gatewaysPage, g.name, server(lost), answer(refused), answer(lost), answer(slow))
		})
	}
}

// What a gateway does with an upload: whether it waits for the whole recording, what it keeps of the
// request, and whether the Client learns why storage rejects one.
func TestGateways_PassUploads(t *testing.T) {
	t.Parallel()
	for _, g := range slices.Concat(gateways, configured) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			addr := g.start(t, t.TempDir(), b.addr)
			whole := b.upload(t, addr)
			b.set(rejects)
			early := b.upload(t, addr)
			testkit.RequireRow(t, uploadsPage, g.name,
				answer(whole.err), whole.taken(), whole.expect(), whole.rewritten(), answer(early.err))
		})
	}
}

// Over its limit, a gateway answers with the status that its administrator chose, or with its own.
func TestGateways_LimitRequests(t *testing.T) {
	t.Parallel()
	for _, g := range limiters {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			addr := g.start(t, t.TempDir(), b.addr)
			_ = call(t, addr) // the first is within the limit, and its empty response an error
			err := call(t, addr)
			testkit.RequireRow(t, gatewaysPage, g.name,
				answer(err), yes(errors.Is(err, minutes.ErrRateLimited)), yes(minutes.Retryable(err)))
		})
	}
}

// The settings that the page recommends are those that the gateways of the runs have, with another time.
func TestGateways_HaveTheSettingsOfThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/" + gatewaysPage)
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n| gateway | for uploads | for calls |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		names := strings.Split(strings.TrimSpace(cells[1]), ", ")
		var files strings.Builder
		for _, g := range slices.Concat(gateways, configured, limiters) {
			ofRow := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(g.name, name) })
			for _, file := range g.files {
				if ofRow {
					files.WriteString(file)
				}
			}
		}
		settings := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1)
		require.NotEmpty(t, settings, row)
		for _, setting := range settings {
			assert.Contains(t, files.String(), setting[1], row)
		}
	}
}

// A proxy that does not connect to the service says why, in the response to CONNECT.
func TestProxies_ReportFailedConnect(t *testing.T) {
	t.Parallel()
	for _, g := range proxies {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			addr := g.start(t, t.TempDir(), freeAddr())
			proxy := &url.URL{Scheme: "http", Host: addr, User: url.UserPassword("alice", "secret99")}
			refused := through(t, proxy, "https://"+freeAddr())
			forbidden := through(t, proxy, "https://forbidden.example")
			proxy.User = nil
			password := through(t, proxy, "https://"+freeAddr())
			testkit.RequireRow(t, gatewaysPage, g.name, connect(refused), connect(forbidden), connect(password))
		})
	}
}

// A proxy that inspects TLS presents a certificate of its own authority, which the Client rejects
// unless it is told to trust it.
func TestProxies_InspectTLS(t *testing.T) {
	t.Parallel()
	service := minutestest.NewServer(t)
	backend := httptest.NewTLSServer(service.Handler())
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	proxy := interceptor.start(t, dir, backend.Listener.Addr().String())
	get := func(roots *x509.CertPool) error {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		client, err := minutes.New(backend.URL, service.Key(), minutes.WithMaxRetries(0),
			minutes.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		_, err = client.Usage.Get(t.Context())
		return err
	}
	err := get(nil)
	require.Error(t, err)
	testkit.RequireRow(t, gatewaysPage, "mitmproxy, without its authority", connect(err))
	authority, err := os.ReadFile(filepath.Join(dir, "mitmproxy-ca-cert.pem"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	require.NoError(t, get(roots))
}

// call makes a call through a gateway, without retries.
func call(t *testing.T, addr string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
	defer cancel()
	client, err := minutes.New("http://"+addr, "key", minutes.WithMaxRetries(0))
	require.NoError(t, err)
	_, err = client.Usage.Get(ctx)
	require.Error(t, err)
	return err
}

// through makes a call through a forward proxy, without retries.
func through(t *testing.T, proxy *url.URL, baseURL string) error {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	client, err := minutes.New(baseURL, "key", minutes.WithMaxRetries(0),
		minutes.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	_, err = client.Usage.Get(t.Context())
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret99")
	return err
}

// answer is the cell of a table that says what the Client got: the status, and the code of storage
// or the text of another server's page.
func answer(err error) string {
	if err == nil {
		return "stored"
	}
	api, _ := errors.AsType[*minutes.Error](err)
	storage, _ := errors.AsType[*minutes.StorageError](err)
	switch {
	case storage != nil && storage.Code != "":
		return fmt.Sprint("`", storage.StatusCode, " ", storage.Code, "`")
	case storage != nil && storage.StatusCode != 0:
		return page(storage.StatusCode, storage.Message, storage.RetryAfter)
	case api != nil && api.Code != "":
		return fmt.Sprint("`", api.StatusCode, " ", api.Code, "`") + retryAfter(api.RetryAfter)
	case api != nil && api.StatusCode != 0:
		return page(api.StatusCode, api.Message, api.RetryAfter)
	case errors.Is(err, context.DeadlineExceeded):
		return "waits on"
	}
	return "closes the connection"
}

func page(status int, message string, after time.Duration) string {
	_, text, found := strings.Cut(message, " sent ")
	if !found {
		text = message
	}
	return fmt.Sprint("`", status, " ", text, "`") + retryAfter(after)
}

func retryAfter(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return fmt.Sprint(", Retry-After ", int(d.Seconds()))
}

var serverHeader = regexp.MustCompile(`\((\w+)[^ ]*( \([^)]*\))?[^)]*\) sent `)

// server is the cell of the Server header, without the version.
func server(err error) string {
	found := serverHeader.FindStringSubmatch(err.Error())
	if found == nil {
		return "–"
	}
	return "`" + found[1] + "`"
}

// connect is the cell of a proxy's response to CONNECT.
func connect(err error) string {
	text := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(err.Error(), "HOST")
	return "`" + strings.TrimPrefix(text, "minutes: GET /v1/usage: ") + "`, " + retryable(err)
}

func retryable(err error) string {
	if minutes.Retryable(err) {
		return "temporary"
	}
	return "permanent"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
