package engine

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// This file holds every value that the API reference leaves open and this service had to choose,
// with the number of the decision in docs/assumptions.md. The real service may differ in each.
const (
	// D2: visibility of a meeting created without one.
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

	// D13: the size of a second of a recording that is not a WAV file, or does not say it.
	bytesPerSecond = 16_000

	// D15: prefixes of ids.
	memberPrefix   = "emp_"
	meetingPrefix  = "mtg_"
	projectPrefix  = "prj_"
	templatePrefix = "tpl_"
	requestPrefix  = "req_"

	// D15: an organisation's limits, unless set.
	defaultMaxTerms   = 500
	defaultMaxMembers = 1_000

	// D21: the longest JSON body.
	MaxBodyBytes = 1 << 20

	// D23: an organisation's quota, unless set.
	defaultCredits           = 1_000
	defaultTranscribeSeconds = 360_000
)

// D24: the template of an organisation that has none. It is the default (D25).
var standardTemplate = world.Template{ID: "tpl_standard", Name: "Standard minutes", Source: "service", IsDefault: true}

// defaultSpecDate is the date of a meeting in a World that has none.
const defaultSpecDate = "2026-01-01"

// The API's own limits (section 8).
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
