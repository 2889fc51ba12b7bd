package conformance

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nobody is a meeting that does not exist.
const nobody = "/v1/meetings/mtg_nosuchmeeting"

// checks are in an order in which the meetings that some create are there for others to read.
var checks = []struct {
	name    string
	needs   need
	against func(*run)
}{
	{"a meeting's life", writing, life},
	{"external ids", writing, externalIDs},
	{"rejected creates", writing, rejectedCreates},
	{"changes", writing, changes},
	{"participants", writing, participants},
	{"upload URLs", writing, uploadURLs},
	{"from recording to minutes", recording, fromRecordingToMinutes},
	{"keys", reading, keys},
	{"parameters of the list", reading, listParameters},
	{"pages", reading, pages},
	{"a meeting", reading, meeting},
	{"no meeting", reading, noMeeting},
	{"minutes", reading, func(r *run) { r.minutesOf(r.some("minutes_ready")) }},
	{"organisation", reading, organisation},
}

// rejects sends requests that the service must reject.
func (r *run) rejects(status int, code string, requests ...string) {
	r.Helper()
	for _, what := range requests {
		resp := r.send(what)
		if resp.status == http.StatusCreated {
			r.remove(resp.text("id"))
		}
		resp.rejects(status, code)
		if code == "INVALID_REQUEST" && strings.Contains(what, " {") {
			r.that(resp.text("error.details.fields") != "", "%s: details.fields names no field", what)
		}
	}
}

func life(r *run) {
	m := r.create(`,"time":"09:30","visibility":"private","project_id":null,"shared_with":null,"participant_ids":[]`)
	path := " /v1/meetings/" + m.text("id")
	r.that(m.text("status") == "created" && m.text("duration_seconds") == "" && m.text("visibility") == "private",
		"a new meeting is %s", m.raw)
	r.that(m.text("title") == "Conformance" && m.text("date") == "2026-03-02" && m.text("time") == "09:30",
		"what was sent is not what is there: %s", m.raw)
	got := r.send("GET" + path)
	r.that(got.is(200, "Meeting") && got.text("title") == m.text("title"),
		"created and read differ: %s and %s", m.raw, got.raw)
	deleted := r.send("DELETE" + path)
	if !r.that(deleted.status == 204 && len(deleted.raw) == 0, "DELETE: %d %s", deleted.status, deleted.raw) {
		r.stuck = "a meeting could not be deleted, so no other is created"
	}
	r.rejects(404, "NOT_FOUND", "GET"+path, "DELETE"+path)
	r.that(r.create(`,"template_id":"","visibility":""`).text("visibility") != "", "there is no default visibility")
}

func externalIDs(r *run) {
	ref := fresh()
	m := r.create(`,"external_id":"` + ref + `"`)
	again := r.send(`POST /v1/meetings {"title":"Another","date":"2026-03-03","external_id":"` + ref + `"}`)
	r.assuming().that(again.is(200, "Meeting") && string(again.raw) == string(m.raw),
		"a repeated create does not return the meeting unchanged: %d %s", again.status, again.raw)
	found := r.send("GET /v1/meetings?external_id=" + url.QueryEscape(ref))
	list := found.list("meetings")
	r.that(found.is(200, "meetings:Meeting") && len(list) == 1 && text(list[0], "id") == m.text("id") &&
		found.text("next_cursor") == "", "the meeting is not found alone: %s", found.raw)
}

