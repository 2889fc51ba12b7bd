package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManyFaults: a body of a mebibyte whose fields are all at fault costs no
// more than reading it, and the answer stays short.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"title":"\u0000"`)
	for i := 0; b.Len() < MaxBodyBytes-100; i++ {
		fmt.Fprintf(&b, `,"%x":"\u0000"`, i)
	}
	r := newRig(t).do("ci", "POST /v1/meetings", b.String()+"}").is(400, "INVALID_REQUEST")
	fields := r.detail("fields").([]any)
	require.Less(t, len(fields), 50)
	assert.Subset(t, fields, []any{"title", "date"}, "what the interface knows is named in any case")
	assert.Less(t, r.Body.Len(), 4096)
}

// TestLongFault: a field's name can be as long as the body.
func TestLongFault(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("é", 100_000)
	r := newRig(t).do("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","`+name+`":"\u0000"}`).is(400, "INVALID_REQUEST")
	assert.Equal(t, []any{strings.Repeat("é", 64) + "…"}, r.detail("fields"))
	assert.Less(t, r.Body.Len(), 4096)
}

// TestBodyLimit is D21: a body of exactly 1 MiB is taken, whether it says so or
// not, and one of a byte more is not.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	body := `{"title":"x","date":"2026-01-01"}`
	for size, want := range map[int]int{MaxBodyBytes: 201, MaxBodyBytes + 1: 413} {
		padded := body + strings.Repeat(" ", size-len(body))
		require.Equal(t, want, s.do("ci", "POST /v1/meetings", padded).Code, size)
		require.Equal(t, want, s.do("ci", "POST /v1/meetings", padded, chunked).Code, "%d in chunks", size)
	}
}

// TestManyUnknownMembers: nor does an answer grow with a list of ids.
func TestManyUnknownMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`"` + strings.Repeat("x", 1000) + `"`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"%x"`, i)
	}
	r := newRig(t).do("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","shared_with":[`+b.String()+`]}`).is(400, "INVALID_SHARED_WITH")
	assert.Len(t, r.detail("invalid"), defaultMaxMembers)
	assert.Less(t, r.Body.Len(), 16<<10)
}
