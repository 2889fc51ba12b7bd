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
// [Server.Client] returns a [minutes.Client] that is ready for use. Code that
// makes its own Client needs [BaseURL], [Server.Key] and [Server.HTTPClient].
// Nothing leaves the process: each connection is a pipe, with real HTTP/1.1 on
// it. For other processes and languages, [Server.Listen] serves on a socket.
//
// # Time
//
// A meeting takes some time from audio to minutes, and a client polls its
// status at most every thirty seconds. In a testing/synctest bubble both take
// no real time:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := minutestest.NewServer(t)
//		…
//		got, err := srv.Client().Meetings.WaitForMinutes(t.Context(), m.ID, nil) // half a minute later, at once
//	})
//
// A Server created inside a bubble uses that bubble's clock. A Server created
// outside can serve several bubbles, each with its own clock.
//
// Without a bubble, the client waits thirty real seconds between two polls. Two
// settings avoid that. If the test calls [Server.Advance] between Upload and
// Wait, the first poll finds the minutes. If one call does everything, use a
// [Script] with very short stages:
//
//	err := srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // nanoseconds
//
// # World
//
// A Server starts with [DefaultWorld]: an organisation, its people and three
// keys. [WithWorld] sets another one, which [LoadWorld] can read from a file.
// [Server.Update] changes it during the test: quota runs out, a key is revoked,
// a member leaves.
//
// # Outcomes of meetings
//
// Any recording becomes minutes of a short conversation, unless a [Script] sets
// another outcome, transcript or pace. A script applies to all meetings, to
// those with one title, or to one meeting. A script can also hold a meeting in
// a state until the test releases it.
//
//	err := srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # Faults
//
// [Server.Inject] makes requests fail as they fail in networks, proxies and
// services: the edge rejects them, the connection is reset before or after they
// take effect, a proxy answers with HTML, a response is truncated or slow. The
// Match selects exactly the same requests on every run.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseReply())
//
// A fault that was never applied fails the test.
//
// # The audit
//
// [Server.Requests] returns the requests, in order and without secrets.
// [Server.Meeting] returns everything about a meeting, including its audio's
// SHA-256 and the times of its history. [Server.Violations] returns the
// client's violations of the service's rules: a GET of a meeting before its
// thirty seconds are over, a key sent to storage, a retry of a request that is
// not safe to retry. With [NewServer] a violation fails the test;
// [WithoutAudit] turns that off.
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
// [Server.Report] writes all of that as a page: a line for each meeting, with
// its states and the requests that polled or changed it. The page is one file
// to open in a browser. It needs no server, loads nothing, and holds no secret.
// If a test fails and go test has -artifacts, the Server writes a report by
// itself:
//
//	go test -artifacts -outputdir /tmp ./...
//
// The test's log contains its path. If a violation failed the test, the page
// opens on it. In a synctest bubble the times are the bubble's.
// [Server.Inspector] serves the same page, live, for a running program;
// minutes-fake serves it at its control address.
//
// # Limits
//
// A Server can run for weeks, and a hostile or broken client does it no harm:
//   - Headers are limited to 64 KiB, JSON bodies to 1 MiB. With [Server.Handler],
//     your own server limits the headers.
//   - A body that makes no progress for five minutes is aborted.
//   - The last 4,096 requests are kept, or as many as 32 MiB hold.
//   - Recordings are hashed and counted. Only [WithAudio] keeps them, up to 256 MiB
//     together.
//   - Up to sixteen pages can watch at once. Each costs at most a twentieth of a
//     processor.
//
// # Fuzz targets and benchmarks
//
// [NewServer] also takes a *testing.F or a *testing.B. A Server made with a
// *testing.F serves all the inputs of its fuzz target, and is checked when the
// fuzz test ends. A Server made with the target's *testing.T serves one input.
// See the example of NewServer on fuzzing.
//
// # Fidelity
//
// The Server implements and checks everything that the interface document says.
// If the document is silent, the Server follows the decisions below, and the
// real service may differ. Do not depend on them:
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
//   - D13: duration from the container, else 16,000 bytes a second; from
//     transcribing on; minutes cost one credit
//   - D14: no member id in a transcript; names in the minutes; vocabulary
//     applied
//   - D15: prefixes of ids; 500 terms and 1,000 members unless set; adding a
//     term that is there: 200
//   - D16: 404 and 405 in the envelope; details of EMAIL_TAKEN; emails
//     without regard to case
//   - D17: who can see and change a meeting
//   - D18: which keys work; 401 before 404 and 405; suspended before
//     expired; EMAIL_TAKEN before MEMBER_LIMIT_EXCEEDED
//   - D19: empty strings in bodies and queries; trimming; NUL and invalid
//     UTF-8; an error names at most 32 unknown fields
//   - D20: duplicates in lists; shared_with checked always; archived
//     projects; variants of terms that stay
//   - D21: HEAD, 405 with Allow, trailing slashes, 413, Content-Type
//   - D22: an upload URL after the audio arrived; any change of the URL; a
//     body cut short
//   - D23: seconds set aside when the audio arrives; 1,000 credits and
//     360,000 seconds unless set
//   - D24: order by creation; cursors across limits and keys; tpl_standard
//   - D25: the rest of the order of errors; seconds given back;
//     minutes written once
package minutestest
