package testkit

import (
	"bytes"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
	}
}

// Spelled returns a key, plain and in the encodings in which others may repeat it.
func Spelled(key string) []string {
	inJSON := strings.NewReplacer("/", `\/`, "+", `\u002b`, "=", `\u003D`).Replace(key)
	return []string{
		key, strconv.Quote(key), url.QueryEscape(key), url.PathEscape(key), url.QueryEscape(url.QueryEscape(key)),
		strings.NewReplacer("/", "%2f", "+", "%2b", "=", "%3d").Replace(key),
		inJSON, strings.ReplaceAll(inJSON, `\`, `\\`),
		html.EscapeString(key), strings.ReplaceAll(html.EscapeString(key), "+", "&#43;"), strings.NewReplacer("/", "&#47;", "+", "&#x2B;", "=", "&equals;").Replace(key),
	}
}

// RequireCleanError requires that an error, and each error that it wraps, is clean in every format.
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

// Logged returns how slog writes a value as text and as JSON.
func Logged(v any) string {
	var b bytes.Buffer
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, opts), slog.NewJSONHandler(&b, opts)} {
		slog.New(h).Debug("value", "v", v, slog.Group("group", "v", v))
	}
	return b.String()
}

// Shown returns a value as every printer shows it: the diff of a failed assertion
// (which reads unexported fields and calls no methods), all that reflection reaches,
// fmt's verbs, and slog.
func Shown(v any) string {
	var b strings.Builder
	assert.Equal(recorder{&b}, []any{v, 1}, []any{v, 2})
	assert.Equal(recorder{&b}, v, reflect.Zero(reflect.TypeOf(v)).Interface())
	Dump(&b, reflect.ValueOf(v), make(map[uintptr]bool))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	return b.String() + Logged(v)
}

// recorder records the message of an assertion.
type recorder struct{ *strings.Builder }

func (r recorder) Errorf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

// Dump writes every string and every byte slice that reflection can reach. It calls no
// methods.
func Dump(b *strings.Builder, v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.String:
		fmt.Fprintln(b, v.String())
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] {
			seen[v.Pointer()] = true
			Dump(b, v.Elem(), seen)
		}
	case reflect.Interface:
		if !v.IsNil() {
			Dump(b, v.Elem(), seen)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			Dump(b, field, seen)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				b.WriteByte(byte(v.Index(i).Uint()))
			}
			return
		}
		for i := range v.Len() {
			Dump(b, v.Index(i), seen)
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			Dump(b, each.Key(), seen)
			Dump(b, each.Value(), seen)
		}
	}
}
