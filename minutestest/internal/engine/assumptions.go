package engine

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// This file holds every value that the interface leaves open and this service
// had to choose, with the number of the decision. The real service may differ
// in each.
const (
	// D2: who sees a meeting created without a visibility.
	defaultIntegrationVisibility = minutes.VisibilityOrganisation
	defaultPersonalVisibility    = minutes.VisibilityPrivate

	// D8: GET of one meeting.
	meetingCacheControl = "private, max-age=30"

	// D9, D12: prices.
	reindexCredits = 1
	minutesCredits = 1

	// D10: how long an upload URL is valid.
	uploadURLValidity = 900 * time.Second

	// D11: the longest recording that is processed.
	maxAudioBytes = 1_000_000_000

	// D13: the size of a second of a recording, if its container has no duration.
	bytesPerSecond = 16_000

	// D15: prefixes of ids.
	memberPrefix  = "emp_"
	meetingPrefix = "mtg_"
	projectPrefix = "prj_"
	requestPrefix = "req_"

	// D15: an organisation's limits, unless set.
	defaultMaxTerms   = 500
	defaultMaxMembers = 1_000

	// D21: the longest JSON body.
	MaxBodyBytes = 1 << 20

	// D23: an organisation's quota, unless set.
	defaultCredits           = 1_000
	defaultTranscribeSeconds = 360_000
)

// D11: the types that are processed, beside audio/* and video/*.
var otherAudioTypes = []string{"application/ogg"}

// D24: the template of an organisation that has none. It is the default
// (D25).
var standardTemplate = Template{ID: "tpl_standard", Name: "Standard minutes", Source: "service", IsDefault: true}

// The interface's own limits (section 8).
const (
	maxTitle       = 300
	maxExternalID  = 128
	maxMemberName  = 80
	maxMemberRole  = 80
	maxDescription = 300
	maxProjectName = 120
	maxLimit       = 50
	defaultLimit   = 25
)

// Assumption is one decision that the interface leaves open.
type Assumption struct {
	Number int    // of the decision: 2 for D2
	Title  string // its subject
}

// Assumptions lists the decisions of this service. It has none for the points
// that the interface settles.
var Assumptions = []Assumption{
	{1, "paths and scopes the interface does not show: transcript, projects, templates, usage, vocabulary; scopes of participants and upload-url"},
	{2, "visibility of a meeting created without one: the integration's default, organisation unless set; private with a personal key"},
	{3, "create with an external_id that exists: 200 where the caller sees the meeting, else 409 EXTERNAL_ID_TAKEN"},
	{4, "unknown participant, project or template ids: 404; unknown ids in shared_with: INVALID_SHARED_WITH"},
	{5, "null in a PATCH, lengths in code points, unknown fields, what a malformed body answers"},
	{6, "the order of refusals"},
	{7, "filters that exclude each other, external_id without a match, what a cursor is bound to, stable pages"},
	{8, "Cache-Control of one meeting: private, max-age=30"},
	{9, "what a change after the minutes costs: one credit a call, never below 0"},
	{10, "upload URLs: 900 seconds, HMAC, one successful PUT, refusals as XML"},
	{11, "content types: repeated byte for byte; audio/*, video/* and application/ogg are processed; 1 to 1,000,000,000 bytes"},
	{12, "source states of the failures; when transcript and minutes are served"},
	{13, "duration from the container, else 16,000 bytes a second; from transcribing on; minutes cost one credit"},
	{14, "no member id in a transcript; names in the minutes; vocabulary applied"},
	{15, "prefixes of ids; 500 terms and 1,000 members unless set; adding a term that is there: 200"},
	{16, "404 and 405 in the envelope; details of EMAIL_TAKEN; emails without regard to case"},
	{17, "who sees and who may change what"},
	{18, "which keys work; 401 before 404 and 405; suspended before expired; EMAIL_TAKEN before MEMBER_LIMIT_EXCEEDED"},
	{19, "empty strings in bodies and queries; trimming; NUL and invalid UTF-8"},
	{20, "duplicates in lists; shared_with checked always; archived projects; variants of terms that stay"},
	{21, "HEAD, 405 with Allow, trailing slashes, 413, Content-Type"},
	{22, "an upload URL after the audio arrived; any change of the URL; a body cut short"},
	{23, "seconds set aside when the audio arrives; 1,000 credits and 360,000 seconds unless set"},
	{24, "order by creation; cursors across limits and keys; tpl_standard"},
	{25, "what is left of the order of refusals; seconds given back; minutes written once"},
}
