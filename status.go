package minutes

import "slices"

// Status is the state of a meeting (section 3). The service may add states: an unknown Status
// decodes without an error, is not final, and ends no wait.
type Status string

// The happy path, in order.
const (
	StatusCreated           Status = "created"            // no audio yet; participants can change
	StatusAudioUploaded     Status = "audio_uploaded"     // the recording is being prepared
	StatusTranscribing      Status = "transcribing"       // speech to text runs
	StatusTranscribed       Status = "transcribed"        // the transcript can be fetched
	StatusGeneratingMinutes Status = "generating_minutes" // the minutes are being written
	StatusMinutesReady      Status = "minutes_ready"      // transcript and minutes can be fetched
)

// The failure states.
const (
	StatusTranscriptionFailed Status = "transcription_failed" // create a new meeting to try again
	StatusMinutesFailed       Status = "minutes_failed"       // there is a transcript, but no minutes; perhaps for lack of credits (assumed)
	StatusTranscribeBlocked   Status = "transcribe_blocked"   // too little transcription quota when the audio arrived
	StatusAudioRejected       Status = "audio_rejected"       // the service rejected the file, usually because of the size
)

// Failed reports whether s is one of the four failure states. Failure states are final (assumed).
func (s Status) Failed() bool { return slices.Contains(failureStates, s) }

// Final reports whether a meeting with the status s never changes its status again: s is
// minutes_ready or a failure state.
func (s Status) Final() bool { return s == StatusMinutesReady || s.Failed() }

var (
	happyPath = []Status{StatusCreated, StatusAudioUploaded, StatusTranscribing, StatusTranscribed,
		StatusGeneratingMinutes, StatusMinutesReady}
	failureStates = []Status{StatusTranscriptionFailed, StatusMinutesFailed, StatusTranscribeBlocked, StatusAudioRejected}
)

// rank returns the position of s on the happy path, from 1, or 0 if s is not on it.
func (s Status) rank() int { return slices.Index(happyPath, s) + 1 }

// Visibility determines who inside the organisation can see a meeting (section 2.1).
type Visibility string

// The three visibilities of the interface.
const (
	VisibilityPrivate      Visibility = "private"      // only the creator
	VisibilityOrganisation Visibility = "organisation" // everybody in the organisation
	VisibilityShared       Visibility = "shared"       // the creator and the members in SharedWith
)

// Format is the format of minutes (section 2.6).
type Format string

// The two formats of the interface.
const (
	FormatHTML     Format = "html" // the service's default
	FormatMarkdown Format = "markdown"
)

// MemberStatus shows whether a member can sign in (section 2.3). The service may add values.
// Meetings can be shared only with active and invited members.
type MemberStatus string

// The member states of the interface.
const (
	MemberActive      MemberStatus = "active"      // can sign in
	MemberInvited     MemberStatus = "invited"     // has an invitation to sign in
	MemberNoAccount   MemberStatus = "no_account"  // cannot sign in, like members that Create adds
	MemberDeactivated MemberStatus = "deactivated" // can no longer sign in
)
