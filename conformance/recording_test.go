package conformance

import (
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// recordingChecks take a meeting from audio to minutes.
var recordingChecks = []check{
	{"from audio to minutes", "3", recording, func(r *run) {
		before := r.send("GET /v1/usage", "")
		m, _ := r.create("") // stays to the end, for the checks that read minutes
		at := "/v1/meetings/" + m.text("id")
		target := r.send("POST "+at+"/upload-url", `{"content_type":"`+r.contentType+`"}`)
		if !r.is(target, target.status, "UploadTarget") {
			return
		}
		sent := r.put(target.text("upload_url"), r.contentType, r.audio)
		if !r.that(sent.status/100 == 2, "storage rejects the recording: %d %.300s", sent.status, sent.raw) {
			return
		}
		again := r.put(target.text("upload_url"), r.contentType, r.audio)
		r.as(10).that(again.status == 403 && r.xml(again) == "AccessDenied", "a second use of the URL: %d", again.status)
		r.as(11).rejects(r.send("POST "+at+"/upload-url", `{"content_type":"audio/wav"}`), 400, "BAD_REQUEST")
		r.rejects(r.send("PUT "+at+"/participants", `{"participant_ids":[]}`), 409, "PARTICIPANTS_LOCKED")

		end := r.await(m.text("id"))
		if !r.that(end.text("status") == "minutes_ready", "the meeting ended as %s", end.text("status")) {
			return
		}
		r.as(13).that(integer(end.object, "duration_seconds") > 0, "duration_seconds is %v", end.object["duration_seconds"])
		r.minutesOf(end.object)
		after := r.send("GET /v1/usage", "")
		if before.status == 200 && r.is(after, 200, "Usage") {
			spent := integer(before.object, "credits_remaining") - integer(after.object, "credits_remaining")
			r.as(13).that(spent == 1, "the minutes cost %d credits, if nothing else was going on", spent)
			seconds := integer(before.object, "transcribe_seconds_remaining") - integer(after.object, "transcribe_seconds_remaining")
			r.as(13).that(seconds == integer(end.object, "duration_seconds"), "transcription took %d seconds of %v, if nothing else was going on", seconds, end.object["duration_seconds"])
		}
		renamed := r.send("PATCH "+at, `{"title":"Renamed"}`)
		r.is(renamed, 200, "Meeting")
		r.is(r.send("PATCH "+at, `{"time":"10:00"}`), 200, "Meeting")
		cost := r.send("GET /v1/usage", "")
		if after.status == 200 && r.is(cost, 200, "Usage") {
			spent := integer(after.object, "credits_remaining") - integer(cost.object, "credits_remaining")
			r.as(9).that(spent == 1, "a new title and a new start time cost %d credits, if nothing else was going on", spent)
		}
	}},
	{"a file without audio", "3", recording, func(r *run) {
		m, done := r.create("")
		defer done()
		target := r.send("POST /v1/meetings/"+m.text("id")+"/upload-url", `{"content_type":"application/pdf"}`)
		if !r.as(11).is(target, 200, "UploadTarget") {
			return
		}
		sent := r.put(target.text("upload_url"), "application/pdf", []byte("%PDF-1.7"))
		if !r.as(11).that(sent.status/100 == 2, "storage rejects the file: %d %.300s", sent.status, sent.raw) {
			return
		}
		end := r.await(m.text("id"))
		r.as(11).that(end.text("status") == "audio_rejected", "the meeting ended as %s", end.text("status"))
		at := "GET /v1/meetings/" + m.text("id")
		r.as(12).rejects(r.send(at+"/minutes", ""), 409, "MINUTES_NOT_READY")
		r.as(12).rejects(r.send(at+"/transcript", ""), 409, "TRANSCRIPT_NOT_READY")
	}},
}

// happy is the order of section 3.
var happy = []string{"created", "audio_uploaded", "transcribing", "transcribed", "generating_minutes", "minutes_ready"}

// await polls a meeting until its status is final: every thirty seconds,
// or, in memory, as fast as it can be moved there.
func (r *run) await(id string) response {
	seen := 0
	for {
		rep := r.send("GET /v1/meetings/"+id, "")
		if !r.is(rep, 200, "Meeting") {
			r.stop("the meeting cannot be followed")
		}
		status := rep.text("status")
		if at := slices.Index(happy, status); at >= 0 {
			r.that(at >= seen, "the meeting went back from %s to %s", happy[seen], status)
			seen = at
		}
		if minutes.Status(status).Final() {
			return rep
		}
		if r.memory != nil {
			_ = minutestest.Try(func() { r.memory.Advance(id, "") }) // it may be there by itself
			continue
		}
		select {
		case <-time.After(30 * time.Second):
		case <-r.ctx.Done():
			r.stop("the meeting is %s when time is over", status)
		}
	}
}
