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
//     them. A meeting that was created is deleted in the end. Nothing is done
//     that cannot be undone: no member, project or term is created.
//   - MINUTES_CONFORMANCE_AUDIO=recording.wav beside it, which takes a meeting
//     from that recording to its minutes. It spends credits and seconds, and
//     as much time as the service takes; raise -timeout accordingly.
//
// The test speaks plain HTTP and knows nothing of the client. A difference
// from what the interface document says is an error. Where the document is
// silent, this module assumes something, under a number (D1 to D25): a
// difference from that is logged with the number, and the log ends with the
// assumptions that turned out differently. Against the service in memory, both
// are errors.
package conformance
