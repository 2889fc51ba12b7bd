package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// nobody is a meeting that does not exist.
const nobody = "/v1/meetings/mtg_nosuchmeeting"

// probes are requests that show whether a key has a scope. They change nothing in
// either case.
var probes = []struct{ scope, what, body string }{
	{"employees:read", "GET /v1/employees", ""},
	{"meetings:read", "GET /v1/meetings?limit=1", ""},
	{"meetings:write", "PATCH " + nobody, "{}"},
	{"meetings:delete", "DELETE " + nobody, ""},
	{"minutes:read", "GET " + nobody + "/minutes", ""},
}

// ask finds out which scopes the key lacks. It fails if the service rejects
// the key for any other reason.
func (tg *target) ask(ctx context.Context) error {
	asked := &report{}
	tg.lacks = nil
	var rejected error
	skipped := tg.perform(ctx, &check{name: "scopes", section: "5", do: func(r *run) {
		r.asking = true
		for _, p := range probes {
			switch rep := r.send(p.what, p.body); {
			case rep.status == http.StatusForbidden && rep.code() == "INSUFFICIENT_SCOPE":
				tg.lacks = append(tg.lacks, p.scope)
			case rep.status == http.StatusUnauthorized, rep.status == http.StatusForbidden && rep.code() != "FORBIDDEN":
				rejected = fmt.Errorf("the key is rejected: %d %s", rep.status, rep.code())
				return
			}
		}
	}}, asked)
	switch {
	case rejected != nil:
		return rejected
	case skipped != "":
		return fmt.Errorf("the scopes of the key: %s", skipped)
	case len(asked.list) > 0:
		return fmt.Errorf("the scopes of the key: %s", asked.list[0].text)
	}
	return nil
}

// wants are the scopes that each kind of check needs to start. A check that
// only reads ends at the missing scope.
var wants = map[need][]string{
	writing:   {"meetings:read", "meetings:write", "meetings:delete"},
	recording: {"meetings:read", "meetings:write", "meetings:delete", "minutes:read"},
}

// missing says what the target lacks for checks of a kind, or "".
func (tg *target) missing(n need) string {
	switch {
	case n == disposable && tg.memory == nil:
		return "leaves traces, and is for the service in memory alone"
	case n == writing && !tg.write:
		return "needs MINUTES_CONFORMANCE_WRITE=1"
	case n == recording && tg.audio == nil:
		return "needs MINUTES_CONFORMANCE_AUDIO"
	}
	for _, scope := range wants[n] {
		if slices.Contains(tg.lacks, scope) {
			return "the key lacks " + scope + ", so the check does not start: it could not finish and clean up"
		}
	}
	if stuck := tg.made.stuck(); n != reading && stuck != "" {
		return "nothing more is created: " + stuck
	}
	return ""
}

// scopeOf is the scope that a request needs, and whether the interface says so.
func scopeOf(method, path string) (scope string, documented bool) {
	path, _, _ = strings.Cut(path, "?")
	meeting, below := strings.CutPrefix(path, "/v1/meetings")
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case path == "/v1/employees" && reads:
		return "employees:read", true
	case path == "/v1/employees":
		return "employees:write", true
	case strings.HasSuffix(meeting, "/minutes"):
		return "minutes:read", true
	case strings.HasSuffix(meeting, "/transcript"):
		return "minutes:read", false
	case method == http.MethodDelete:
		return "meetings:delete", below
	case reads:
		return "meetings:read", below
	}
	return "meetings:write", below && method != http.MethodPut && !strings.HasSuffix(meeting, "/upload-url")
}

// scopeless ends a check that meets the lack of a scope. It is a difference
// if the scope is assumed and the key has the assumed one.
func (r *run) scopeless(method, path string) {
	scope, documented := scopeOf(method, path)
	if !documented && !slices.Contains(r.lacks, scope) {
		r.as(1).that(false, "%s %s: the key carries %s, and another scope is needed", method, path, scope)
		r.skip("the key lacks the scope of %s %s", method, path)
	}
	r.skip("the key lacks %s, which %s %s needs", scope, method, path)
}
