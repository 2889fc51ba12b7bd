package upload

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

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// If a proxy rejects the connection, the error names the proxy without its password, and nothing is
// stored.
func TestAttempt_NamesRejectingProxy(t *testing.T) {
	t.Parallel()
	respond := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, test := range map[string]struct {
		proxy http.HandlerFunc // nil: no proxy is running
		text  string
	}{
		"not running": {nil, "connection refused"},
		"403":         {respond(403), "Forbidden"},
		"407":         {respond(407), "Proxy Authentication Required"},
		"502":         {respond(502), "Bad Gateway"},
		"closes":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
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
				r := put(t, "https://storage.example/k?s=1", next, audio(10)).attempt(t.Context())
				want := temporary
				if !wrapped && (name == "403" || name == "407") {
					want = permanent
				}
				require.Equal(t, want, judge(r), "%v", r.Err)
				if !wrapped {
					require.ErrorContains(t, r.Err, addr)
				}
				require.ErrorContains(t, r.Err, test.text)
				require.NotContains(t, r.Err.Error(), "pass-word")
			})
		}
	}
	t.Run("address cannot be used", func(t *testing.T) {
		t.Parallel()
		next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New(`bad "http://user:pass-word@proxy"`) }}
		r := put(t, "https://storage.example/k?s=1", next, audio(10)).attempt(t.Context())
		require.Equal(t, temporary, judge(r))
		require.NotContains(t, r.Err.Error(), "pass-word")
	})
}

// An upload does not retry if storage's certificate is invalid.
func TestAttempt_InvalidCertificateIsPermanent(t *testing.T) {
	t.Parallel()
	o := put(t, "https://storage.example/k?s=1", roundTripper(func(*http.Request) (*http.Response, error) { return nil, testbase.ErrUntrusted }), audio(10)).attempt(t.Context())
	require.Equal(t, permanent, judge(o))
	require.ErrorIs(t, o.Err, testbase.ErrUntrusted)
}

// An attempt without a response stored nothing if it sent no byte, whatever the error. Otherwise
// storage may have the audio.
func TestAttempt_WithoutResponseMayHaveStored(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]error{
		"refused": errRefused, "reset": syscall.ECONNRESET, "closed": &net.OpError{Op: "write", Err: io.ErrClosedPipe}, "neither response nor error": nil,
	} {
		for n, want := range map[int64]verdict{0: temporary, 5: unclear, 10: unclear} {
			t.Run(fmt.Sprint(name, " after ", n), func(t *testing.T) {
				t.Parallel()
				o := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
					_, _ = io.CopyN(io.Discard, req.Body, n)
					return nil, lost
				}), audio(10)).attempt(t.Context())
				require.Equal(t, n, o.Sent)
				require.Equal(t, want, judge(o), "%v", o.Err)
			})
		}
	}
}
