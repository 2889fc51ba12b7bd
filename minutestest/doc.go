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
// Client, give it [BaseURL], [Server.Key] and [Server.NewHTTPClient]. No request leaves the
// process, although each connection carries real HTTP/1.1. If your code runs in another process or
// in another language, use [Server.Listen] or the program minutes-fake, because both serve on a
// socket.
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
// down, or not sent because its connection fails. A [Match] selects exactly which requests fail,
// and how many, so each run has the same faults.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Nth: 2}, minutestest.LoseResponse())
//
// A fault that was applied fewer times than you asked fails the test, because otherwise the test
// would prove nothing. [WithEdgeLimit] rejects requests that exceed a rate, as the service's edge
// does.
//
// # Scripts
//
// Any bytes are a recording, and by default they become minutes of a short conversation. A [Script]
// sets another outcome, transcript or duration, for one meeting, for those with one title, or for
// all. It can also hold a meeting in a status until you call [Server.Release].
//
//	srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusMinutesFailed})
//
// # Time
//
// If the service takes time to write minutes, a Client polls a meeting at most every thirty
// seconds. In a testing/synctest bubble neither costs real time, because the clock jumps ahead
// whenever all goroutines wait. A Server created inside a bubble belongs to that bubble, while one
// created outside can serve several bubbles, each with its own clock. Make each Client in the
// bubble that uses it: one from outside fails there at once, because its clock would be years
// ahead.
//
// Meetings take no time unless a World or a [Script] sets [Stages], so the first poll after an
// upload finds the minutes, and a test without a bubble is as fast. If a meeting is not ready at
// the first poll, the thirty seconds until the next one are real there. After [Server.Advance] or
// [Server.Release], one Meetings.Get with the same Client wakes its wait at once, because every
// response counts as a poll.
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
// The Server does what the API reference says. Where that is silent, it follows one of these
// decisions. The real service may decide otherwise, so do not depend on them:
//
//   - D1: transcript, projects, templates, usage and vocabulary have the routes and scopes that package
//     minutes assumes, and changing participants or requesting an upload URL needs meetings:write
//   - D2: without a visibility, a meeting is private if the key is personal; otherwise it gets its
//     integration's default, which is organisation unless set
//   - D3: a create with an external_id that exists gets 200 and that meeting if the caller may see it,
//     and 409 EXTERNAL_ID_TAKEN otherwise
//   - D4: unknown ids of participants, projects and templates get a 404, but unknown ids in shared_with
//     are INVALID_SHARED_WITH
//   - D5: null in a PATCH leaves a field alone, lengths count code points, unknown fields are ignored,
//     and a malformed body is INVALID_REQUEST
//   - D6: errors of the key come first, then a 404 for the meeting in the path, then a 400 for the body
//     or query; then come FORBIDDEN, a 404 for unknown ids in the body (see D25), and at last a 409
//   - D7: a list with external_id accepts neither dates nor a cursor, and is empty if no meeting
//     matches; a cursor is bound to the filters of its list, and pages neither repeat nor skip a meeting
//   - D8: a GET of one meeting gets the Cache-Control header "private, max-age=30"
//   - D9: a call that changes title, date or project once there are minutes costs one credit, or
//     nothing if none is left
//   - D10: an upload URL is signed with HMAC, expires after 900 seconds and accepts one successful PUT,
//     and the errors of storage are XML
//   - D11: the PUT must repeat the content type byte for byte, and only 1 to 1,000,000,000 bytes of
//     audio/*, video/* or application/ogg are processed
//   - D12: audio_rejected and transcribe_blocked follow audio_uploaded, transcription_failed follows
//     transcribing, and the statuses transcribed and later serve the transcript, even minutes_failed
//   - D13: the duration comes from a Script, otherwise from a WAV header, otherwise from the size at
//     16,000 bytes a second; a meeting shows it once it is transcribing; minutes cost one credit
//   - D14: transcripts omit member ids, so only the minutes have names; variants of terms are corrected
//     in both
//   - D15: ids have prefixes such as mtg_, limits are 500 terms and 1,000 members unless set, and adding
//     a term that is there gets a 200
//   - D16: unknown paths and wrong methods get 404 and 405 in the envelope, EMAIL_TAKEN has details, and
//     emails ignore case
//   - D17: only its creator sees a private meeting, but the members in shared_with see a shared one,
//     too; administrators and integrations can change the meetings they see, and other members only
//     those they created
//   - D18: only keys of active integrations and active members work, 401 comes before 404 and 405,
//     suspended before expired, and EMAIL_TAKEN before MEMBER_LIMIT_EXCEEDED
//   - D19: an empty string counts as absent except in external_id, date and limit; texts are trimmed;
//     invalid UTF-8 is INVALID_REQUEST
//   - D20: duplicates in lists count once, shared_with is always checked, archived projects get a 404,
//     and terms that are kept by a replacement keep their variants
//   - D21: HEAD works like GET, a 405 has Allow, a trailing slash makes another path, a body over 1 MiB
//     gets a 413, and responses are JSON with a Content-Type
//   - D22: an upload URL is rejected if it was changed or the recording has arrived, and a body cut
//     short leaves the meeting without audio
//   - D23: the seconds of a recording are set aside when it arrives, and an organisation has 1,000
//     credits and 360,000 seconds unless set
//   - D24: lists of meetings are newest first, by creation and not by date; a cursor works with another
//     limit or key, and an organisation without templates has tpl_standard
//   - D25: INVALID_REQUEST wins over specific codes; the 404 for unknown ids in a body comes after
//     FORBIDDEN and before a 409; deleting an untranscribed meeting gives back its seconds, and a later
//     title does not change the minutes
package minutestest
