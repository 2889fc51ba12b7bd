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
		"title":               {"nginx", "<html><head><title>400 No required SSL\n certificate was sent</title></head><body><h1>x", `storage.example (nginx) sent "400 No required SSL certificate was sent"`},
		"no title":            {"", "<!DOCTYPE html><style>p {}</style>\n<script>run()</script>\n <h1>Please log in</h1><p>now", `storage.example sent "Please log in"`},
		"text":                {"", "\n too busy \r\nreally", `storage.example sent "too busy"`},
		"entities":            {"", "<title>Tom &amp; Co</title>", `storage.example sent "Tom & Co"`},
		"a secret":            {key, "<title>denied: " + key + "</title>", `storage.example (***) sent "denied: ***"`},
		"a secret at the cut": {"", strings.Repeat("x", 76) + key, `storage.example sent "` + strings.Repeat("x", 76) + `***"`},
		"long":                {"", strings.Repeat("ü", 100), `storage.example sent "` + strings.Repeat("ü", 80) + `"`},
		"controls":            {"", "a\x1b[31mb", `storage.example sent "a\x1b[31mb"`},
		"empty":               {"", "", `storage.example sent ""`},
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
