// Package minutestest is the Meeting Minutes Service in memory, for the tests
// of programs that use it. It is the whole service, with its storage, its
// failures and the thirty seconds that it asks for between two polls, and it needs
// neither network nor account.
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
// [Server.Client] is a [minutes.Client] that is ready for use. Code that makes
// a Client of its own is given [BaseURL], [Server.Key] and
// [Server.HTTPClient]. Nothing leaves the process: each connection is a pipe,
// with real HTTP/1.1 on it. Code in another process, or another language,
// is served on a socket by [Server.Listen].
//
// # Time
//
// A meeting takes its time from audio to minutes, and a client asks for its
// status every thirty seconds at most. In a testing/synctest bubble both cost
// nothing:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := minutestest.NewServer(t)
//		…
//		got, err := srv.Client().Meetings.WaitForMinutes(t.Context(), m.ID, nil) // half a minute later, at once
//	})
//
// A Server that is made in a bubble is that bubble's. One that is made outside
// serves any number of bubbles, each on its own time.
//
// Without a bubble the client's thirty seconds between two looks are real ones.
// [Server.Advance] saves them where the test takes the steps one by one: a
// meeting that it moves on between Upload and Wait is ready at the first look.
// Where one call does all, a [Script] has the meetings take no time worth
// speaking of:
//
//	err := srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // nanoseconds
//
// # The world
//
// A Server begins with [DefaultWorld]: an organisation, its people and three
// keys. [WithWorld] begins with another, which [LoadWorld] can read from a
// file, and [Server.Update] changes it on the way: quota runs out, a key is
// revoked, a member leaves.
//
// # What becomes of meetings
//
// Any recording becomes minutes of a short conversation, unless a [Script]
// says otherwise: another outcome, transcript or pace, for all meetings, for
// those of one title, or for one alone. A script can also hold a meeting in a
// state until it is released.
//
//	err := srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # What goes wrong
//
// [Server.Inject] has requests go wrong as networks, proxies and services have
// them go wrong: refused at the edge, reset before they were read or after they
// took effect, answered by a proxy's HTML, cut short, slow. Which requests, and
// how many, is exact and the same on every run.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseReply())
//
// A fault that was never applied fails the test.
//
// # The audit
//
// [Server.Requests] returns what arrived, in order and without secrets, and
// [Server.Meeting] all there is to know about a meeting, its audio's SHA-256
// and the instants of its history included. [Server.Violations] returns what the
// service asks clients not to do and one has done: a GET of a meeting before
// its thirty seconds are over, a key sent to storage, a request repeated that
// may be done only once. With [NewServer] a violation fails the test;
// [WithoutAudit] turns that off.
//
// The audit checks only what the interface document requires. [ViolationKind]
// lists the violations, what counts as one program, and when each can be
// innocent.
//
// # Situations
//
// The cookbook has a line of code for each of some fifty situations, from a key
// that is revoked midway to an outage of five minutes:
// https://github.com/meeting-minutes/minutes-go/blob/main/docs/testing.md
//
// # To see it
//
// [Server.Report] writes all of that as a page: a line for each meeting, with
// its states and the requests that looked at it or changed it, one file to open
// in a browser. It needs no server, loads nothing, and holds no secret. A test
// that fails leaves one by itself where go test is asked to keep such things:
//
//	go test -artifacts -outputdir /tmp ./...
//
// Its log says where, and a violation that failed the test is what the page
// opens with. In a synctest bubble the times are the bubble's. [Server.Inspector]
// is the same page, live, for a program that runs; minutes-fake has it at its
// control address.
//
// # What it takes
//
// A Server may run for weeks, and a hostile or broken client does it no harm.
// Headers end at 64 KiB, JSON bodies at 1 MiB; a body that stands still for five
// minutes is given up; of the requests the last 4,096 are kept, or as many as
// 32 MiB hold; recordings are hashed and counted, and kept only by [WithAudio],
// up to 256 MiB together. A page that watches costs a twentieth of a processor at
// most, and nothing that stays; sixteen may. A Server that stands behind [Server.Handler] has its
// limit of headers from the server in front of it.
//
// # Fuzz targets and benchmarks
//
// [NewServer] takes a *testing.F and a *testing.B, too. A Server made with a
// *testing.F serves all the inputs of its fuzz target, and is checked when the
// fuzz test ends; one made with the target's own *testing.T serves one input. The
// example of NewServer on fuzzing shows it.
//
// # How true it is
//
// Everything that the interface document says is here, and checked. Where it
// is silent, the Server makes up its mind, and the service may differ. A client
// does well not to depend on these decisions:
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
//   - D5: null in a PATCH, lengths in code points, unknown fields, what a
//     malformed body answers
//   - D6: the order of refusals
//   - D7: filters that exclude each other, external_id without a match, what
//     a cursor is bound to, stable pages
//   - D8: Cache-Control of one meeting: private, max-age=30
//   - D9: what a change after the minutes costs: one credit a call, never
//     below 0
//   - D10: upload URLs: 900 seconds, HMAC, one successful PUT, refusals as
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
//   - D17: who sees and who may change what
//   - D18: which keys work; 401 before 404 and 405; suspended before
//     expired; EMAIL_TAKEN before MEMBER_LIMIT_EXCEEDED
//   - D19: empty strings in bodies and queries; trimming; NUL and invalid
//     UTF-8, of which a refusal names 32 fields at most that it does not know
//   - D20: duplicates in lists; shared_with checked always; archived
//     projects; variants of terms that stay
//   - D21: HEAD, 405 with Allow, trailing slashes, 413, Content-Type
//   - D22: an upload URL after the audio arrived; any change of the URL; a
//     body cut short
//   - D23: seconds set aside when the audio arrives; 1,000 credits and
//     360,000 seconds unless set
//   - D24: order by creation; cursors across limits and keys; tpl_standard
//   - D25: what is left of the order of refusals; seconds given back;
//     minutes written once
package minutestest
