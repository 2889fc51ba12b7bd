package engine

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBody_ReportsAllFaults: a body of a mebibyte whose fields are all at fault costs no
// more than reading it, and the response stays short.
func TestBody_ReportsAllFaults(t *testing.T) {
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

// TestBody_ShortensLongValuesInErrors: a field's name can be as long as the body.
func TestBody_ShortensLongValuesInErrors(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("é", 100_000)
	r := newRig(t).do("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","`+name+`":"\u0000"}`).is(400, "INVALID_REQUEST")
	assert.Equal(t, []any{strings.Repeat("é", 64) + "…"}, r.detail("fields"))
	assert.Less(t, r.Body.Len(), 4096)
}

// White space around the tokens of a body has no meaning.
func TestBody_MayContainWhiteSpace(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for _, space := range []string{"", " ", "\n", "\r\n", "\t", " \t\r\n "} {
		body := strings.ReplaceAll(`~{~"title"~:~"x"~,~"u"~:~[~1~,~true~,~{~"v"~:~-1.5e3~}~]~,~"w"~:~7~,~"project_id"~:~null~,~"participant_ids"~:~[~"emp_ada"~,~"emp_bob"~]~,~"date"~:~"2026-01-01"~,~"time"~:~null~}~`, "~", space)
		r := s.do("ci", "POST /v1/meetings", body).is(201, "")
		assert.Equal(t, `["emp_ada","emp_bob"]`, r.field("participant_ids"))
		assert.Equal(t, "null", r.field("project_id"))
	}
}

// Every operation rejects a body that is invalid or too long in the same way,
// and does nothing (D5, D21).
func TestBody_IsCheckedByEveryOperation(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", `"participant_ids":["emp_ada"]`)
	state := func() (all string) {
		for _, what := range []string{"employees", "projects", "vocabulary", "meetings"} {
			all += s.do("ci", "GET /v1/"+what, "").Body.String()
		}
		return all
	}
	before := state()
	for _, what := range []string{
		"POST /v1/employees", "POST /v1/meetings", "PATCH /v1/meetings/" + id, "PUT /v1/meetings/" + id + "/participants", "POST /v1/meetings/" + id + "/upload-url",
		"POST /v1/projects", "PUT /v1/vocabulary", "POST /v1/vocabulary/terms",
	} {
		for _, body := range []string{``, ` `, `[]`, `null`, `{`, `"x"`, `{} {}`, `{"a":1,}`} {
			assert.Empty(t, s.do("ci", what, body).is(400, "INVALID_REQUEST").detail("fields"), "%s %s", what, body)
		}
		s.do("ci", what, "{}"+strings.Repeat(" ", MaxBodyBytes-1)).is(413, "BAD_REQUEST")
	}
	assert.Equal(t, before, state())
}

// TestBody_MayArriveSlowly: a meeting is created when all of it has arrived.
func TestBody_MayArriveSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		r := s.do("ci", "POST /v1/meetings", "", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"title":"x",`), sleeper(time.Minute), strings.NewReader(`"date":"2026-01-01"}`))), -1
		}).is(201, "")
		assert.Equal(t, fmt.Sprint(time.Now().Unix()), r.field("created_at"))
	})
}

// sleeper is a reader that takes its time to end.
type sleeper time.Duration

func (s sleeper) Read([]byte) (int, error) { time.Sleep(time.Duration(s)); return 0, io.EOF }

// TestBody_HasALimit is D21: a body of exactly 1 MiB is taken, whether it says so or
// not, and one of a byte more is not.
func TestBody_HasALimit(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	body := `{"title":"x","date":"2026-01-01"}`
	for size, want := range map[int]int{MaxBodyBytes: 201, MaxBodyBytes + 1: 413} {
		padded := body + strings.Repeat(" ", size-len(body))
		require.Equal(t, want, s.do("ci", "POST /v1/meetings", padded).Code, size)
		require.Equal(t, want, s.do("ci", "POST /v1/meetings", padded, chunked).Code, "%d in chunks", size)
	}
}

// TestBody_ReportsManyUnknownMembers: nor does a response grow with a list of ids.
func TestBody_ReportsManyUnknownMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`"` + strings.Repeat("x", 1000) + `"`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"%x"`, i)
	}
	r := newRig(t).do("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","shared_with":[`+b.String()+`]}`).is(400, "INVALID_SHARED_WITH")
	assert.Len(t, r.detail("invalid"), defaultMaxMembers)
	assert.Less(t, r.Body.Len(), 16<<10)
}
