// Package minutestest is an in-memory fake of the Meeting Minutes Service, for the tests of programs
// that use it. It has the whole API, the storage for recordings, the failures of both, and an audit
// of the rules that clients must keep. It needs no network and no account.
//
// # A first test
//
//	func TestMinutes(t *testing.T) {
//		srv := minutestest.NewServer(t)
//		client := srv.Client()
//		m, _, err := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
//		…
//	}
//
// [Server.Client] returns a [minutes.Client] that is ready for use. If your code creates its own
// Client, give it [BaseURL], [Server.Key] and [Server.NewHTTPClient]. Nothing leaves the process:
// each connection is a pipe, with real HTTP/1.1 on it. For code in another process or another
// language, [Server.Listen] serves on a socket, and so does the program minutes-fake.
//
// A Server begins with [DefaultWorld]: an organisation, its people and three keys. [WithWorld]
// begins with another [World], which [LoadWorld] can read from a file. [Server.Update] changes an
// organisation during the test, so that its quota runs out, a key is revoked or a member leaves.
// [Server.AddMeetings] adds meetings of others, and [Server.Delete] deletes one.
//
// # Faults
//
// [Server.Inject] makes requests fail as networks, proxies and services do: rejected at the edge,
// reset before they were read or after they took effect, answered with a proxy's HTML, cut short,
// slow, or never sent, because a name or a connection failed. A [Match] selects exactly which
// requests, and how many, so a test fails the same way on every run.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseResponse())
//
// A fault that was applied fewer times than asked fails the test, because otherwise the test would
// prove nothing. [WithEdgeLimit] limits requests as the service's edge does.
//
// # Scripts
//
// Any bytes are a recording, and become minutes of a short conversation. A [Script] sets another
// outcome, transcript or duration, for all meetings, for those with one title, or for one meeting.
// It can also hold a meeting in a status until [Server.Release].
//
//	srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # Time
//
// A meeting takes some time from its audio to its minutes, and a Client polls it at most every
// thirty seconds. In a testing/synctest bubble the test does not wait for either:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := minutestest.NewServer(t)
//		…
//		got, err := srv.Client().Meetings.WaitForMinutes(t.Context(), m.ID, nil) // half a minute later, at once
//	})
//
// A Server created inside a bubble uses that bubble's clock. A Server created outside can serve
// several bubbles, each with its own clock. Without a bubble, the thirty seconds between two polls
// are real. If your test calls Upload and Wait itself, call [Server.Advance] in between, so that the
// first poll finds the meeting ready. If one call does both, as Process does, use a Script whose
// stages take no time:
//
//	srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // nanoseconds
//
// [Server.AdvanceClock] moves the service's time by as much as you like, so that URLs and keys
// expire.
//
// # The audit
//
// [Server.Violations] returns the rules of the service that a client broke: it polled a meeting
// again within thirty seconds, sent a key to storage, or repeated a create that may have taken
// effect. With [NewServer] a violation fails the test, unless [WithoutAudit] switches it off.
// [ViolationKind] says what a client is, and when a violation can be a false positive.
// [Server.Requests] returns the requests themselves, in order and without secrets, and
// [Server.Meeting] everything about a meeting, with the SHA-256 of its audio.
//
// [Server.Report] shows all of that in an HTML file with a line for each meeting. A failed test
// writes one by itself if you run go test with -artifacts, and its log names the file.
//
// The cookbook has a line of code for each of about fifty situations, from a key that is revoked
// midway to an outage of five minutes:
// https://github.com/meeting-minutes/minutes-go/blob/main/docs/testing.md
//
// # Assumptions
//
// The Server does what the API reference says. Where that is silent, it follows one of these
// decisions. The service may differ, so do not depend on them:
//
//   - D1: paths and scopes the API reference does not show: transcript, projects, templates, usage,
//     vocabulary; scopes of participants and upload-url
//   - D2: visibility of a meeting created without one: the integration's default, organisation
//     unless set; private with a personal key
//   - D3: create with an external_id that exists: 200 if the caller sees the meeting, else 409
//     EXTERNAL_ID_TAKEN
//   - D4: unknown participant, project or template ids: 404; unknown ids in shared_with:
//     INVALID_SHARED_WITH
//   - D5: null in a PATCH, lengths in code points, unknown fields, responses to malformed bodies
//   - D6: the order of errors
//   - D7: filters that exclude each other, external_id without a match, the parameters that a cursor
//     is bound to, stable pages
//   - D8: Cache-Control of one meeting: private, max-age=30
//   - D9: the cost of a change after the minutes: one credit a call, never below 0
//   - D10: upload URLs: 900 seconds, HMAC, one successful PUT, errors as XML
//   - D11: content types: repeated byte for byte; audio/*, video/* and application/ogg are
//     processed; 1 to 1,000,000,000 bytes
//   - D12: statuses before each failure; when transcript and minutes are served
//   - D13: duration from a Script, else from a WAV header, else 16,000 bytes a second; from
//     transcribing on; minutes cost one credit
//   - D14: no member id in a transcript; names in the minutes; vocabulary applied
//   - D15: prefixes of ids; 500 terms and 1,000 members unless set; adding a term that is there: 200
//   - D16: 404 and 405 in the envelope; details of EMAIL_TAKEN; emails without regard to case
//   - D17: who can see and change a meeting
//   - D18: which keys work; 401 before 404 and 405; suspended before expired; EMAIL_TAKEN before
//     MEMBER_LIMIT_EXCEEDED
//   - D19: empty strings in bodies and queries; trimming; invalid UTF-8
//   - D20: duplicates in lists; shared_with checked always; archived projects; variants of terms
//     that stay
//   - D21: HEAD, 405 with Allow, trailing slashes, 413 over 1 MiB, Content-Type
//   - D22: an upload URL after the audio arrived; any change of the URL; a body cut short
//   - D23: seconds set aside when the audio arrives; 1,000 credits and 360,000 seconds unless set
//   - D24: order by creation; cursors across limits and keys; tpl_standard
//   - D25: the rest of the order of errors; seconds given back; minutes written once
package minutestest
