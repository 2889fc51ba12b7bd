package minutes_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Only Reveal returns a presigned URL with its query.
func TestPresignedURL_RevealedOnRequestOnly(t *testing.T) {
	t.Parallel()
	const whole = "https://user:pass@storage.example/a%2Fb/k?" + testkit.PresignedQuery
	u := testkit.Presigned(whole)
	require.Equal(t, whole, u.Reveal())
	require.Equal(t, "https://storage.example/a%2Fb/k?***", u.String())
	require.Equal(t, "https://storage.example/a%2Fb/k?***", fmt.Sprintf("%d", u))
	require.Equal(t, "?***", testkit.Presigned("://%zz?"+testkit.PresignedQuery).String())
	require.Empty(t, minutes.PresignedURL{}.Reveal())
	require.Empty(t, minutes.PresignedURL{}.String())

	target := minutes.UploadTarget{UploadURL: u, ExpiresIn: 900, Method: "PUT"}
	text, err := json.Marshal(target)
	require.NoError(t, err)
	require.JSONEq(t, `{"upload_url":"https://storage.example/a%2Fb/k?***","expires_in":900,"method":"PUT"}`, string(text))
	var again minutes.UploadTarget
	require.ErrorContains(t, json.Unmarshal(text, &again), "PresignedURL.Reveal", "a masked URL is not accepted as a whole one")
	deliberate, err := json.Marshal(map[string]string{"upload_url": target.UploadURL.Reveal()})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(deliberate, &again))
	require.Equal(t, whole, again.UploadURL.Reveal())
}