func rejectedCreates(r *run) {
	r.create("") // skips the check if nothing can be deleted
	const create = `POST /v1/meetings {"date":"2026-03-02"`
	long := strings.Repeat("é", 301)
	r.rejects(400, "INVALID_REQUEST", create+`}`, create+`,"title":""}`, create+`,"title":"`+long+`"}`,
		create+`,"title":"x","visibility":"public"}`)
	r.rejects(400, "INVALID_DATE", `POST /v1/meetings {"title":"x","date":"2026-02-30"}`)
	r.rejects(400, "INVALID_TIME", create+`,"title":"x","time":"24:00"}`, create+`,"title":"x","time":"9:00"}`)
	r.rejects(400, "INVALID_EXTERNAL_ID", create+`,"title":"x","external_id":""}`,
		create+`,"title":"x","external_id":"`+long[:2*129]+`"}`)
	shared := r.send(create + `,"title":"x","visibility":"shared","shared_with":["emp_nobody"]}`)
	shared.rejects(400, "INVALID_SHARED_WITH")
	r.that(shared.text("error.details.invalid") == "[emp_nobody]",
		"details.invalid is %s", shared.text("error.details.invalid"))
	r.assuming().rejects(404, "NOT_FOUND", create+`,"title":"x","participant_ids":["emp_nobody"]}`,
		create+`,"title":"x","project_id":"prj_none"}`)
}

func changes(r *run) {
	patch := "PATCH /v1/meetings/" + r.create(`,"time":"09:30"`).text("id")
	m := r.send(patch + ` {"title":"Renamed"}`)
	r.that(m.is(200, "Meeting") && m.text("title") == "Renamed" && m.text("date") == "2026-03-02" &&
		m.text("time") == "09:30", "a new title gives %s", m.raw)
	m = r.send(patch + ` {"time":"","project_id":"","date":"2026-04-01"}`)
	r.that(m.is(200, "Meeting") && m.text("title") == "Renamed" && m.text("date") == "2026-04-01" &&
		m.text("time") == "", "a new date without a time gives %s", m.raw)
	r.rejects(400, "INVALID_REQUEST", patch+` {"title":""}`)
	r.rejects(400, "INVALID_DATE", patch+` {"date":"2026-02-30"}`)
	r.rejects(400, "INVALID_TIME", patch+` {"time":"9:00"}`)
}

func participants(r *run) {
	put := "PUT /v1/meetings/" + r.create("").text("id") + "/participants"
	list := r.send("GET /v1/employees")
	if list.is(200, "members:Member") && len(list.list("members")) > 0 {
		id := text(list.list("members")[0], "id")
		set := r.send(put + ` {"participant_ids":["` + id + `"]}`)
		r.that(set.is(200, "Meeting") && set.text("participant_ids") == "["+id+"]",
			"participants are %s", set.text("participant_ids"))
	}
	none := r.send(put + ` {"participant_ids":[]}`)
	r.that(none.is(200, "Meeting") && len(none.list("participant_ids")) == 0,
		"an empty list does not clear: %s", none.raw)
	r.rejects(400, "INVALID_REQUEST", put+` {}`)
}

func uploadURLs(r *run) {
	path := "/v1/meetings/" + r.create("").text("id")
	r.rejects(409, "MINUTES_NOT_READY", "GET "+path+"/minutes")
	r.assuming().rejects(409, "TRANSCRIPT_NOT_READY", "GET "+path+"/transcript")
	target := r.send("POST " + path + `/upload-url {"content_type":"audio/wav"}`)
	r.that(target.is(200, "upload_url:text expires_in:int") && target.number("expires_in") > 0,
		"expires_in is %s", target.text("expires_in"))
	rejected := r.put(target.text("upload_url"), "audio/mpeg", []byte("not what was signed"))
	r.that(rejected.status/100 == 4 && rejected.storageCode() != "",
		"storage accepts another Content-Type: %d", rejected.status)
	after := r.send("GET " + path)
	r.that(after.text("status") == "created", "a rejected upload leaves the meeting %s", after.text("status"))
}

// storageCode returns the code of an error from storage, which is XML.
func (p *response) storageCode() string {
	found := regexp.MustCompile(`(?s)<Error>.*<Code>(\w+)</Code>`).FindSubmatch(p.raw)
	if p.run.that(found != nil, "the error from storage is not XML: %.200s", p.raw) {
		return string(found[1])
	}
	return ""
}

