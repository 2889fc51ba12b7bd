package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// readingChecks change nothing.
var readingChecks = []check{
	{"keys are needed", "5", reading, func(r *run) {
		for name, value := range map[string][]string{"no header": nil, "another scheme": {"Basic " + r.key}, "no scheme": {r.key}, "no key": {"Bearer "}, "an unknown key": {"Bearer no-such-key"}} {
			rep := r.send("GET /v1/meetings", "", func(req *http.Request) { req.Header["Authorization"] = value })
			rep.what += ", " + name
			r.rejects(rep, 401, "UNAUTHENTICATED")
		}
	}},
	{"the scheme in any case", "5", reading, func(r *run) {
		rep := r.send("GET /v1/meetings?limit=1", "", func(req *http.Request) { req.Header.Set("Authorization", "bEARER "+r.key) })
		r.as(18).is(rep, 200, "MeetingPage")
	}},
	{"401 before 404", "5", reading, func(r *run) {
		r.as(18).rejects(r.send("GET /v1/no-such-path", "", func(req *http.Request) { req.Header.Del("Authorization") }), 401, "UNAUTHENTICATED")
	}},
	{"members", "4.1", reading, func(r *run) {
		rep := r.send("GET /v1/employees", "")
		if r.is(rep, 200, "MemberList") {
			r.distinct("members", rep.object["members"].([]any))
		}
	}},
	{"a page of meetings", "4.2", reading, func(r *run) {
		rep := r.send("GET /v1/meetings", "")
		if !r.is(rep, 200, "MeetingPage") {
			return
		}
		list := rep.object["meetings"].([]any)
		r.that(len(list) <= 25, "%d meetings where 25 is the default", len(list))
		r.distinct("meetings", list)
		for i := 1; i < len(list); i++ {
			r.that(integer(list[i-1], "created_at") >= integer(list[i], "created_at"), "meeting %d is newer than the one before it", i)
		}
	}},
	{"pages follow each other", "4.2", reading, func(r *run) {
		var all []any
		cursor := ""
		for range 5 {
			rep := r.send("GET /v1/meetings?limit=2"+cursor, "")
			if !r.is(rep, 200, "MeetingPage") {
				return
			}
			page := rep.object["meetings"].([]any)
			r.that(len(page) <= 2, "%d meetings on a page of 2", len(page))
			all = append(all, page...)
			next := rep.text("next_cursor")
			if next == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
		r.distinct("meetings of the pages", all)
		if cursor == "" {
			r.skip("there is one page only")
		}
		r.as(24).is(r.send("GET /v1/meetings?limit=50"+cursor, ""), 200, "MeetingPage")
		r.as(7).rejects(r.send("GET /v1/meetings?date_from=2000-01-01"+cursor, ""), 400, "INVALID_CURSOR")
		r.as(7).rejects(r.send("GET /v1/meetings?external_id=x"+cursor, ""), 400, "INVALID_REQUEST")
		r.rejects(r.send("GET /v1/meetings?limit=2"+cursor+"A", ""), 400, "INVALID_CURSOR")
	}},
	{"parameters of the list", "4.2", reading, func(r *run) {
		for _, limit := range []string{"0", "51", "-1", "x", "1.5"} {
			r.rejects(r.send("GET /v1/meetings?limit="+limit, ""), 400, "INVALID_LIMIT")
		}
		for _, limit := range []string{"1", "50"} {
			r.is(r.send("GET /v1/meetings?limit="+limit, ""), 200, "MeetingPage")
		}
		r.rejects(r.send("GET /v1/meetings?cursor=nonsense", ""), 400, "INVALID_CURSOR")
		for _, date := range []string{"2026-02-30", "2026-1-1", "yesterday"} {
			r.rejects(r.send("GET /v1/meetings?date_from="+date, ""), 400, "INVALID_DATE")
			r.rejects(r.send("GET /v1/meetings?date_to="+date, ""), 400, "INVALID_DATE")
		}
		r.rejects(r.send("GET /v1/meetings?date_from=2026-03-02&date_to=2026-03-01", ""), 400, "INVALID_DATE_RANGE")
		r.is(r.send("GET /v1/meetings?date_from=2026-03-02&date_to=2026-03-02", ""), 200, "MeetingPage")
		for _, other := range []string{"date_from=2026-03-01", "date_to=2026-03-01"} {
			r.rejects(r.send("GET /v1/meetings?external_id=x&"+other, ""), 400, "INVALID_REQUEST")
		}
	}},
	{"corners of the list", "4.2", reading, func(r *run) {
		none := r.send("GET /v1/meetings?external_id="+fresh(), "")
		if r.as(7).is(none, 200, "MeetingPage") {
			r.as(7).that(len(none.object["meetings"].([]any)) == 0, "a reference that nobody has finds something")
		}
		r.as(7).rejects(r.send("GET /v1/meetings?external_id=x&limit=0", ""), 400, "INVALID_LIMIT")
		r.as(7).is(r.send("GET /v1/meetings?external_id=x&limit=1", ""), 200, "MeetingPage")
		r.as(19).rejects(r.send("GET /v1/meetings?limit=", ""), 400, "INVALID_LIMIT")
		r.as(19).is(r.send("GET /v1/meetings?cursor=", ""), 200, "MeetingPage")
		r.as(25).rejects(r.send("GET /v1/meetings?date_from=", ""), 400, "INVALID_DATE")
		r.as(25).rejects(r.send("GET /v1/meetings?date_to=", ""), 400, "INVALID_DATE")
		r.as(25).rejects(r.send("GET /v1/meetings?external_id=", ""), 400, "INVALID_EXTERNAL_ID")
	}},
	{"dates of the list are inclusive", "4.2", reading, func(r *run) {
		m := r.someMeeting("")
		date := m["date"].(string)
		rep := r.send("GET /v1/meetings?limit=50&date_from="+date+"&date_to="+date, "")
		if r.is(rep, 200, "MeetingPage") {
			list := rep.object["meetings"].([]any)
			r.that(len(list) > 0, "no meeting on the date of one")
			for _, other := range list {
				r.that(other.(map[string]any)["date"] == date, "a meeting on %v where %s was asked for", other.(map[string]any)["date"], date)
			}
		}
	}},
	{"a meeting", "4.2", reading, func(r *run) {
		m := r.someMeeting("")
		rep := r.send("GET /v1/meetings/"+m["id"].(string), "")
		if !r.is(rep, 200, "Meeting") {
			return
		}
		r.that(rep.object["id"] == m["id"], "another meeting is returned")
		age := regexp.MustCompile(`max-age=(\d+)`).FindStringSubmatch(rep.header.Get("Cache-Control"))
		if r.that(age != nil, "Cache-Control is %q, which says nothing of polling", rep.header.Get("Cache-Control")) {
			seconds, _ := strconv.Atoi(age[1])
			r.that(seconds >= 30, "Cache-Control lets clients poll every %d seconds", seconds)
		}
		r.as(8).that(rep.header.Get("Cache-Control") == "private, max-age=30", "Cache-Control is %q", rep.header.Get("Cache-Control"))
		status := rep.text("status")
		if status == "created" || status == "audio_uploaded" {
			_, there := rep.object["duration_seconds"]
			r.that(!there, "duration_seconds is there before the audio has been processed")
		}
	}},
	{"a nonexistent meeting", "4.2", reading, func(r *run) {
		for _, what := range []string{"", "/minutes"} {
			r.rejects(r.send("GET /v1/meetings/mtg_nosuchmeeting"+what, ""), 404, "NOT_FOUND")
		}
		r.as(1).rejects(r.send("GET /v1/meetings/mtg_nosuchmeeting/transcript", ""), 404, "NOT_FOUND")
		r.as(6).rejects(r.send("GET /v1/meetings/mtg_nosuchmeeting/minutes?format=pdf", ""), 404, "NOT_FOUND")
	}},
	{"minutes that are ready", "4.2", reading, func(r *run) {
		r.minutesOf(r.someMeeting("minutes_ready"))
	}},
	{"minutes that are not ready", "4.2", reading, func(r *run) {
		at := "GET /v1/meetings/" + r.someMeeting("created")["id"].(string)
		r.rejects(r.send(at+"/minutes", ""), 409, "MINUTES_NOT_READY")
		r.rejects(r.send(at+"/minutes?format=pdf", ""), 400, "INVALID_REQUEST")
		r.as(1).rejects(r.send(at+"/transcript", ""), 409, "TRANSCRIPT_NOT_READY")
	}},
	{"projects", "4.3", reading, func(r *run) {
		if rep := r.send("GET /v1/projects", ""); r.found(rep) && r.is(rep, 200, "ProjectList") {
			r.as(15).prefixed(rep.object["projects"].([]any), "prj_")
		}
	}},
	{"templates", "4.3", reading, func(r *run) {
		rep := r.send("GET /v1/templates", "")
		if !r.found(rep) || !r.is(rep, 200, "TemplateList") {
			return
		}
		list := rep.object["templates"].([]any)
		r.as(15).prefixed(list, "tpl_")
		r.as(24).that(len(list) > 0, "an organisation without templates")
		defaults := 0
		for _, t := range list {
			if t.(map[string]any)["is_default"] == true {
				defaults++
			}
		}
		r.as(25).that(defaults == 1, "%d templates are the default", defaults)
	}},
	{"usage", "4.3", reading, func(r *run) {
		if rep := r.send("GET /v1/usage", ""); r.found(rep) && r.is(rep, 200, "Usage") {
			r.that(integer(rep.object, "credits_remaining") >= 0 && integer(rep.object, "transcribe_seconds_remaining") >= 0, "less than nothing is left")
			if date := rep.text("next_reset_at"); date != "" {
				r.that(fits("date", date), "next_reset_at is %q", date)
			}
		}
	}},
	{"vocabulary", "4.3", reading, func(r *run) {
		rep := r.send("GET /v1/vocabulary", "")
		if !r.found(rep) || !r.is(rep, 200, "Vocabulary") {
			return
		}
		terms, entries := rep.object["terms"].([]any), rep.object["entries"].([]any)
		r.that(len(terms) == len(entries), "%d terms and %d entries", len(terms), len(entries))
		for i := range min(len(terms), len(entries)) {
			r.that(terms[i] == entries[i].(map[string]any)["term"], "term %d is not entry %d", i, i)
		}
		r.that(int64(len(terms)) <= integer(rep.object, "max_terms"), "more terms than the list may hold")
	}},
	{"unknown paths and methods", "7", reading, func(r *run) {
		r.as(16).rejects(r.send("GET /v1/no-such-path", ""), 404, "NOT_FOUND")
		r.as(21).rejects(r.send("GET /v1/meetings/", ""), 404, "NOT_FOUND")
		rep := r.send("PUT /v1/meetings", "")
		r.as(16).rejects(rep, 405, "BAD_REQUEST")
		r.as(21).that(rep.header.Get("Allow") != "", "405 without Allow")
		get := r.send("GET /v1/meetings?limit=1", "")
		head := r.send("HEAD /v1/meetings?limit=1", "")
		r.as(21).that(head.status == get.status && len(head.raw) == 0, "HEAD returns %d with %d bytes", head.status, len(head.raw))
	}},
	{"errors carry an id", "7", reading, func(r *run) {
		rep := r.send("GET /v1/meetings?limit=0", "")
		e, _ := rep.object["error"].(map[string]any)
		id, _ := e["request_id"].(string)
		r.that(id != "", "no request_id")
		r.as(15).that(strings.HasPrefix(id, "req_"), "request_id is %q", id)
	}},
}

// found reports whether an assumed route is there.
func (r *run) found(rep response) bool {
	return r.as(1).that(rep.status != 404 && rep.status != 405, "%s: there is no such route: %d %s", rep.what, rep.status, rep.code())
}

// distinct demands that no two of list have one id.
func (r *run) distinct(what string, list []any) {
	seen := map[any]bool{}
	for _, e := range list {
		id := e.(map[string]any)["id"]
		r.that(!seen[id], "%s: %v is there twice", what, id)
		seen[id] = true
	}
}

func (r *run) prefixed(list []any, prefix string) {
	for _, e := range list {
		id, _ := e.(map[string]any)["id"].(string)
		r.that(strings.HasPrefix(id, prefix), "%q does not begin with %s", id, prefix)
	}
}

// someMeeting is one of the newest meetings, in a status if there is one
// given. Without one the check is skipped.
func (r *run) someMeeting(status string) map[string]any {
	rep := r.send("GET /v1/meetings?limit=50", "")
	if !r.is(rep, 200, "MeetingPage") {
		r.skip("the list is not to be read")
	}
	for _, e := range rep.object["meetings"].([]any) {
		if m := e.(map[string]any); status == "" || m["status"] == status {
			return m
		}
	}
	if status == "" {
		r.skip("no meeting is to be seen")
	}
	r.skip("no meeting that is %s is to be seen", status)
	return nil
}

// minutesOf checks the minutes and the transcript of a finished meeting.
func (r *run) minutesOf(m map[string]any) {
	at := "GET /v1/meetings/" + m["id"].(string)
	for query, format := range map[string]string{"": "html", "?format=html": "html", "?format=markdown": "markdown"} {
		rep := r.send(at+"/minutes"+query, "")
		if r.is(rep, 200, "Minutes") {
			r.that(rep.text("format") == format, "%s: format %q", rep.what, rep.text("format"))
			r.that(rep.object["template_id"] == m["template_id"], "%s: template %v, where the meeting has %v", rep.what, rep.object["template_id"], m["template_id"])
		}
	}
	r.rejects(r.send(at+"/minutes?format=pdf", ""), 400, "INVALID_REQUEST")
	r.as(19).is(r.send(at+"/minutes?format=", ""), 200, "Minutes")
	rep := r.send(at+"/transcript", "")
	if !r.found(rep) || !r.is(rep, 200, "Transcript") {
		return
	}
	text := rep.text("transcript")
	r.that(regexp.MustCompile(`spk_\d+`).MatchString(text), "a transcript without speaker labels")
	r.as(14).that(!strings.Contains(text, "emp_"), "a transcript that names a member's id")
}

func integer(v any, field string) int64 {
	object, _ := v.(map[string]any)
	n, _ := object[field].(json.Number)
	i, _ := n.Int64()
	return i
}
