package poll

import "github.com/meeting-minutes/minutes-go/internal/failure"

// A kind for each way in which a failure ends a wait, and the one that is no failure of a request.
const (
	Transient   = failure.Lost
	RateLimited = failure.RateLimited
	Foreign     = failure.ForeignStatus
	Gone        = failure.Gone
	Rejected    = failure.Rejected
	KeyRejected = failure.KeyRejected
)
