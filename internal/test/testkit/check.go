package testkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

// RequireNothing requires the zero value, as every call returns it with an error.
func RequireNothing(t testing.TB, got any) {
	t.Helper()
	require.True(t, got == nil || reflect.ValueOf(got).IsZero(), "a value and an error: %#v", got)
}

// RequireError requires an *Error that names its request.
func RequireError(t testing.TB, err error, op Operation) *minutes.Error {
	t.Helper()
	failed, ok := err.(*minutes.Error)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, op.Method, failed.Method)
	require.Equal(t, op.Path, failed.Path)
	RequirePlain(t, err)
	return failed
}

// RequirePlain requires one line of moderate length, without messages of the JSON
// decoder.
func RequirePlain(t testing.TB, err error) {
	t.Helper()
	text := err.Error()
	require.True(t, strings.HasPrefix(text, "minutes: "), text)
	require.Less(t, len(text), 5000)
	require.NotContains(t, text, "\n")
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, Key)
	for _, raw := range []string{
		"invalid character",
		"unexpected end of JSON",
		"unmarshal",
		"%!",
		"<nil>",
		"looking for beginning",
	} {
		require.NotContains(t, text, raw)
	}
}

// RequireStatus requires an *Error or a *StorageError of that status.
func RequireStatus(t testing.TB, err error, status int) {
	t.Helper()
	if e, ok := errors.AsType[*minutes.StorageError](err); ok {
		require.Equal(t, status, e.StatusCode, "%v", err)
		return
	}
	e, ok := errors.AsType[*minutes.Error](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, status, e.StatusCode, "%v", err)
}

// RequireParamError requires a *ParamError that names the parameter in one short
// line and does not repeat the value.
func RequireParamError(t testing.TB, err error, param, value string) {
	t.Helper()
	bad, ok := errors.AsType[*minutes.ParamError](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, param, bad.Param)
	require.NotEmpty(t, bad.Reason)
	require.True(t, strings.HasPrefix(err.Error(), "minutes: "+param+": "), err.Error())
	require.NotContains(t, err.Error(), "\n")
	if len(value) > 3 {
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, bad), value)
	}
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
