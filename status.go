package minutes

import "slices"

// Status says how far the service has come with a meeting (section 3). The service may add statuses, so
// an unknown one neither ends a wait nor is final.
type Status string

// The statuses of a meeting for which all goes well, in order.
const (
	StatusCreated           Status = "created"            // no audio yet; participants can change
	StatusAudioUploaded     Status = "audio_uploaded"     // the recording is being prepared
	StatusTranscribing      Status = "transcribing"       // speech to text runs
	StatusTranscribed       Status = "transcribed"        // the transcript can be fetched
	StatusGeneratingMinutes Status = "generating_minutes" // the minutes are being written
	StatusMinutesReady      Status = "minutes_ready"      // transcript and minutes can be fetched
)

// The failure statuses, which are final.
const (
	StatusTranscriptionFailed Status = "transcription_failed" // create a new meeting to try again
	StatusMinutesFailed       Status = "minutes_failed"       // the transcript exists, the minutes do not; also if there were no credits left (assumed)
	StatusTranscribeBlocked   Status = "transcribe_blocked"   // too little quota when the audio arrived
	StatusAudioRejected       Status = "audio_rejected"       // the service rejected the recording, usually because of its size
)

// Failed reports whether s is one of the four failure statuses. They are final.
func (s Status) Failed() bool { return slices.Contains(failureStates, s) }

// Final reports whether s is minutes_ready or one of the failure statuses. They do not change any
// more.
func (s Status) Final() bool { return s == StatusMinutesReady || s.Failed() }

var (
	happyPath = []Status{StatusCreated, StatusAudioUploaded, StatusTranscribing, StatusTranscribed,
		StatusGeneratingMinutes, StatusMinutesReady}
	failureStates = []Status{StatusTranscriptionFailed, StatusMinutesFailed, StatusTranscribeBlocked, StatusAudioRejected}
)

// rank returns the position of s in happyPath, from 1, or 0 if s is not in it.
func (s Status) rank() int { return slices.Index(happyPath, s) + 1 }

// Visibility says who inside the organisation can see a meeting (section 2.1).
type Visibility string

// The visibilities that the API reference names.
const (
	VisibilityPrivate      Visibility = "private"      // only its creator
	VisibilityOrganisation Visibility = "organisation" // everyone in the organisation
	VisibilityShared       Visibility = "shared"       // its creator and the members in SharedWith
)

// Format selects how minutes are written (section 2.6).
type Format string

// The formats that the API reference names.
const (
	FormatHTML     Format = "html" // the service's default
	FormatMarkdown Format = "markdown"
)

// MemberStatus says whether a member can sign in (section 2.3). The service may add
// statuses. A meeting can only be shared with members that are active or invited.
type MemberStatus string

// The statuses of members that the API reference names.
const (
	MemberActive      MemberStatus = "active"      // can sign in
	MemberInvited     MemberStatus = "invited"     // has an invitation to sign in
	MemberNoAccount   MemberStatus = "no_account"  // has no account, like every member that Create adds
	MemberDeactivated MemberStatus = "deactivated" // can no longer sign in
)
