package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Checks that need their own world, or another key, run only against the service in
// memory.

// corner runs checks against an in-memory service. Each difference fails the
// test.
func corner(t *testing.T, change func(*minutestest.Organisation), do func(*run)) {
	t.Helper()
	world := minutestest.DefaultWorld()
	if change != nil {
		change(&world.Organisations[0])
	}
	tg, found := inMemory(t, nil, minutestest.WithWorld(world)), &report{}
	skipped := tg.perform(context.Background(), &check{name: t.Name(), do: do}, found)
	require.Empty(t, skipped)
	for _, d := range found.list {
		t.Error(d)
	}
}

// with is r on another key.
func (r *run) with(key string) *run {
	tg, other := *r.target, *r
	tg.key = key
	other.target = &tg
	return &other
}

// D15: 1,000 members and 500 terms, unless set.
func TestDefaults_Are1000MembersAnd500Terms(t *testing.T) {
	t.Parallel()
	corner(t, func(o *minutestest.Organisation) {
		for len(o.Members) < 999 {
			o.Members = append(o.Members, minutestest.Member{ID: fmt.Sprintf("emp_%d", len(o.Members))})
		}
		o.Vocabulary = nil
	}, func(r *run) {
		r.is(r.send("POST /v1/employees", `{"name":"the thousandth"}`), 201, "Member")
		r.as(15).rejects(r.send("POST /v1/employees", `{"name":"one more"}`), 409, "MEMBER_LIMIT_EXCEEDED")

		terms := `"t0"`
		for n := 1; n < 500; n++ {
			terms += fmt.Sprintf(`,"t%d"`, n)
		}
		r.as(15).rejects(r.send("PUT /v1/vocabulary", `{"terms":[`+terms+`,"one more"]}`), 400, "INVALID_REQUEST")
		full := r.send("PUT /v1/vocabulary", `{"terms":[`+terms+`]}`)
		r.as(15).is(full, 200, "Vocabulary")
		r.as(15).that(integer(full.object, "max_terms") == 500, "max_terms is %v", full.object["max_terms"])
		r.as(15).rejects(r.send("POST /v1/vocabulary/terms", `{"term":"one more"}`), 400, "INVALID_REQUEST")
		r.as(15).is(r.send("POST /v1/vocabulary/terms", `{"term":"t7"}`), 200, "Vocabulary")
	})
}

// D24: a listing is in order of creation for any dates, even with a date filter.
func TestListing_IsInOrderOfCreation(t *testing.T) {
	t.Parallel()
	corner(t, nil, func(r *run) {
		var ids []any
		for _, date := range []string{"2026-03-02", "2027-01-01", "2020-06-30", "2026-03-01"} {
			m := r.send("POST /v1/meetings", `{"title":"x","date":"`+date+`"}`)
			ids = append([]any{m.object["id"]}, ids...)
		}
		for _, query := range []string{"", "?date_from=2020-01-01&date_to=2030-01-01"} {
			var got []any
			for _, m := range r.send("GET /v1/meetings"+query, "").object["meetings"].([]any) {
				got = append(got, m.(map[string]any)["id"])
			}
			assert.Equal(t, ids, got)
		}
	})
}

// D25: callers who may not change a meeting do not learn that it has audio.
func TestUploadURL_ForbiddenBeforeHasAudio(t *testing.T) {
	t.Parallel()
	corner(t, nil, func(r *run) {
		m := r.send("POST /v1/meetings", `{"title":"x","date":"2026-03-02"}`)
		at := "POST /v1/meetings/" + m.text("id") + "/upload-url"
		target := r.send(at, `{"content_type":"audio/wav"}`)
		r.put(target.text("upload_url"), "audio/wav", []byte("x"))
		r.as(25).rejects(r.with("key_ben").send(at, `{"content_type":"audio/wav"}`), 403, "FORBIDDEN")
		r.as(11).rejects(r.with("key_ada").send(at, `{"content_type":"audio/wav"}`), 400, "BAD_REQUEST")
	})
}

// D25: of several templates without a default, the first is.
func TestTemplates_FirstIsDefault(t *testing.T) {
	t.Parallel()
	corner(t, func(o *minutestest.Organisation) {
		o.Templates = []minutestest.Template{{ID: "tpl_b"}, {ID: "tpl_a"}}
	}, func(r *run) {
		list := r.send("GET /v1/templates", "").object["templates"].([]any)
		r.as(25).that(list[0].(map[string]any)["is_default"] == true && list[1].(map[string]any)["is_default"] == false, "%v", list)
		m, done := r.create("")
		defer done()
		r.as(25).that(m.text("template_id") == "tpl_b", "the meeting has %s", m.text("template_id"))
	})
}

// D10: each upload URL stays valid if another one is requested later.
func TestUploadURL_StaysValid(t *testing.T) {
	t.Parallel()
	for chosen := range 3 {
		corner(t, nil, func(r *run) {
			m, done := r.create("")
			defer done()
			var targets []string
			for n := range 3 {
				rep := r.send("POST /v1/meetings/"+m.text("id")+"/upload-url", fmt.Sprintf(`{"content_type":"audio/x-%d"}`, n))
				targets = append(targets, rep.text("upload_url"))
			}
			sent := r.put(targets[chosen], fmt.Sprintf("audio/x-%d", chosen), []byte("x"))
			r.as(10).that(sent.status == 200, "%d %s", sent.status, sent.raw)
		})
	}
}
