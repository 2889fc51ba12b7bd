package secret

import (
	"context"
	"errors"
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

const key = `key_a/b+c=d"e\f&Zz09`

func TestText_MasksEverySpelling(t *testing.T) {
	t.Parallel()
	mask := Mask{key, "tiny", "abc"}
	for text, want := range map[string]string{
		"":                          "",
		"nothing here":              "nothing here",
		key:                         "***",
		"a" + key + "b " + key:      "a***b ***",
		"x=" + url.QueryEscape(key): "x=***",
		"x=" + url.PathEscape(key):  "x=***",
		fmt.Sprintf("%q", key):      `"***"`,
		fmt.Sprintf("%q", "x "+key): `"x ***"`,
		fmt.Sprintf("%q", fmt.Sprintf("%q", key)):               `"\"***\""`,
		url.QueryEscape(url.QueryEscape(key)):                   "***",
		"a%2f " + `key_a%2fb%2Bc%3dd%22e%5cf%26Zz09`:            "a%2f ***",
		`key_a\/b\u002bc\u003Dd\"e\\f\u0026Zz09`:                "***",
		`key&#95;a&#47;b&#x2B;c&equals;d&quot;e&#92;f&amp;Zz09`: "***",
		`key\x5fa/b+c=d\x22e\x5cf&Zz09`:                         "***",
		"key_a/b+c=d":                                           "key_a/b+c=d",          // a part is not the whole
		"tiny tinytown abc abcd":                                "*** ***town abc abcd", // three letters are too short for a secret
		strings.Repeat(key+"\n", 3):                             "***\n***\n***\n",
		"KEY_A/B+C=D\"E\\F&ZZ09":                                "KEY_A/B+C=D\"E\\F&ZZ09", // letters are what they are
	} {
		assert.Equal(t, want, mask.Text(text), "%s", text)
	}
	assert.Equal(t, "x", Mask(nil).Text("x"))
	assert.Equal(t, "/+==", Mask{"/+=="}.Text("/+=="), "nothing to recognize it by")
	far := "key_a" + strings.Repeat(" ", 21) + `/b+c=d"e\f&Zz09`
	assert.Equal(t, far, mask.Text(far), "words far apart are not the secret")
}

func TestMayHold_FindsRunsInOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, secret string
		want         bool
	}{
		{"", "a", false}, {"x a%2Fb x", "a/b", true}, {"b a", "a/b", false}, {"ab", "a/b", true},
		{"mtg_0123", "key_0123", false}, {"anything", "/+=", false}, {"aab", "a+a+b", true}, {"ab", "a+a+b", false},
	} {
		assert.Equal(t, test.want, mayHold(test.text, test.secret), "%s in %s", test.secret, test.text)
	}
}

func TestWithQuery_AddsThePresignedSecrets(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://store.example/k?Credential=AKIAFIREDRILL0042%2F20261120%2Flocal&Expires=900&Signature=feed%2Bface%2Fcafe%3D")
	require.NoError(t, err)
	mask := Mask{key}.WithQuery(u)
	for _, text := range []string{u.RawQuery, "feed+face/cafe=", "feed%2bface%2fcafe%3d", "AKIAFIREDRILL0042", key} {
		assert.NotContains(t, mask.Text("<"+text+">"), text)
	}
	assert.Equal(t, "900 local 20261120", mask.Text("900 local 20261120"))
	assert.Equal(t, []string{key}, []string(Mask{key}), "the first mask is unchanged")
}

func TestHeader_HidesSecrets(t *testing.T) {
	t.Parallel()
	sent := http.Header{"Set-Cookie": {"session=1"}, "Location": {"https://x/a?Signature=feed"}, "X-Echo": {"got " + key}, "Server": {"nginx"}}
	want := http.Header{"Location": {"https://x/a"}, "X-Echo": {"got ***"}, "Server": {"nginx"}}
	assert.Equal(t, want, Mask{key}.Header(sent))
	assert.Equal(t, "session=1", sent.Get("Set-Cookie"), "the response's own header is unchanged")
}

// held is an error that prints only its text and holds more.
type held struct{ text, more string }

func (h held) Error() string { return h.text }

func TestErr_HidesCausesThatShowASecret(t *testing.T) {
	t.Parallel()
	mask := Mask{key}
	assert.NoError(t, mask.Err(nil))

	clean := mask.Err(&url.Error{Op: "Get", URL: "https://x?" + key, Err: &url.Error{Op: "Get", URL: key, Err: &net.OpError{Op: "dial", Err: io.EOF}}})
	assert.Equal(t, "dial: EOF", clean.Error())
	require.ErrorIs(t, clean, io.EOF)
	_, ok := errors.AsType[*net.OpError](clean)
	assert.True(t, ok)

	for name, err := range map[string]error{
		"shown": held{"lost " + key, ""}, "held": held{"lost", key}, "wrapped": fmt.Errorf("lost: %w", held{"x", key}),
		"joined": errors.Join(context.Canceled, held{"lost", key}),
	} {
		clean := mask.Err(err)
		_, ok := errors.AsType[held](clean)
		assert.False(t, ok, "%s: an error that shows a secret is not returned", name)
		require.ErrorIs(t, clean, err)
		for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
			assert.NotContains(t, fmt.Sprintf(verb, clean), key[:12], name)
		}
	}
}
