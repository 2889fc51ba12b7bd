package upload_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// A proxy that does not let a request through is named, without its password,
// and the store certainly has nothing.
func TestProxyThatLetsNothingThrough(t *testing.T) {
	t.Parallel()
	refuse := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, test := range map[string]struct {
		proxy http.HandlerFunc // nil: nobody is there
		text  string
	}{
		"dead":       {nil, "connection refused"},
		"forbidden":  {refuse(403), "Forbidden"},
		"unknown":    {refuse(407), "Proxy Authentication Required"},
		"no gateway": {refuse(502), "Bad Gateway"},
		"hangs up":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		for _, wrapped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", wrapped ", wrapped), func(t *testing.T) {
				t.Parallel()
				srv := httptest.NewServer(test.proxy)
				defer srv.Close()
				addr := srv.Listener.Addr().String()
				if test.proxy == nil {
					srv.Close()
				}
				tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr, User: url.UserPassword("user", "pass-word")})}
				var next http.RoundTripper = tr
				if wrapped {
					next = roundTripper(tr.RoundTrip)
				}
				r := put(t, "https://storage.example/k?s=1", next, audio(10)).Do(t.Context())
				require.Equal(t, storage.Untouched, r.Outcome, "%v", r.Err)
				require.ErrorContains(t, r.Err, addr)
				require.ErrorContains(t, r.Err, test.text)
				require.NotContains(t, r.Err.Error(), "pass-word")
			})
		}
	}
	t.Run("without an address", func(t *testing.T) {
		t.Parallel()
		next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New(`bad "http://user:pass-word@proxy"`) }}
		r := put(t, "https://storage.example/k?s=1", next, audio(10)).Do(t.Context())
		require.Equal(t, storage.Untouched, r.Outcome)
		require.NotContains(t, r.Err.Error(), "pass-word")
	})
}

// Untouched is only what found no connection: not what had one and then failed to
// make another, nor what read of the recording.
func TestLost(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer taken.Close()
	for name, test := range map[string]struct {
		next roundTripper
		kind storage.Outcome
	}{
		"no connection":       {func(*http.Request) (*http.Response, error) { return nil, errRefused }, storage.Untouched},
		"no connection, deep": {func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("x: %w", errRefused) }, storage.Untouched},
		"a lost one":          {func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }, storage.Ambiguous},
		"another error": {func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "write", Err: io.ErrClosedPipe}
		}, storage.Ambiguous},
		"after some of it": {func(req *http.Request) (*http.Response, error) {
			_, _ = io.CopyN(io.Discard, req.Body, 5)
			return nil, errRefused
		}, storage.Ambiguous},
		"the second of two": {func(req *http.Request) (*http.Response, error) {
			_, err := (&http.Transport{}).RoundTrip(req)
			require.Error(t, err)
			return nil, errRefused
		}, storage.Ambiguous},
		"neither reply nor error": {func(*http.Request) (*http.Response, error) { return nil, nil }, storage.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			r := put(t, taken.URL+"/k?s=1", test.next, audio(10)).Do(t.Context())
			require.Equal(t, test.kind, r.Outcome, "%v", r.Err)
		})
	}
}
