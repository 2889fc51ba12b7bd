package minutestest

import "time"

// Option changes a setting of a new [Server].
type Option func(*Server)

// WithWorld makes the Server begin with w instead of [DefaultWorld].
func WithWorld(w World) Option { return func(s *Server) { s.world = w } }

// WithMinPollInterval replaces [MinPollInterval] for the audit and in the Cache-Control of
// meetings, so that a suite without virtual time need not wait half a minute. A [minutes.Client]
// never polls more often than that anyway.
func WithMinPollInterval(d time.Duration) Option { return func(s *Server) { s.audit.interval = d } }

// WithSeed makes ids, cursors and upload URLs repeat exactly: the same requests at the same times,
// one after the other, get the same responses on every run. A seed of 0 is none.
//
// The Server has no jitter, but each Client has: a poll comes up to a second late, and a retry
// after a random wait. So after a wait ids still repeat, but timestamps, upload URLs and what a
// poll finds may not.
func WithSeed(seed uint64) Option { return func(s *Server) { s.seed = seed } }

// WithAudio keeps the bytes of recordings for [Server.Meeting]. Otherwise recordings are hashed and
// counted only, and cost no memory.
func WithAudio() Option { return func(s *Server) { s.keepAudio = true } }

// WithoutAudit turns the audit off for violations of these kinds; without kinds, for all of them.
// [Server.Violations] does not contain these kinds. To assert on violations that must not fail the
// test, make the Server with [New], and close it yourself.
func WithoutAudit(kinds ...ViolationKind) Option {
	if len(kinds) == 0 {
		kinds = violationKinds
	}
	return func(s *Server) { s.audit.ignored = append(s.audit.ignored, kinds...) }
}

// WithEdgeLimit makes the Server reject requests as the service's edge does: with a 429 that has no
// envelope, and Retry-After. Each key may send perSecond requests in each second of the clock,
// which in a synctest bubble is the bubble's. Uploads have no limit. In [Server.Requests], the
// Fault of a rejected request is "edge limit".
func WithEdgeLimit(perSecond int) Option { return func(s *Server) { s.edge.limit = perSecond } }

// WithLog calls log with each request when it has ended, in the goroutine that serves it, before
// the response is complete. Requests that are served at once are logged at once.
//
// The Server holds no lock meanwhile: log may call each of its methods but Close, and may use a
// client of it if that does not log without end. The request is in [Server.Requests] by then. The
// response waits until log returns. A panic in log crashes the program.
func WithLog(log func(Request)) Option { return func(s *Server) { s.log = log } }
