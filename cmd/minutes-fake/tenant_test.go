package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// organisation returns the program as a test sees it that has made an organisation for itself.
func (p *program) organisation(body string) *program {
	p.t.Helper()
	made := p.control("POST /organisations " + body)
	return &program{t: p.t, env: map[string]string{
		"MINUTES_BASE_URL":    p.env["MINUTES_BASE_URL"],
		"MINUTES_CONTROL_URL": made["control_url"].(string),
		"id":                  made["id"].(string),
	}, key: made["keys"].([]any)[0].(string)}
}

// Two tests with an organisation each see nothing of each other, and nothing of the program's.
func TestOrganisations_AreApart(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none", "-seed", "7")
	before := p.control("GET /world")
	a := p.organisation("")
	b := p.organisation(`{"credits":0}`)
	id := a.meeting("Weekly")
	other := b.create("Weekly")
	assert.Equal(t, id, other, "the seed is the same")
	a.control(`POST /scripts {"title":"Weekly","hold":"transcribing"}`)
	a.control(`POST /faults {"match":{"operation":"usage.get"},"faults":[{"kind":"rate_limit"}]}`)
	a.control(`POST /clock {"advance":"168h"}`)
	a.polledTwice()
	for _, others := range []*program{b, p} {
		for _, list := range []string{"scripts", "faults"} {
			assert.Empty(t, others.control("GET /" + list)[list])
		}
		assert.Equal(t, "0s", others.control("GET /clock")["ahead"])
		assert.Empty(t, others.control("GET /violations")["violations"])
		status, _ := others.api("GET /v1/usage")
		assert.Equal(t, http.StatusOK, status)
	}
	_, usage := b.api("GET /v1/usage")
	assert.InDelta(t, 0, usage["credits_remaining"], 0)
	assert.Empty(t, p.control("GET /meetings")["meetings"])
	b.control("POST /reset")
	p.control("POST /reset")
	assert.Len(t, a.control("GET /meetings")["meetings"], 2, "a reset is for one organisation")
	assert.Len(t, a.control("GET /violations")["violations"], 1)
	assert.Empty(t, b.control("GET /meetings")["meetings"])
	assert.Equal(t, before, p.control("GET /world"))

	p.control("DELETE /organisations/" + a.env["id"])
	status, _ := a.api("GET /v1/usage")
	assert.Equal(t, http.StatusUnauthorized, status)
	status, _ = a.ask("MINUTES_CONTROL_URL", "GET /world")
	assert.Equal(t, http.StatusNotFound, status)
	left := p.control("GET /organisations")["organisations"].([]any)
	require.Len(t, left, 1)
	assert.Equal(t, b.env["id"], left[0].(map[string]any)["id"])
}

// A key and an organisation have one owner, whoever asks for them, and however.
func TestOrganisations_ShareNoKeyAndNoID(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	a := p.organisation(`{"id":"org_mine","keys":[{"secret":"key_mine","integration_id":"int_ci"}]}`)
	assert.Equal(t, "org_mine", a.env["id"])
	const inUse = "is in use, by the program's world or another POST /organisations"
	for from, list := range map[*program][]string{
		p: {
			`POST /organisations {"id":"org_acme"}`,
			`POST /organisations {"id":"org_mine"}`,
			`POST /organisations {"keys":[{"secret":"key_ci","integration_id":"int_ci"}]}`,
			`PATCH /world {"organisations":[{"id":"org_acme",` +
				`"keys":[{"secret":"key_mine","integration_id":"int_ci"}]}]}`,
			`PUT /world {"organisations":[{"id":"org_mine"}]}`,
		},
		a: {
			`PATCH /world {"organisations":[{"id":"org_mine","keys":[{"secret":"key_ci","integration_id":"int_ci"}]}]}`,
			`PUT /world {"organisations":[{"id":"org_acme"}]}`,
		},
	} {
		for _, what := range list {
			status, object := from.ask("MINUTES_CONTROL_URL", what)
			assert.Equal(t, http.StatusBadRequest, status, what)
			problem, _ := object["problem"].(map[string]any)
			assert.Contains(t, problem["message"], inUse, what)
		}
	}
	a.control(`PATCH /world {"organisations":[{"id":"org_mine",` +
		`"keys":[{"secret":"key_new","integration_id":"int_ci"}]}]}`)
	a.key = "key_new"
	status, _ := a.api("GET /v1/usage")
	assert.Equal(t, http.StatusOK, status, "a key that was added later")
	status, object := p.ask("MINUTES_CONTROL_URL", `POST /organisations {"credits":-1}`)
	assert.Equal(t, http.StatusBadRequest, status, "%v", object)
	assert.Len(t, p.control("GET /organisations")["organisations"], 1)
}

// With -strict, what an organisation did wrong counts, whether it was deleted or not.
func TestStrict_CountsOrganisations(t *testing.T) {
	t.Parallel()
	for _, isDeleted := range []bool{false, true} {
		p := launch(t, "-log", "none", "-strict")
		a := p.organisation("")
		a.polledTwice()
		if isDeleted {
			p.control("DELETE /organisations/" + a.env["id"])
		}
		assert.Equal(t, exitStrict, p.stop())
		assert.Contains(t, p.stderr.String(), "violation (poll)")
	}
}

func TestRequests_AreFiltered(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	id := p.create("Weekly")
	p.create("Standup")
	p.api("GET /v1/meetings/" + id)
	p.api("GET /v1/meetings/mtg_x")
	for query, want := range map[string]int{
		"": 4, "title=Weekly": 2, "meeting_id=" + id: 2, "status=404": 1, "status=201": 2, "caller=int_ci": 4,
		"caller=emp_ada": 0, "title=Weekly&status=200": 1, "operation=meetings.get&status=404&wait=1m": 1,
	} {
		assert.Len(t, p.control("GET /requests?" + query)["requests"], want, query)
	}
	p.polledTwice()
	for query, want := range map[string]int{"": 1, "title=Held": 1, "title=Weekly": 0, "caller=int_ci": 1} {
		assert.Len(t, p.control("GET /violations?" + query)["violations"], want, query)
	}
	for _, query := range []string{"status=x", "wait=x", "wait=2m", "wait=-1s"} {
		status, _ := p.ask("MINUTES_CONTROL_URL", "GET /requests?"+query)
		assert.Equal(t, http.StatusBadRequest, status, query)
	}
}

// A client that waits does not keep others waiting.
func TestRequests_AnswerWhenAMatchArrives(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	assert.Empty(t, p.control("GET /requests?operation=usage.get&wait=1ms")["requests"])
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, found := p.ask("MINUTES_CONTROL_URL", "GET /requests?operation=usage.get&wait=1m")
		assert.Len(t, found["requests"], 1)
	})
	p.control("GET /health")
	p.api("GET /v1/usage")
	waiting.Wait()
}

// The page of an organisation asks for its events beside itself.
func TestInspector_OfAnOrganisation(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	a := p.organisation("")
	a.meeting("Weekly")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.env["MINUTES_CONTROL_URL"], http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.True(t, strings.HasSuffix(resp.Request.URL.Path, "/"), "%s", resp.Request.URL)
}
