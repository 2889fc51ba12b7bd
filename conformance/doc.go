// Package conformance is a test suite to run, not a package to import: it checks that a service
// keeps the promises of the API reference. The service is the in-memory fake, unless you name a
// real one:
//
//	MINUTES_CONFORMANCE_BASE_URL=https://… MINUTES_CONFORMANCE_API_KEY=… \
//	go test -v -run Conformance ./conformance
//
// A real service is only read, unless you allow more:
//
//   - MINUTES_CONFORMANCE_WRITE=1 creates, changes and deletes meetings. It creates no members,
//     projects or terms, because the API cannot delete them.
//   - MINUTES_CONFORMANCE_AUDIO=recording.wav uploads that recording as well, and waits for its
//     minutes. This spends credits and seconds, and needs a -timeout that is long enough.
//
// Checks that need a scope which the key lacks are skipped. Nothing is created unless the key can
// delete it: every meeting of a run has an external_id that begins with minutes-go-conformance-,
// and is deleted at the end. If a delete fails, the run creates no more and names the meeting. A
// run that is killed leaves its meetings for the next run to delete, so do not start two at a time.
//
// The checks use net/http and not the Client, so that both cannot share a mistake. A difference
// from the API reference is an error. If the reference is silent, the Client and the fake assume
// something, so the test only logs that a real service differs.
package conformance