func fromRecordingToMinutes(r *run) {
	path := "/v1/meetings/" + r.create("").text("id")
	target := r.send("POST " + path + `/upload-url {"content_type":"` + r.contentType + `"}`)
	sent := r.put(target.text("upload_url"), r.contentType, r.audio)
	r.that(sent.status/100 == 2, "storage rejects the recording: %d %.300s", sent.status, sent.raw)
	again := r.put(target.text("upload_url"), r.contentType, r.audio)
	r.assuming().that(again.status == 403 && again.storageCode() == "AccessDenied",
		"a second use of the URL: %d", again.status)
	final := r.pollUntilFinal(path)
	r.rejects(409, "PARTICIPANTS_LOCKED", "PUT "+path+`/participants {"participant_ids":[]}`)
	if r.that(final.text("status") == "minutes_ready", "the meeting ends as %s", final.text("status")) {
		r.that(final.number("duration_seconds") > 0, "duration_seconds is %s", final.text("duration_seconds"))
		r.minutesOf(final.object)
	}
	before := r.assuming().send("GET /v1/usage")
	r.send("PATCH "+path+` {"title":"Renamed"}`).is(200, "Meeting")
	r.send("PATCH "+path+` {"time":"10:00"}`).is(200, "Meeting")
	after := r.assuming().send("GET /v1/usage")
	r.assuming().that(before.number("credits_remaining")-after.number("credits_remaining") == 1,
		"a new title and a new time took usage from %s to %s", before.raw, after.raw)
}

// pollUntilFinal polls a meeting until its status is final. It moves the fake on instead.
func (r *run) pollUntilFinal(path string) *response {
	order := []string{"created", "audio_uploaded", "transcribing", "transcribed", "generating_minutes"}
	for seen := 0; ; {
		m := r.send("GET " + path)
		now := slices.Index(order, m.text("status"))
		if !m.is(200, "Meeting") || now < 0 {
			return m
		}
		r.that(now >= seen, "the meeting went back from %s to %s", order[seen], order[now])
		seen = now
		if r.fake != nil {
			r.fake.Advance(m.text("id"), "")
		} else {
			time.Sleep(30 * time.Second) // as the API reference asks
		}
	}
}

func (r *run) minutesOf(m map[string]any) {
	path := "GET /v1/meetings/" + text(m, "id")
	for query, format := range map[string]string{"": "html", "?format=html": "html", "?format=markdown": "markdown"} {
		got := r.send(path + "/minutes" + query)
		r.that(got.is(200, "format:text template_id:text content:text") && got.text("format") == format &&
			got.text("template_id") == text(m, "template_id"), "%s: format %s", got.what, got.text("format"))
	}
	r.rejects(400, "INVALID_REQUEST", path+"/minutes?format=pdf")
	transcript := r.assuming().send(path + "/transcript")
	r.assuming().that(transcript.is(200, "transcript:text") &&
		regexp.MustCompile(`spk_\d`).MatchString(transcript.text("transcript")), "the transcript has no labels")
}

func keys(r *run) {
	for _, value := range []string{"", "Basic " + r.key, r.key, "Bearer ", "Bearer no-such-key"} {
		r.send("GET /v1/meetings", func(req *http.Request) { req.Header.Set("Authorization", value) }).rejects(401,
			"UNAUTHENTICATED")
	}
}

func listParameters(r *run) {
	const list = "GET /v1/meetings?"
	r.rejects(400, "INVALID_LIMIT", list+"limit=0", list+"limit=51", list+"limit=1.5", list+"limit=x")
	r.rejects(400, "INVALID_CURSOR", list+"cursor=nonsense")
	r.rejects(400, "INVALID_DATE", list+"date_from=2026-02-30", list+"date_to=2026-1-1")
	r.rejects(400, "INVALID_DATE_RANGE", list+"date_from=2026-03-02&date_to=2026-03-01")
	r.rejects(400, "INVALID_REQUEST", list+"external_id=x&date_from=2026-03-01",
		list+"external_id=x&date_to=2026-03-01")
	r.send(list+"limit=50&date_from=2026-03-02&date_to=2026-03-02").is(200, "meetings:Meeting")
}

