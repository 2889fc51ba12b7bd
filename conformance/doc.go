// Package conformance holds the behaviour that this module expects of the
// service, as a test that can be run against any service: the one in memory,
// which is what happens by default, or a real account.
//
//	MINUTES_CONFORMANCE_BASE_URL=https://… \
//	MINUTES_CONFORMANCE_API_KEY=… \
//	go test -v -run Conformance ./conformance
//
// Against a base URL the test only reads. More of it runs with
//
//   - MINUTES_CONFORMANCE_WRITE=1, which creates meetings, changes and deletes
//     them. Nothing is done that cannot be undone: no member, project or term
//     is created.
//   - MINUTES_CONFORMANCE_AUDIO=recording.wav beside it, which takes a meeting
//     from that recording to its minutes. It spends credits and seconds, and
//     as much time as the service takes; raise -timeout accordingly.
//
// # Scopes
//
// The scopes of the key are asked for first, with requests that change nothing:
//
//   - reading uses employees:read, meetings:read and minutes:read. What needs
//     one that the key lacks is skipped, and named;
//   - writing needs meetings:read, meetings:write and meetings:delete. Nothing
//     is created with a key that lacks one of them, since it could not be
//     deleted;
//   - a recording needs minutes:read too.
//
// # Leftovers
//
// Nothing. Each meeting carries an external_id that begins with
// minutes-go-conformance-, and is deleted at the end, even if the run is
// interrupted, fails, or comes near its -timeout. If a delete fails, the run creates
// no more and lists the meetings that are left. To delete the meetings of a killed
// run:
//
//	go test -v -run Cleanup ./conformance -cleanup
//
// with the same two variables and a key with meetings:read and meetings:delete.
// It takes the meetings of a run that is still going on for left ones, too.
//
// # Through a validating proxy
//
// A proxy such as Prism compares each response with the OpenAPI document:
//
//	npx @stoplight/prism-cli proxy -p 4010 docs/openapi.yaml https://…
//
// Run the suite with MINUTES_CONFORMANCE_BASE_URL=http://127.0.0.1:4010. A line of Prism's
// log with "Violation: response" is a difference between the service and the document.
//
// Do not set --errors: with it, Prism itself rejects the invalid requests that the suite
// sends. Even without it, Prism rejects malformed JSON and fails on HEAD. So the suite passes,
// but its log names D5 and D21. Uploads bypass the proxy.
//
// # Differences
//
// The test speaks plain HTTP and does not use the client. A difference from the
// interface document is an error. If the document is silent, this module
// assumes something, under a number (D1 to D25). The test logs a difference
// from an assumption with its number, and the log ends with the assumptions
// that turned out to be wrong. Against the in-memory service, both are errors.
package conformance
