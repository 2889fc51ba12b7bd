package conformance

import (
	"fmt"
	"strings"
)

// disposableChecks leave traces that cannot be taken away, and so are for the
// service in memory alone.
var disposableChecks = []check{
	{"a member without an account", "4.1", disposable, func(r *run) {
		before := r.send("GET /v1/usage", "")
		email := strings.ToLower(fresh()) + "@acme.example"
		rep := r.send("POST /v1/employees", `{"name":"Grace Hopper","email":"`+email+`","role":"Guest","description":"Writes compilers."}`)
		if !r.is(rep, 201, "Member") {
			return
		}
		r.that(string(r.send("GET /v1/usage", "").raw) == string(before.raw), "a member without an account costs something")
		r.that(rep.text("status") == "no_account", "status is %s", rep.text("status"))
		list := r.send("GET /v1/employees", "")
		r.that(strings.Contains(string(list.raw), rep.text("id")), "the new member is not listed")
		taken := r.send("POST /v1/employees", `{"name":"Another","email":"`+strings.ToUpper(email)+`"}`)
		r.as(16).rejects(taken, 409, "EMAIL_TAKEN")
		r.as(16).that(taken.detail("member_id") == rep.text("id") && taken.detail("name") == "Grace Hopper", "details are %v, %v", taken.detail("member_id"), taken.detail("name"))
		r.rejects(r.send("POST /v1/employees", `{"name":"x","email":"nope"}`), 400, "INVALID_EMAIL")
		for field, most := range map[string]int{"name": 80, "role": 80, "description": 300} {
			body := func(n int) string {
				text := fmt.Sprintf("%q:%q", field, strings.Repeat("é", n))
				if field != "name" {
					text += `,"name":"x"`
				}
				return "{" + text + "}"
			}
			long := r.send("POST /v1/employees", body(most+1))
			r.rejects(long, 400, "INVALID_REQUEST")
			r.that(fmt.Sprint(long.detail("fields")) == "["+field+"]", "details.fields is %v", long.detail("fields"))
			r.is(r.send("POST /v1/employees", body(most)), 201, "Member")
		}
		r.rejects(r.send("POST /v1/employees", `{}`), 400, "INVALID_REQUEST")
	}},
	{"a create without a reference", "4.2", disposable, func(r *run) {
		rep, done := r.create(`,"external_id":null`)
		defer done()
		r.that(rep.text("external_id") == "", "external_id is %v", rep.object["external_id"])
	}},
	{"a project", "4.3", disposable, func(r *run) {
		rep := r.send("POST /v1/projects", `{"name":"`+strings.Repeat("é", 120)+`"}`)
		r.as(1).is(rep, 201, "Project")
		r.rejects(r.send("POST /v1/projects", `{"name":"`+strings.Repeat("é", 121)+`"}`), 400, "INVALID_REQUEST")
		r.rejects(r.send("POST /v1/projects", `{"name":""}`), 400, "INVALID_REQUEST")
		m, done := r.create(`,"project_id":"` + rep.text("id") + `"`)
		defer done()
		r.that(m.text("project_id") == rep.text("id"), "the meeting is in %v", m.object["project_id"])
	}},
	{"a vocabulary", "4.3", disposable, func(r *run) {
		rep := r.send("PUT /v1/vocabulary", `{"terms":["Kubernetes","Grace"," Grace "]}`)
		r.as(1).is(rep, 200, "Vocabulary")
		r.that(fmt.Sprint(rep.object["terms"]) == "[Kubernetes Grace]", "terms are %v", rep.object["terms"])
		r.as(20).that(strings.Contains(string(rep.raw), "cooper netties"), "the variants of a term that stays are gone")
		r.as(1).is(r.send("POST /v1/vocabulary/terms", `{"term":"Hopper"}`), 201, "Vocabulary")
		r.as(15).is(r.send("POST /v1/vocabulary/terms", `{"term":"Hopper"}`), 200, "Vocabulary")
		r.rejects(r.send("POST /v1/vocabulary/terms", `{"term":""}`), 400, "INVALID_REQUEST")
		r.rejects(r.send("PUT /v1/vocabulary", `{}`), 400, "INVALID_REQUEST")
	}},
}
