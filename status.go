package minutes

import "slices"

// Status is the state of a meeting (section 3 of the interface). The type is
// open: a status this package does not know decodes, is not final and is
// never reached by a wait.
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

// The end states of failure.
const (
	StatusTranscriptionFailed Status = "transcription_failed" // create a new meeting to try again
	StatusMinutesFailed       Status = "minutes_failed"       // the transcript exists, the minutes do not; also where credits ran out (assumed)
	StatusTranscribeBlocked   Status = "transcribe_blocked"   // too little quota when the audio arrived
	StatusAudioRejected       Status = "audio_rejected"       // the file was refused, most often for its size
)

// Failed reports whether s is one of the four failure states. They are final
// from wherever they come.
func (s Status) Failed() bool { return slices.Contains(failureStates, s) }

// Final reports whether the meeting's status will not change any more:
// minutes_ready or one of the failure states.
func (s Status) Final() bool { return s == StatusMinutesReady || s.Failed() }

var (
	happyPath = []Status{StatusCreated, StatusAudioUploaded, StatusTranscribing, StatusTranscribed,
		StatusGeneratingMinutes, StatusMinutesReady}
	failureStates = []Status{StatusTranscriptionFailed, StatusMinutesFailed, StatusTranscribeBlocked, StatusAudioRejected}
)

// rank returns the position of s on the happy path, from 1, or 0 if s is not on it.
func (s Status) rank() int { return slices.Index(happyPath, s) + 1 }

// Visibility says who inside the organisation can see a meeting (section 2.1).
type Visibility string

// The three visibilities of the interface.
const (
	VisibilityPrivate      Visibility = "private"      // its creator alone
	VisibilityOrganisation Visibility = "organisation" // everybody in the organisation
	VisibilityShared       Visibility = "shared"       // its creator and the members in SharedWith
)

// Format is the form in which minutes are asked for (section 2.6).
type Format string

// The two formats of the interface.
const (
	FormatHTML     Format = "html" // the service's default
	FormatMarkdown Format = "markdown"
)

// MemberStatus says whether a member can sign in (section 2.3). The type is
// open. Only active and invited members can be shared a meeting with.
type MemberStatus string

// The member states of the interface.
const (
	MemberActive      MemberStatus = "active"      // can sign in
	MemberInvited     MemberStatus = "invited"     // has been asked to
	MemberNoAccount   MemberStatus = "no_account"  // has none, as those that Create adds
	MemberDeactivated MemberStatus = "deactivated" // no longer can
)
