package minutes

import (
	"cmp"
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// MembersService reads and adds members of the organisation ([section 4.1]).
//
// [section 4.1]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#41-members
type MembersService struct{ service }

// Member is a person in the organisation ([section 2.3]), who can take part in a meeting or see it.
//
// [section 2.3]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Member struct {
	ID     string       `json:"id"` // begins with emp_; for ParticipantIDs and SharedWith
	Name   string       `json:"name"`
	Role   string       `json:"role,omitempty"` // in the organisation; may be empty
	Status MemberStatus `json:"status"`         // whether the member can sign in
}

// MemberStatus says whether a member can sign in ([section 2.3]). A meeting can only be shared with
// members that are active or invited. The service may add statuses.
//
// [section 2.3]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type MemberStatus string

// The statuses of members that the API reference names.
const (
	MemberStatusActive      MemberStatus = "active"      // can sign in
	MemberStatusInvited     MemberStatus = "invited"     // has an invitation to sign in
	MemberStatusNoAccount   MemberStatus = "no_account"  // has no account, as after Create
	MemberStatusDeactivated MemberStatus = "deactivated" // can no longer sign in
)

// MemberCreateParams describes a member to add, who needs only a Name.
type MemberCreateParams struct {
	Name  string `json:"name"`            // 1 to 80 characters
	Email string `json:"email,omitempty"` // unique within the organisation
	Role  string `json:"role,omitempty"`  // at most 80 characters
	// Description should say what the person does, because that helps to attribute speakers. It has
	// at most 300 characters.
	Description string `json:"description,omitempty"`
}

type memberList struct {
	Members []*Member `json:"members"`
}

// List returns the organisation's human members, without integrations, and needs the scope
// employees:read.
func (s *MembersService) List(ctx context.Context) ([]*Member, error) {
	list, _, err := call[memberList](ctx, s.core, OpMembersList, rest.Request{})
	return cmp.Or(list, new(memberList)).Members, err
}

// Create adds a member without an account, which costs no licence and sends nobody a message, and
// needs the scope employees:write. The Client does not retry a Create that may have taken effect,
// because a retry could add the member twice.
//
// Errors: [ErrInvalidRequest], [ErrInvalidEmail], [ErrEmailTaken] (Details names the member with
// the address), [ErrMemberLimitExceeded].
func (s *MembersService) Create(ctx context.Context, params *MemberCreateParams) (*Member, error) {
	err := checkGiven("params", params != nil)
	if err == nil {
		err = checkUTF8("params.Email", params.Email)
	}
	if err != nil {
		return nil, err
	}
	m, _, err := call[Member](ctx, s.core, OpMembersCreate, rest.Request{Body: params})
	return m, err
}

func (v *Member) missing(received) string { return lacks("id", v == nil || v.ID == "") }

func (l *memberList) missing(r received) string { return missingList("members", l.Members, r) }
