package engine

import (
	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// StoragePut is the operation of a PUT to storage, which is not in the route table of the API.
// Every request below /storage/ has it, with any method.
const StoragePut = route.Upload

// Exchange describes one request and its response. Fields that do not apply are zero.
type Exchange struct {
	Operation route.Operation   // "" for a path or a method the interface does not have
	Status    int               // of the response
	Code      minutes.ErrorCode // of an error response of the API
	RequestID string            // of an error response of the API, or of any of storage

	KeySecret    string // the key as sent, known or not
	Organisation string // the organisation's id, once the key is known
	Caller       string // id of the member or integration behind the key
	Personal     bool   // the key is a member's own

	MeetingID  string // the meeting in the path, or the one created or returned by a create
	ExternalID string // the external id in the body of a create or the query of a list

	// MeetingStatus is the meeting's status as this request found it: the one that a GET showed, or
	// the one before an upload URL was requested. It is set if the caller was allowed to see the
	// meeting.
	MeetingStatus minutes.Status

	Body []byte // the JSON body of the request, as far as it was read

	// Of the requests to storage.
	StorageCode          string // the <Code> of an error response
	StorageAuthorization bool   // an Authorization header was sent to storage
	StorageBytes         int64  // bytes of the recording that arrived
}
