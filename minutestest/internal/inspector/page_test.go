package inspector

import (
	"io"
	"maps"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page runs nothing but what it is made of.
func TestPolicy(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	servePage(w, nil)
	policy := w.Header().Get("Content-Security-Policy")
	page := w.Body.String()
	assert.NotContains(t, page, "{{")
	for what, expression := range map[string]string{"script": `(?s)<script>(.*?)</script>`, "style": `(?s)<style>(.*?)</style>`} {
		found := regexp.MustCompile(expression).FindAllStringSubmatch(page, -1)
		require.Len(t, found, 1)
		assert.Contains(t, policy, what+"-src '"+hash(found[0][1])+"'")
	}
	for _, part := range []string{"default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		assert.Contains(t, policy, part)
	}
	assert.NotContains(t, policy, "unsafe")
	assert.Contains(t, page, `content="`+strings.TrimSuffix(policy, "; frame-ancestors 'none'")+`"`, "a report has it, too")
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

// The page contains nothing that the policy rejects, and nothing that turns text into markup.
func TestPage_ScriptsObeyPolicy(t *testing.T) {
	t.Parallel()
	for _, name := range scripts {
		assert.NotRegexp(t, `innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function|javascript:|https?://[^w]`, file(name), name)
	}
	assert.NotRegexp(t, ` (on[a-z]+|style|src)=`, file("page.html"))
}

// Data cannot end the element around it.
func TestWrite_EscapesData(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	details := map[string]any{"meetings/</script>": "</script><script>"}
	require.NoError(t, write(&page, "<!-- </script>", maps.All(details)))
	assert.Equal(t, 3, strings.Count(page.String(), "</script"))
	assert.Equal(t, 3, strings.Count(page.String(), "<script"))
	require.Error(t, write(io.Discard, make(chan int), maps.All(details)))
	require.Error(t, write(io.Discard, 1, maps.All(map[string]any{"x": make(chan int)})))
}
