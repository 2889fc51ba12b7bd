package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Secrets that must never show, and a query that contains them.
const (
	SecretKey = "key_Sw0rd/f1sh+Sw0rdf1sh=="
	SecretSig = "feedfacecafebeef0123456789abcdef"
	SecretID  = "AKIAFIREDRILL0042"

	PresignedQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + SecretID + "%2F20261120%2Flocal%2Fs3%2Faws4_request&X-Amz-Expires=900&X-Amz-Signature=" + SecretSig
)

// RequireClean requires a text without the secrets above.
func RequireClean(t testing.TB, what, text string) {
	t.Helper()
	for _, secret := range append(Spelled(SecretKey), SecretSig, SecretID) {
		require.NotContains(t, text, secret, what)
		require.NotContains(t, text, fmt.Sprintf("%x", secret), what)
	}
}

// Spelled returns a key as it is and as it is in a URL.
func Spelled(key string) []string {
	return []string{key, url.QueryEscape(key), url.PathEscape(key)}
}

// Shown returns a value as fmt, slog and encoding/json show it.
func Shown(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, opts), slog.NewJSONHandler(&b, opts)} {
		slog.New(h).Debug("value", "v", v, slog.Group("group", "v", v))
	}
	if text, err := json.Marshal(v); err == nil {
		b.Write(text)
	}
	return strings.ReplaceAll(b.String(), `\u0026`, "&")
}
