package conformance

import (
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// fresh returns a new reference.
func fresh() string { return prefix + rand.Text() }

// create makes a meeting that is deleted when done is called. fields are JSON
// members beside title and date.
func (r *run) create(fields string) (m response, done func()) {
	rep := r.post(`{"title":"Conformance","date":"2026-03-02"` + fields + `}`)
	if !r.is(rep, 201, "Meeting") {
		r.skip("no meeting can be created")
	}
	return rep, func() { r.remove(rep.text("id")) }
}

// noCreate sends a create that the service must reject. If the service accepts
// it, noCreate deletes the meeting.
func (r *run) noCreate(body string) response {
	rep := r.post(body)
	if rep.status == 201 {
		r.remove(rep.text("id"))
	}
	rep.what += fmt.Sprintf(" %.80s", body)
	return rep
}

// writingChecks leave nothing behind.
var writingChecks = []check{
	{"a meeting's life", "4.2", writing, func(r *run) {
		m, _ := r.create(`,"time":"09:30"`)
		at := "/v1/meetings/" + m.text("id")
		r.that(m.text("status") == "created", "a new meeting is %s", m.text("status"))
		r.that(m.text("title") == "Conformance" && m.text("date") == "2026-03-02" && m.text("time") == "09:30", "what was sent is not what is there: %s", m.raw)
		r.that(m.text("template_id") != "", "no template")
		again := r.send("GET "+at, "")
		r.is(again, 200, "Meeting")
		r.that(again.text("title") == "Conformance", "created and read differ")
		deleted := r.send("DELETE "+at, "")
		r.is(deleted, 204, "")
		r.that(len(deleted.raw) == 0, "204 with content")
		for _, what := range []string{"GET " + at, "DELETE " + at, "GET " + at + "/minutes"} {
			r.rejects(r.send(what, ""), 404, "NOT_FOUND")
		}
		r.rejects(r.send("PATCH "+at, `{"title":"x"}`), 404, "NOT_FOUND")
		r.rejects(r.send("PUT "+at+"/participants", `{"participant_ids":[]}`), 404, "NOT_FOUND")
	}},
	{"an external id is unique", "4.2", writing, func(r *run) {
		ref := fresh()
		m, done := r.create(`,"external_id":"` + ref + `"`)
		defer done()
		again := r.post(`{"title":"Another","date":"2026-03-03","external_id":"` + ref + `"}`)
		r.as(3).is(again, 200, "Meeting")
		if again.status == 200 {
			r.that(again.text("id") == m.text("id") && again.text("title") == "Conformance", "the meeting was not returned unchanged")
		}
		r.as(3).rejects(r.noCreate(`{"title":"","date":"2026-03-03","external_id":"`+ref+`"}`), 400, "INVALID_REQUEST")
		found := r.send("GET /v1/meetings?external_id="+url.QueryEscape(ref), "")
		if r.is(found, 200, "MeetingPage") {
			list := found.object["meetings"].([]any)
			r.that(len(list) == 1 && list[0].(map[string]any)["id"] == m.object["id"], "the meeting is not found by its reference")
			r.that(found.text("next_cursor") == "", "one meeting, and a next page")
		}
	}},
	{"bodies of a create", "4.2", writing, func(r *run) {
		for _, tc := range []struct {
			body, code string
			decision   int
			field      string // one of details.fields
		}{
			{`{"date":"2026-03-02"}`, "INVALID_REQUEST", 0, "title"},
			{`{"title":"","date":"2026-03-02"}`, "INVALID_REQUEST", 0, "title"},
			{`{"title":"` + strings.Repeat("ä", 301) + `","date":"2026-03-02"}`, "INVALID_REQUEST", 0, "title"},
			{`{"title":"x","date":"2026-02-30"}`, "INVALID_DATE", 0, ""},
			{`{"title":"x","date":"2026-03-02","time":"24:00"}`, "INVALID_TIME", 0, ""},
			{`{"title":"x","date":"2026-03-02","external_id":""}`, "INVALID_EXTERNAL_ID", 0, ""},
			{`{"title":"x","date":"2026-03-02","external_id":"` + strings.Repeat("é", 129) + `"}`, "INVALID_EXTERNAL_ID", 0, ""},
			{`{"title":"x","date":"2026-03-02","visibility":"public"}`, "INVALID_REQUEST", 0, "visibility"},
			{`{"title":"x"}`, "INVALID_REQUEST", 19, "date"},
			{`{"title":" ","date":"2026-03-02"}`, "INVALID_REQUEST", 5, "title"},
			{`{"title":7,"date":"2026-03-02"}`, "INVALID_REQUEST", 5, "title"},
			{`[]`, "INVALID_REQUEST", 5, ""},
			{`{"title":"x","date":""}`, "INVALID_DATE", 19, ""},
			{`{"title":"x\u0000","date":"2026-03-02"}`, "INVALID_REQUEST", 19, "title"},
			{`{"title":"","date":"never"}`, "INVALID_REQUEST", 25, "date"},
		} {
			rep := r.noCreate(tc.body)
			r.as(tc.decision).rejects(rep, 400, tc.code)
			if tc.field != "" {
				fields, _ := rep.detail("fields").([]any)
				r.as(tc.decision).that(slices.Contains(fields, any(tc.field)), "%s: details.fields is %v, without %s", rep.what, fields, tc.field)
			}
		}
		// A gateway may reject malformed JSON before it reaches the API, without the envelope.
		malformed := r.noCreate(`{"title":`)
		r.that(malformed.status == 400, "%s: status %d where 400 was expected", malformed.what, malformed.status)
		faults := misfits("Envelope", "", malformed.object)
		r.as(5).that(malformed.code() == "INVALID_REQUEST" && len(faults) == 0, "%s: code %q, envelope: %s", malformed.what, malformed.code(), strings.Join(faults, "; "))
		shared := r.noCreate(`{"title":"x","date":"2026-03-02","visibility":"shared","shared_with":["emp_nobody"]}`)
		r.as(4).rejects(shared, 400, "INVALID_SHARED_WITH")
		r.as(4).that(fmt.Sprint(shared.detail("invalid")) == "[emp_nobody]", "details.invalid is %v", shared.detail("invalid"))
	}},
	{"unknown ids", "4.2", writing, func(r *run) {
		for _, field := range []string{`"participant_ids":["emp_nobody"]`, `"project_id":"prj_none"`, `"template_id":"tpl_none"`} {
			rep := r.noCreate(`{"title":"x","date":"2026-03-02",` + field + `}`)
			r.as(4).rejects(rep, 404, "NOT_FOUND")
		}
	}},
	{"a create with every field", "4.2", writing, func(r *run) {
		rep, done := r.create(`,"time":null,"participant_ids":[],"project_id":null,"shared_with":null,"template_id":null,"visibility":"private"`)
		defer done()
		r.that(rep.text("visibility") == "private", "visibility is %s", rep.text("visibility"))
		empty, done := r.create(`,"time":"","project_id":"","template_id":"","visibility":"","unknown":{"a":1}`)
		defer done()
		r.that(empty.text("visibility") != "", "no default visibility")
	}},
	{"changes of a meeting", "4.2", writing, func(r *run) {
		m, done := r.create(`,"time":"09:30"`)
		defer done()
		at := "PATCH /v1/meetings/" + m.text("id")
		changed := r.send(at, `{"title":"Renamed"}`)
		if r.is(changed, 200, "Meeting") {
			r.that(changed.text("title") == "Renamed" && changed.text("date") == "2026-03-02" && changed.text("time") == "09:30", "more was touched than what was sent: %s", changed.raw)
		}
		cleared := r.send(at, `{"time":"","project_id":"","date":"2026-04-01"}`)
		if r.is(cleared, 200, "Meeting") {
			r.that(cleared.text("time") == "" && cleared.text("project_id") == "" && cleared.text("date") == "2026-04-01", "not cleared: %s", cleared.raw)
		}
		same := r.send(at, `{"title":null,"date":null,"time":null,"project_id":null}`)
		if r.as(5).is(same, 200, "Meeting") {
			r.as(5).that(same.text("title") == "Renamed" && same.text("date") == "2026-04-01", "null is not left alone: %s", same.raw)
		}
		r.rejects(r.send(at, `{"title":""}`), 400, "INVALID_REQUEST", "BAD_REQUEST")
		r.as(5).rejects(r.send(at, `{"title":" "}`), 400, "INVALID_REQUEST")
		r.rejects(r.send(at, `{"date":"2026-02-30"}`), 400, "INVALID_DATE")
		r.rejects(r.send(at, `{"time":"9:00"}`), 400, "INVALID_TIME")
		r.as(25).rejects(r.send(at, `{"date":""}`), 400, "INVALID_DATE")
		r.as(4).rejects(r.send(at, `{"project_id":"prj_none"}`), 404, "NOT_FOUND")
	}},
	{"participants", "4.2", writing, func(r *run) {
		m, done := r.create("")
		defer done()
		at := "PUT /v1/meetings/" + m.text("id") + "/participants"
		members := r.send("GET /v1/employees", "")
		if r.is(members, 200, "MemberList") && len(members.object["members"].([]any)) > 0 {
			id := members.object["members"].([]any)[0].(map[string]any)["id"].(string)
			set := r.send(at, `{"participant_ids":["`+id+`"]}`)
			if r.is(set, 200, "Meeting") {
				r.that(fmt.Sprint(set.object["participant_ids"]) == "["+id+"]", "participants are %v", set.object["participant_ids"])
			}
			twice := r.send(at, `{"participant_ids":["`+id+`","`+id+`"]}`)
			if r.as(20).is(twice, 200, "Meeting") {
				r.as(20).that(fmt.Sprint(twice.object["participant_ids"]) == "["+id+"]", "participants are %v", twice.object["participant_ids"])
			}
		}
		none := r.send(at, `{"participant_ids":[]}`)
		if r.is(none, 200, "Meeting") {
			list, _ := none.object["participant_ids"].([]any)
			r.that(len(list) == 0, "an empty list does not clear")
		}
		r.rejects(r.send(at, `{}`), 400, "INVALID_REQUEST")
		r.as(5).rejects(r.send(at, `{"participant_ids":"all"}`), 400, "INVALID_REQUEST")
		r.as(4).rejects(r.send(at, `{"participant_ids":["emp_nobody"]}`), 404, "NOT_FOUND")
	}},
	{"upload URLs", "4.2", writing, func(r *run) {
		m, done := r.create("")
		defer done()
		at := "POST /v1/meetings/" + m.text("id") + "/upload-url"
		r.as(11).rejects(r.send(at, `{}`), 400, "INVALID_REQUEST")
		r.as(11).rejects(r.send(at, `{"content_type":"wav"}`), 400, "INVALID_REQUEST")
		rep := r.send(at, `{"content_type":"audio/wav"}`)
		r.as(10).that(rep.status == 200, "upload-url returns %d", rep.status)
		if !r.is(rep, rep.status, "UploadTarget") {
			return
		}
		r.that(integer(rep.object, "expires_in") > 0, "expires_in is %v", rep.object["expires_in"])
		r.as(10).that(integer(rep.object, "expires_in") == 900, "expires_in is %v", rep.object["expires_in"])
		target, err := url.Parse(rep.text("upload_url"))
		r.that(err == nil && target.Host != "" && target.RawQuery != "", "upload_url is no presigned URL")

		rejected := r.put(rep.text("upload_url"), "audio/mpeg", []byte("not what was signed"))
		code := r.xml(rejected)
		r.that(rejected.status >= 400 && rejected.status < 500, "another Content-Type than was signed: %d", rejected.status)
		r.as(10).that(rejected.status == 403 && code == "SignatureDoesNotMatch", "another Content-Type than was signed: %d %s", rejected.status, code)
		tampered := r.put(rep.text("upload_url")+"0", "audio/wav", []byte("x"))
		code = r.xml(tampered)
		r.as(10).that(tampered.status == 403 && code == "SignatureDoesNotMatch", "a tampered URL: %d %s", tampered.status, code)
		after := r.send("GET /v1/meetings/"+m.text("id"), "")
		r.that(after.text("status") == "created", "a rejected upload leaves the meeting %s", after.text("status"))
	}},
}

// xml demands an error of storage, which is XML and no envelope, and returns
// its code.
func (r *run) xml(rep response) string {
	var e struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}
	err := xml.Unmarshal(rep.raw, &e)
	r.that(err == nil && e.Code != "" && rep.object == nil, "the error of storage is not XML: %.200s", rep.raw)
	return e.Code
}
