// Package minutestest runs the Meeting Minutes Service in memory, for the tests
// of programs that use it. It includes the API, the storage, their failures and
// the minimum poll interval of thirty seconds. It needs no network and no
// account.
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
// [Server.Client] returns a [minutes.Client] that is ready for use. If your code creates
// its own Client, give it [BaseURL], [Server.Key] and [Server.HTTPClient]. Nothing leaves
// the process: each connection is a pipe, with real HTTP/1.1 on it. For code in another
// process, or in another language, [Server.Listen] serves on a socket.
//
// # Time
//
// A meeting takes some time from audio to minutes, and a Client polls it at most every
// thirty seconds. In a testing/synctest bubble the test does not wait for either:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := minutestest.NewServer(t)
//		…
//		got, err := srv.Client().Meetings.WaitForMinutes(t.Context(), m.ID, nil) // half a minute later, at once
//	})
//
// A Server created inside a synctest bubble uses that bubble's clock. A Server created
// outside can serve several bubbles, each with its own clock.
//
// Without a bubble, the thirty seconds between two polls are real. If your test calls
// Upload and Wait itself, call [Server.Advance] in between: the first poll then finds the
// meeting ready. If one call does both, as Process does, use a [Script] whose stages take
// no time:
//
//	err := srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // nanoseconds
//
// # World
//
// A Server begins with [DefaultWorld]: an organisation, its people and three keys.
// [WithWorld] begins with another World, which [LoadWorld] can read from a file.
// [Server.Update] changes it during the test: quota runs out, a key is revoked, a member
// leaves. [Server.AddMeetings] adds the meetings of others, and [Server.Delete] removes a
// meeting that your program still waits for. Package world, a directory below, has the fields of
// all these types.
//
// # How meetings end
//
// Any bytes are a recording, and become minutes of a short conversation. A [Script] sets
// another outcome, transcript or duration, for all meetings, for those with one title, or
// for one meeting. It can also hold a meeting in a status until you release it, set the length
// of the recording, and keep a meeting out of lists for a while.
//
//	err := srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # Faults
//
// [Server.Inject] makes requests fail as networks, proxies and services do: rejected at the
// edge, reset before they were read or after they took effect, answered with a proxy's HTML,
// cut short, slow. A [Match] selects exactly which requests, and how many, on every run.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseResponse())
//
// A fault that was never applied fails the test.
//
// # The audit
//
// [Server.Requests] returns the requests that arrived, in order and without secrets.
// [Server.Meeting] returns everything about a meeting, with the SHA-256 of its audio and the
// times of its history. [Server.Violations] returns the rules of the service that a client
// broke: it polled a meeting again within thirty seconds, sent a key to storage, or
// repeated a create that may have taken effect. With [NewServer] a violation fails the
// test; [WithoutAudit] turns the audit off.
//
// The audit checks only what the interface document requires. [ViolationKind]
// lists the violations, what counts as one program, and when each can be
// innocent.
//
// # Cookbook
//
// The cookbook has a line of code for each of about fifty situations, from a
// key that is revoked midway to an outage of five minutes:
// https://github.com/meeting-minutes/minutes-go/blob/main/docs/testing.md
//
// # Report
//
// [Server.Report] writes all of that as an HTML file: a line for each meeting, with its
// states and the requests that read or changed it. The file needs no server, loads
// nothing, and holds no secret. A failed test writes one by itself if you run go test
// with -artifacts:
//
//	go test -artifacts -outputdir /tmp ./...
//
// The test's log names the file. The page opens at the violation that failed the test. In
// a synctest bubble the times are the bubble's. [Server.Inspector] is the same page, live,
// for a running program; minutes-fake serves it at its control address.
//
// # Limits
//
// A Server may run for weeks:
//
//   - a header may have 64 KiB, unless the Server is used through [Server.Handler], and a
//     JSON body 1 MiB;
//   - it keeps the last 4,096 requests, or as many as 32 MiB hold;
//   - it hashes recordings and counts their bytes, and keeps them only with [WithAudio];
//   - up to sixteen browsers can watch, each for a twentieth of a processor at most.
//
// # Fuzz targets and benchmarks
//
// [NewServer] takes a *testing.F and a *testing.B, too. A Server created with a *testing.F
// serves all inputs of its fuzz target, and is checked when the fuzz test ends. A Server
// created with the target's own *testing.T serves one input. NewServer has an example.
//
// # Fidelity
//
// The Server implements everything in the interface document, and tests check it. If the
// document does not say what happens, the Server follows one of these decisions. The
// service may differ, so do not depend on them:
//
//   - D1: paths and scopes the interface does not show: transcript,
//     projects, templates, usage, vocabulary; scopes of participants and
//     upload-url
//   - D2: visibility of a meeting created without one: the integration's
//     default, organisation unless set; private with a personal key
//   - D3: create with an external_id that exists: 200 if the caller sees
//     the meeting, else 409 EXTERNAL_ID_TAKEN
//   - D4: unknown participant, project or template ids: 404; unknown ids in
//     shared_with: INVALID_SHARED_WITH
//   - D5: null in a PATCH, lengths in code points, unknown fields, the
//     response to a malformed body
//   - D6: the order of errors
//   - D7: filters that exclude each other, external_id without a match, the
//     parameters that a cursor is bound to, stable pages
//   - D8: Cache-Control of one meeting: private, max-age=30
//   - D9: the cost of a change after the minutes: one credit a call, never
//     below 0
//   - D10: upload URLs: 900 seconds, HMAC, one successful PUT, errors as
//     XML
//   - D11: content types: repeated byte for byte; audio/*, video/* and
//     application/ogg are processed; 1 to 1,000,000,000 bytes
//   - D12: source states of the failures; when transcript and minutes are
//     served
//   - D13: duration from the header of a WAV file or from a [Script], else 16,000
//     bytes a second; from transcribing on; minutes cost one credit
//   - D14: no member id in a transcript; names in the minutes; vocabulary
//     applied
//   - D15: prefixes of ids; 500 terms and 1,000 members unless set; adding a
//     term that is there: 200
//   - D16: 404 and 405 in the envelope; details of EMAIL_TAKEN; emails
//     without regard to case
//   - D17: who can see and change a meeting
//   - D18: which keys work; 401 before 404 and 405; suspended before
//     expired; EMAIL_TAKEN before MEMBER_LIMIT_EXCEEDED
//   - D19: empty strings in bodies and queries; trimming; invalid UTF-8
//   - D20: duplicates in lists; shared_with checked always; archived
//     projects; variants of terms that stay
//   - D21: HEAD, 405 with Allow, trailing slashes, 413, Content-Type
//   - D22: an upload URL after the audio arrived; any change of the URL; a
//     body cut short
//   - D23: seconds set aside when the audio arrives; 1,000 credits and
//     360,000 seconds unless set
//   - D24: order by creation; cursors across limits and keys; tpl_standard;
//     a top-up is a month after the last
//   - D25: the rest of the order of errors; seconds given back;
//     minutes written once
package minutestest
