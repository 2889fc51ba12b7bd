package minutes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// fmt and slog show the URL without its query, and JSON refuses it.
func TestPresignedURL_ShowsNoQuery(t *testing.T) {
	t.Parallel()
	const whole = "https://storage.example/a%2Fb/k?X-Amz-Signature=feedface"
	for from, want := range map[string]string{
		whole: "https://storage.example/a%2Fb/k?***",
		"https://user:feedface@storage.example/k": "https://storage.example/k?***",
		"://%zz?feedface":                         "?***",
		"":                                        "",
	} {
		u := testkit.Presigned(from)
		require.Equal(t, from, u.Reveal())
		require.Equal(t, want, fmt.Sprint(u))
		target := &minutes.UploadTarget{UploadURL: u}
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, nil))
		log.Info("", "url", u, "target", target)
		assert.Contains(t, out.String(), want)
		for _, verb := range []string{"%v", "%+v", "%#v", "%q", "%x"} {
			fmt.Fprintf(&out, verb+verb+verb, u, target, struct{ u minutes.PresignedURL }{u})
		}
		assert.NotContains(t, out.String(), "feedface")
		for _, v := range []any{u, target} {
			_, err := json.Marshal(v)
			require.ErrorContains(t, err, "PresignedURL.Reveal")
			require.NotContains(t, err.Error(), "feedface")
		}
	}
	require.Empty(t, minutes.PresignedURL{}.Reveal())
}
