package testkit

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// What must never be seen, and what is made of it.
const (
	SecretKey = "key_Sw0rdf1shSw0rdf1sh"
	SecretSig = "feedfacecafebeef0123456789abcdef"
	SecretID  = "AKIAFIREDRILL0042"

	PresignedQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + SecretID + "%2F20261120%2Flocal%2Fs3%2Faws4_request&X-Amz-Expires=900&X-Amz-Signature=" + SecretSig
)

// RequireClean wants a text without the secrets above.
func RequireClean(t testing.TB, what, text string) {
	t.Helper()
	for _, secret := range []string{SecretKey, SecretSig, SecretID, url.QueryEscape(SecretKey)} {
		require.NotContains(t, text, secret, what)
	}
}

// RequireCleanError looks at an error, and at each it wraps, in every way.
func RequireCleanError(t testing.TB, err error) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		text := fmt.Sprintf(verb, err)
		if verb == "%x" { // which hides a secret from a search, but not from a reader
			for _, secret := range []string{SecretKey, SecretSig, SecretID} {
				require.NotContains(t, text, fmt.Sprintf("%x", secret))
			}
		}
		RequireClean(t, fmt.Sprintf("%s of %T", verb, err), text)
	}
	RequireClean(t, "slog", Logged(err))
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			RequireCleanError(t, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			RequireCleanError(t, inner)
		}
	}
}

// Logged is what slog makes of a value, in both its forms.
func Logged(v any) string {
	var b bytes.Buffer
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, opts), slog.NewJSONHandler(&b, opts)} {
		slog.New(h).Debug("value", "v", v, slog.Group("group", "v", v))
	}
	return b.String()
}
