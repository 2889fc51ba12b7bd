// Package failure says what follows each kind of failure. It is the one place where that is
// decided: retries (internal/rest), waits (internal/poll), the fetch after a wait, Retryable and
// KeyRejected (the root) read a column of [Means]. Two functions find the kind: rest.KindOf from
// what a connection and a status show, and the root's kindOf from an error.
package failure

// Kind is a kind of failure. If several apply, the first one counts.
type Kind int

const (
	// None means that nothing failed.
	None Kind = iota
	// Canceled is the end of the caller's ctx by a cancellation.
	Canceled
	// NoKey is an error of the function that returns the API key.
	NoKey
	// Misconfigured is a TLS failure, a proxy's 4xx to CONNECT or an invalid header: the next attempt
	// would fail, too.
	Misconfigured
	// RateLimited is a 429, or a pause after one that outlasts ctx's deadline. It comes from the
	// edge, so the service has not done anything.
	RateLimited
	// KeyRejected is the service's rejection of the key, or of the organisation as a whole.
	KeyRejected
	// KeyDoubted is a 401 without a code, which may be a proxy's.
	KeyDoubted
	// NotReady means that the minutes or the transcript do not exist yet.
	NotReady
	// ServerFailed is a status with which a request may have been carried out, or not: 500, 502, 503
	// or 504.
	ServerFailed
	// ServerUnsure is a 408, or any other 5xx, of which nobody knows whether a retry helps.
	ServerUnsure
	// NotConnected means that there was no connection, so nothing was sent.
	NotConnected
	// Lost is a connection that was lost before the end of the response, or a timeout of the attempt.
	Lost
	// ForeignPage is a 2xx with the page of another server, such as a proxy.
	ForeignPage
	// StorageFailed is a temporary failure of storage. internal/storage decides whether an upload
	// makes another attempt.
	StorageFailed
	// NoAudio means that the meeting has no audio although it should.
	NoAudio
	// Deadline is the end of the caller's ctx by its deadline.
	Deadline
	// Changed is a recording that changed during its upload.
	Changed
	// Oversized is a 2xx that is longer than the Client reads, as the next one would be.
	Oversized
	// Unreadable is a 2xx that does not match the API reference. The request was carried out.
	Unreadable
	// ForeignStatus is a 3xx or 4xx without a code of the service.
	ForeignStatus
	// Gone is the service's answer that there is no such meeting. It ends nothing just after a response
	// about the same meeting, because reads may lag behind writes.
	Gone
	// Rejected is the service's answer to this request or about this meeting, or storage's to an
	// upload.
	Rejected
	// Other is everything else, such as an unusable parameter or a meeting that failed.
	Other
)

// Retried says which requests the Client repeats by itself.
type Retried int

// The values of Retried.
const (
	No     Retried = iota
	IfSafe         // those that have the same effect if they are sent twice
	Always
)

// End says when a failure ends a wait, or the fetch after it.
type End int

// The values of End.
const (
	Never     End = iota + 1
	Later         // after ten minutes of nothing but such failures
	AtOnce        // the wait for this meeting
	AllAtOnce     // all waits of the Client
	AllLater      // all waits of the Client, after ten minutes of nothing but such failures
)

// Meaning is what follows a failure.
type Meaning struct {
	Retried     Retried
	EndsWait    End
	Retryable   bool // what the root's Retryable reports
	KeyRejected bool // what the root's KeyRejected reports
}

// Means has what follows each kind. docs/errors.md has the same table, and a test compares them.
var Means = [...]Meaning{
	Canceled:      {EndsWait: AtOnce},
	NoKey:         {EndsWait: AllLater, Retryable: true},
	Misconfigured: {EndsWait: Later},
	RateLimited:   {Retried: Always, EndsWait: Never, Retryable: true},
	KeyRejected:   {EndsWait: AllAtOnce, KeyRejected: true},
	KeyDoubted:    {EndsWait: Later, KeyRejected: true},
	NotReady:      {EndsWait: Never, Retryable: true},
	ServerFailed:  {Retried: IfSafe, EndsWait: Never, Retryable: true},
	ServerUnsure:  {EndsWait: Never, Retryable: true},
	NotConnected:  {Retried: Always, EndsWait: Never, Retryable: true},
	Lost:          {Retried: IfSafe, EndsWait: Never, Retryable: true},
	ForeignPage:   {EndsWait: Later, Retryable: true},
	StorageFailed: {Retried: IfSafe, EndsWait: AtOnce, Retryable: true},
	NoAudio:       {EndsWait: AtOnce, Retryable: true},
	Deadline:      {EndsWait: AtOnce, Retryable: true},
	Changed:       {EndsWait: AtOnce, Retryable: true},
	Oversized:     {EndsWait: AtOnce},
	Unreadable:    {EndsWait: Later},
	ForeignStatus: {EndsWait: Later},
	Gone:          {EndsWait: AtOnce},
	Rejected:      {EndsWait: AtOnce},
	Other:         {EndsWait: AtOnce},
}
