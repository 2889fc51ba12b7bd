// Package minutestest is the Meeting Minutes Service in memory, for the tests
// of programs that use it. It is the whole service, with its storage, its
// thirty-second manners and its failures, and it needs no network, no account
// and no waiting.
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
// serves any number of bubbles, each on its own time. Without a bubble,
// [Server.Advance] moves a meeting on without a clock; a client that waits for
// it still keeps its thirty seconds between two looks.
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
//	srv.Inject(minutestest.Match{Operation: "meetings.create", Nth: 2}, minutestest.LoseReply())
//
// A fault that has not struck by the end of the test fails the test.
//
// # What is watched
//
// [Server.Requests] tells what arrived, in order and without secrets, and
// [Server.Meeting] all there is to know about a meeting, its audio's SHA-256
// and the instants of its history included. [Server.Violations] tells what the
// service asks clients not to do and one has done: a look at a meeting before
// its thirty seconds are over, a key sent to storage, a request repeated that
// may be done only once. With [NewServer] a violation fails the test;
// [WithoutAudit] turns that off.
//
// # How true it is
//
// Everything that the interface document says is here, and checked. Where it
// is silent, the Server makes up its mind, and the service may differ: the
// routes of transcript, projects, templates, usage and vocabulary, the scopes
// of participants and upload URLs, what separates the 200 from the 409 of a
// repeated external_id, the order of refusals, and limits such as 500 terms
// and 1,000 members. A client does well not to depend on these.
package minutestest
