package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPage_DescribesAnotherSender(t *testing.T) {
	t.Parallel()
	const key = "feedfacecafebeef"
	for name, test := range map[string]struct{ server, body, want string }{
		"title": {
			"nginx", "<html><head><title>400 No required SSL\n certificate was sent</title></head><body><h1>x",
			`storage.example (nginx) sent "400 No required SSL certificate was sent"`,
		},
		"no title": {
			"", "<html><body><h1>503 Service Unavailable</h1>\nNo server is available.\n</body></html>",
			`storage.example sent "503 Service Unavailable"`,
		},
		"blank title": {"", "<title> </title><h1>Please log in</h1>", `storage.example sent "Please log in"`},
		"no heading":  {"", "<html>Please log in</html>", `storage.example sent "<html>Please log in</html>"`},
		"text":        {"", "\n too busy \r\nreally", `storage.example sent "too busy really"`},
		"a secret":    {key, "<title>denied: " + key + "</title>", `storage.example (***) sent "denied: ***"`},
		"a secret at the cut": {
			"", strings.Repeat("x", 196) + key, `storage.example sent "` + strings.Repeat("x", 196) + `***"`,
		},
		"long":     {"", strings.Repeat("ü", 300), `storage.example sent "` + strings.Repeat("ü", 200) + `"`},
		"controls": {"", "a\x1b[31mb", `storage.example sent "a\x1b[31mb"`},
		"empty":    {"", "", "storage.example sent no text"},
		"blanks":   {"nginx", " \r\n", "storage.example (nginx) sent no text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			if test.server != "" {
				header.Set("Server", test.server)
			}
			require.Equal(t, test.want, NewMask(key).Page("storage.example", header, []byte(test.body)))
		})
	}
}
