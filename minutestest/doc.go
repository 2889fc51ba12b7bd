// Package minutestest is an in-memory fake of the Meeting Minutes Service, for the tests of
// programs that use it. It has the whole API, storage for the recordings, and faults to inject into
// both. Its audit fails the test of a program that breaks a rule of the service. It needs no
// network and no account.
//
// # A first test
//
//	func TestMinutes(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) { // virtual time, so that waits cost nothing
//			srv := minutestest.NewServer(t)
//			recording := minutes.FromReader(strings.NewReader("any bytes will do"), "audio/mpeg")
//			params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"}
//			result, err := srv.Client().Meetings.Process(t.Context(), params, recording, nil)
//			…
//		})
//	}
//
// [Server.Client] returns a [minutes.Client] that is ready for use. If your code creates its own
// Client, give it [BaseURL], [Server.Key] and [Server.NewHTTPClient]. Connections are in memory and
// carry real HTTP/1.1, so no request leaves the process. If your code runs in another process or in
// another language, use [Server.Listen] or the program minutes-fake, because both serve on a socket.
//
// A Server begins with [DefaultWorld]: an organisation, its people and three keys. [WithWorld] sets
// another [World], which [LoadWorld] can read from a file. [Server.Update] changes an organisation
// during the test, so that its quota runs out, a key is revoked or a member leaves.
// [Server.AddMeetings] and [Server.Delete] add and delete meetings as other people would.
//
// # Faults
//
// [Server.Inject] makes requests fail as networks, proxies and services do. A request can be
// rejected, lost before or after it took effect, answered with a proxy's HTML, cut short, slowed
// down, or not sent because its connection fails. A [Match] selects which requests fail, and how
// many. For the same faults in every run, name one meeting in the Match, or let your program work on
// one at a time.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseResponse())
//
// A fault that was applied fewer times than you asked fails the test, because otherwise the test
// would prove nothing. [WithEdgeLimit] rejects requests that exceed a rate, as the proxy in
// front of the service does.
//
// # Scripts
//
// The fake accepts any bytes as a recording, and so do [minutes.FromReader] and
// [minutes.FromReaderAt] with a content type such as audio/mpeg. [minutes.FromFile] does not,
// because it examines the content. By default, a recording becomes minutes of a short conversation.
// A [Script] sets another outcome, transcript or duration. It applies to one meeting (by its id or
// external id), to those with one title, or to all. It can also hold a meeting in a status until you
// call [Server.Release].
//
//	srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # Time
//
// The service may take hours to write minutes, and a Client polls a meeting at most every thirty
// seconds. In a testing/synctest bubble, neither the writing nor the polling costs real time,
// because the clock jumps ahead whenever all goroutines wait. A Server created inside a bubble
// belongs to that bubble, while one created outside can serve several bubbles, each with its own
// clock. Create each Client inside the bubble that uses it, otherwise its requests fail.
//
// Meetings take no time unless a World or a [Script] sets [Stages], so the first poll after an
// upload finds the minutes, and a test without a bubble is as fast. If a meeting is not ready at
// the first poll, the thirty seconds until the next one are real in a test without a bubble. After
// [Server.Advance] or [Server.Release], one Meetings.Get with the same Client wakes its wait at
// once, because a wait uses every response about its meeting that its Client receives.
//
// [Server.AdvanceClock] moves the service's time ahead, so that URLs and keys expire.
//
// # The audit
//
// [Server.Violations] lists each rule of the service that a client broke: for example, it polled a
// meeting again within thirty seconds, sent its key to storage, or repeated a create that may have
// taken effect. With [NewServer] a violation fails the test, unless [WithoutAudit] switches its
// kind off. [ViolationKind] defines what counts as one client, and its constants say when a
// violation can be a false positive.
//
// [Server.Requests] returns the requests themselves, in order and without secrets, and
// [Server.Meeting] returns everything about a meeting, including the SHA-256 of its recording.
// [Server.Report] shows requests, meetings and violations in one HTML file. If you run go test with
// -artifacts, a failed test writes this file by itself, and its log names the path.
//
// The cookbook has a line of code for each of about fifty situations, from a key that is revoked
// midway to an outage of five minutes:
// https://github.com/meeting-minutes/minutes-go/blob/main/docs/testing.md
//
// # Assumptions
//
// The Server does what the API reference says. If that is silent, it follows the decisions D1 to
// D25, and the real service may decide otherwise, so do not depend on them:
// https://github.com/meeting-minutes/minutes-go/blob/main/docs/assumptions.md
package minutestest
