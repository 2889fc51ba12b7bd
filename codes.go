package minutes

// ErrorCode is a machine-readable error code of the service (section 7 of the interface
// document). It is an error, so that it can be the target of [errors.Is]. The service may
// add codes: Error.Code has an unknown code unchanged.
type ErrorCode string

// Error returns the code as the service spells it.
func (c ErrorCode) Error() string { return string(c) }

// The codes of section 7 of the interface document. Each comment begins with the HTTP status.
const (
	ErrInvalidRequest    ErrorCode = "INVALID_REQUEST"     // 400: the body or the query is invalid; Details["fields"] names the fields
	ErrBadRequest        ErrorCode = "BAD_REQUEST"         // 400: no more specific code applies
	ErrInvalidEmail      ErrorCode = "INVALID_EMAIL"       // 400: not a valid address
	ErrInvalidLimit      ErrorCode = "INVALID_LIMIT"       // 400: not a whole number from 1 to 50
	ErrInvalidCursor     ErrorCode = "INVALID_CURSOR"      // 400: not from an earlier page of the same list
	ErrInvalidDate       ErrorCode = "INVALID_DATE"        // 400: not a calendar date as YYYY-MM-DD
	ErrInvalidDateRange  ErrorCode = "INVALID_DATE_RANGE"  // 400: DateFrom is after DateTo
	ErrInvalidTime       ErrorCode = "INVALID_TIME"        // 400: a time of day that is not HH:MM
	ErrInvalidExternalID ErrorCode = "INVALID_EXTERNAL_ID" // 400: empty or too long
	ErrInvalidSharedWith ErrorCode = "INVALID_SHARED_WITH" // 400: members without an account, or integrations; Details["invalid"] lists them

	ErrUnauthenticated ErrorCode = "UNAUTHENTICATED" // 401: the key is missing, malformed, unknown, expired or revoked

	ErrIPNotAllowed            ErrorCode = "IP_NOT_ALLOWED"             // 403: the key has an allowlist and the caller's IP address is not on it
	ErrAPIAccessDisabled       ErrorCode = "API_ACCESS_DISABLED"        // 403: the organisation has no API access, or the integration is no longer active
	ErrPersonalAPIKeysDisabled ErrorCode = "PERSONAL_API_KEYS_DISABLED" // 403: the organisation disabled personal keys
	ErrInsufficientScope       ErrorCode = "INSUFFICIENT_SCOPE"         // 403: the key lacks the scope of the operation
	ErrOrganisationSuspended   ErrorCode = "ORGANISATION_SUSPENDED"     // 403: the organisation is blocked
	ErrOrganisationExpired     ErrorCode = "ORGANISATION_EXPIRED"       // 403: the organisation's access has expired
	ErrForbidden               ErrorCode = "FORBIDDEN"                  // 403: this caller may not change or delete the meeting

	ErrNotFound ErrorCode = "NOT_FOUND" // 404: does not exist, or the caller may not see it, such as another member's private meeting

	ErrEmailTaken          ErrorCode = "EMAIL_TAKEN"           // 409: another member has the address; Details name the member
	ErrMemberLimitExceeded ErrorCode = "MEMBER_LIMIT_EXCEEDED" // 409: the organisation can hold no more members
	ErrExternalIDTaken     ErrorCode = "EXTERNAL_ID_TAKEN"     // 409: another meeting has this external id
	ErrMinutesNotReady     ErrorCode = "MINUTES_NOT_READY"     // 409: the minutes do not exist yet
	ErrTranscriptNotReady  ErrorCode = "TRANSCRIPT_NOT_READY"  // 409: the transcript does not exist yet
	ErrParticipantsLocked  ErrorCode = "PARTICIPANTS_LOCKED"   // 409: the meeting has audio, so its participants can no longer change

	ErrInternal ErrorCode = "INTERNAL_ERROR" // 500: a fault on the service's side
)

// Scope is a permission of an API key (section 5). The service may add scopes.
type Scope string

// The scopes that operations need.
const (
	ScopeEmployeesRead  Scope = "employees:read"
	ScopeEmployeesWrite Scope = "employees:write"
	ScopeMeetingsRead   Scope = "meetings:read"
	ScopeMeetingsWrite  Scope = "meetings:write"
	ScopeMeetingsDelete Scope = "meetings:delete"
	ScopeMinutesRead    Scope = "minutes:read"
)

// ErrRateLimited matches every 429. It is also the Code of a 429 whose response has no code,
// as the service's edge sends it. This package defines it, not the service.
const ErrRateLimited ErrorCode = "RATE_LIMITED"
