package minutes

// Code is a machine-readable error code of the service (section 7 of the
// interface). It is an error itself, so that a code can be the target of
// [errors.Is]:
//
//	if errors.Is(err, minutes.ErrNotFound) { … }
//
// The type is open: a code this package does not know arrives unchanged.
type Code string

// Error returns the code as the service spells it.
func (c Code) Error() string { return string(c) }

// The codes of section 7 of the interface, each documented by the service.
const (
	// ErrInvalidRequest (400): the body, or the combination of query
	// parameters, is invalid; Error.Details names the offending "fields".
	ErrInvalidRequest Code = "INVALID_REQUEST"
	// ErrBadRequest (400): refused, and no more specific code applies.
	ErrBadRequest Code = "BAD_REQUEST"
	// ErrInvalidEmail (400): the email is not a valid address.
	ErrInvalidEmail Code = "INVALID_EMAIL"
	// ErrInvalidLimit (400): the limit is not a whole number from 1 to 50.
	ErrInvalidLimit Code = "INVALID_LIMIT"
	// ErrInvalidCursor (400): the cursor does not come from an earlier page of
	// the same list.
	ErrInvalidCursor Code = "INVALID_CURSOR"
	// ErrInvalidDate (400): a date is not a calendar date as YYYY-MM-DD.
	ErrInvalidDate Code = "INVALID_DATE"
	// ErrInvalidDateRange (400): DateFrom lies after DateTo.
	ErrInvalidDateRange Code = "INVALID_DATE_RANGE"
	// ErrInvalidTime (400): a time of day is not HH:MM.
	ErrInvalidTime Code = "INVALID_TIME"
	// ErrInvalidExternalID (400): the external id is empty or too long.
	ErrInvalidExternalID Code = "INVALID_EXTERNAL_ID"
	// ErrInvalidSharedWith (400): SharedWith names members without an account,
	// or integrations; Error.Details lists them as "invalid".
	ErrInvalidSharedWith Code = "INVALID_SHARED_WITH"
	// ErrUnauthenticated (401): the key is missing, malformed, unknown,
	// expired or revoked.
	ErrUnauthenticated Code = "UNAUTHENTICATED"
	// ErrIPNotAllowed (403): the key has an allowlist and the caller's address
	// is not on it.
	ErrIPNotAllowed Code = "IP_NOT_ALLOWED"
	// ErrAPIAccessDisabled (403): the organisation has no API access, or the
	// integration behind the key is no longer active.
	ErrAPIAccessDisabled Code = "API_ACCESS_DISABLED"
	// ErrPersonalAPIKeysDisabled (403): the organisation has switched personal
	// keys off.
	ErrPersonalAPIKeysDisabled Code = "PERSONAL_API_KEYS_DISABLED"
	// ErrInsufficientScope (403): the key lacks the scope of the operation.
	ErrInsufficientScope Code = "INSUFFICIENT_SCOPE"
	// ErrOrganisationSuspended (403): the organisation is blocked.
	ErrOrganisationSuspended Code = "ORGANISATION_SUSPENDED"
	// ErrOrganisationExpired (403): the organisation's access has expired.
	ErrOrganisationExpired Code = "ORGANISATION_EXPIRED"
	// ErrForbidden (403): this caller may not change or delete the meeting.
	ErrForbidden Code = "FORBIDDEN"
	// ErrNotFound (404): there is no such resource, or the caller may not see
	// it; another member's private meeting is answered this way.
	ErrNotFound Code = "NOT_FOUND"
	// ErrEmailTaken (409): another member has this address; Error.Details
	// names the member.
	ErrEmailTaken Code = "EMAIL_TAKEN"
	// ErrMemberLimitExceeded (409): the organisation can hold no more members.
	ErrMemberLimitExceeded Code = "MEMBER_LIMIT_EXCEEDED"
	// ErrExternalIDTaken (409): another meeting carries this external id.
	ErrExternalIDTaken Code = "EXTERNAL_ID_TAKEN"
	// ErrMinutesNotReady (409): the minutes do not exist yet.
	ErrMinutesNotReady Code = "MINUTES_NOT_READY"
	// ErrTranscriptNotReady (409): the transcript does not exist yet.
	ErrTranscriptNotReady Code = "TRANSCRIPT_NOT_READY"
	// ErrParticipantsLocked (409): the meeting has audio, so its participants
	// can no longer change.
	ErrParticipantsLocked Code = "PARTICIPANTS_LOCKED"
	// ErrInternal (500): a fault on the service's side.
	ErrInternal Code = "INTERNAL_ERROR"
)

// ErrRateLimited stands for an answer of 429, which the service's edge gives
// without a code. The name is this package's own, not the service's.
const ErrRateLimited Code = "RATE_LIMITED"