// pages reads at most n pages of the list.
func (r *run) pages(limit, n int) (all []any) {
	cursor := ""
	for range n {
		page := r.send(fmt.Sprintf("GET /v1/meetings?limit=%d%s", limit, cursor))
		r.that(page.is(200, "meetings:Meeting") && len(page.list("meetings")) <= limit,
			"%d meetings on a page of %d", len(page.list("meetings")), limit)
		all = append(all, page.list("meetings")...)
		if page.text("next_cursor") == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.text("next_cursor"))
	}
	return all
}

func pages(r *run) {
	seen := map[string]bool{}
	last := math.Inf(1)
	for _, m := range r.pages(2, 5) {
		r.that(!seen[text(m, "id")], "%s is there twice", text(m, "id"))
		r.that(number(m, "created_at") <= last, "%s is newer than the meeting before it", text(m, "id"))
		seen[text(m, "id")] = true
		last = number(m, "created_at")
	}
	r.that(len(r.send("GET /v1/meetings").list("meetings")) <= 25, "the default limit is over 25")
}

// some returns one of the newest meetings, with the status unless it is "".
func (r *run) some(status string) map[string]any {
	for _, m := range r.pages(50, 1) {
		if status == "" || text(m, "status") == status {
			return m.(map[string]any)
		}
	}
	r.Skipf("no meeting with status %q can be seen", status)
	return nil
}

func meeting(r *run) {
	m := r.some("")
	got := r.send("GET /v1/meetings/" + text(m, "id"))
	r.that(got.is(200, "Meeting") && got.text("id") == text(m, "id"), "another meeting is returned")
	cache := got.header.Get("Cache-Control")
	r.that(regexp.MustCompile(`max-age=([3-9]\d|\d{3,})`).MatchString(cache),
		"Cache-Control %q does not ask for thirty seconds", cache)
	date := text(m, "date")
	page := r.send("GET /v1/meetings?limit=50&date_from=" + date + "&date_to=" + date)
	r.that(page.is(200, "meetings:Meeting") && len(page.list("meetings")) > 0, "no meeting on the date of one")
	for _, other := range page.list("meetings") {
		r.that(text(other, "date") == date, "a meeting on %s in a list of %s", text(other, "date"), date)
	}
}

func noMeeting(r *run) {
	r.rejects(404, "NOT_FOUND", "GET "+nobody, "GET "+nobody+"/minutes")
	r.assuming().rejects(404, "NOT_FOUND", "GET "+nobody+"/transcript")
	if r.forbids(writing) == "" {
		r.rejects(404, "NOT_FOUND", "DELETE "+nobody, "PATCH "+nobody+` {"title":"x"}`,
			"PUT "+nobody+`/participants {"participant_ids":[]}`)
	}
}

// organisation checks lists that the API reference describes without their paths.
func organisation(r *run) {
	r.send("GET /v1/employees").is(200, "members:Member")
	r.assuming().send("GET /v1/projects").is(200, "projects:Project")
	r.assuming().send("GET /v1/usage").is(200, "credits_remaining:int transcribe_seconds_remaining:int")
	templates := r.assuming().send("GET /v1/templates")
	templates.is(200, "templates:Template")
	r.that(strings.Count(string(templates.raw), `"is_default":true`) <= 1, "several templates are the default")
	v := r.assuming().send("GET /v1/vocabulary")
	terms := v.list("terms")
	entries := v.list("entries")
	r.that(v.is(200, "Vocabulary") && len(terms) == len(entries) && float64(len(terms)) <= v.number("max_terms"),
		"%d terms and %d entries", len(terms), len(entries))
	for i := range min(len(terms), len(entries)) {
		r.that(terms[i] == text(entries[i], "term"), "term %d is not entry %d", i, i)
	}
}
