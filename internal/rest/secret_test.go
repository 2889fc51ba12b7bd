package rest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMask_RemovesSecrets(t *testing.T) {
	t.Parallel()
	mask := NewMask(apiKey, "tiny", "abc")
	for text, want := range map[string]string{
		"":                                   "",
		"nothing here":                       "nothing here",
		"a" + apiKey + "b " + apiKey:         "a***b ***",
		"/v1/" + url.PathEscape(apiKey):      "/v1/***",
		"?cursor=" + url.QueryEscape("tiny"): "?cursor=***",
		"tiny abc":                           "*** abc", // three letters are too short for a secret
	} {
		assert.Equal(t, want, mask.Text(text))
	}
	assert.Equal(t, "x", NewMask("").Text("x"))
}

// A Mask learns further secrets, and forgets the oldest of too many.
func TestMask_LearnsSecrets(t *testing.T) {
	t.Parallel()
	mask := NewMask("first")
	other := mask.With("query")
	mask.Add("second")
	assert.Equal(t, "*** *** query", mask.Text("first second query"))
	assert.Equal(t, "*** second ***", other.Text("first second query"))
	for i := range maxSecrets {
		mask.Add(fmt.Sprintf("later_%04d", i))
	}
	assert.Equal(t, "first second *** ***", mask.Text("first second later_0000 later_0099"))
}

// Texts that others can make long are cut, so that they fit a line of a log and an attribute of a span.
func TestMask_Label(t *testing.T) {
	t.Parallel()
	mask := NewMask(apiKey)
	assert.Equal(t, "req_***", mask.Label("req_"+apiKey))
	assert.Equal(t, strings.Repeat("x", 128), mask.Label(strings.Repeat("x", 128)))
	assert.Equal(t, strings.Repeat("x", 127)+"…", mask.Label(strings.Repeat("x", 127)+"öö"), "no half characters")
}

func TestMask_Header(t *testing.T) {
	t.Parallel()
	sent := http.Header{
		"Set-Cookie": {"session=1"},
		"Location":   {"https://x/a?Signature=feed"},
		"X-Echo":     {"got " + apiKey},
	}
	assert.Equal(t, http.Header{"Location": {"https://x/a"}, "X-Echo": {"got ***"}}, NewMask(apiKey).Header(sent))
	assert.Equal(t, "session=1", sent.Get("Set-Cookie"), "the response's own header is unchanged")
}

func TestMask_Err(t *testing.T) {
	t.Parallel()
	mask := NewMask(apiKey)
	assert.NoError(t, mask.Err(nil))
	dial := &net.OpError{Op: "dial", Err: io.EOF}
	assert.Equal(t,
		error(dial),
		mask.Err(&url.Error{Op: "Get", URL: "https://x?" + apiKey, Err: &url.Error{Op: "Get", URL: apiKey, Err: dial}}),
	)
	clean := mask.Err(fmt.Errorf("lost %s: %w", apiKey, io.EOF))
	require.EqualError(t, clean, "lost ***: EOF")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", clean, clean, clean), apiKey)
}

// An error may quote only a part of an upload URL, so each part that could be a secret is masked by
// itself.
func TestQuerySecrets_AreMaskedOneByOne(t *testing.T) {
	t.Parallel()
	const id = "AKIAIOSFODNN7EXAMPLE"
	const signature = "feedfacecafebeef0123456789abcdef"
	u, err := url.Parse(
		"https://x/k?X-Amz-Credential=" + id + "%2F20261120%2Fs3&X-Amz-Expires=900&X-Amz-Signature=" + signature,
	)
	require.NoError(t, err)
	mask := NewMask(QuerySecrets(u)...)
	for _, secret := range []string{u.RawQuery, id, id + "/20261120/s3", signature} {
		assert.Equal(t, "x *** y", mask.Text("x "+secret+" y"))
	}
	assert.Equal(t, "900", mask.Text("900"))
}
