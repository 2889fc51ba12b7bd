package minutes_test

import (
	"context"
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The body and the query omit empty parameters. Lists that the interface requires are never null.
func TestMembers_OmitEmptyParameters(t *testing.T) {
	t.Parallel()
	requireSent(t, map[string]optional{
		"member with a name only": {"member", "", `{"name":"Dai"}`, func(c *minutes.Client) error {
			_, err := c.Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Dai"})
			return err
		}},
	})
}

// Absent, null and empty fields of a response decode to their Go values.
func TestMembers_DecodeAbsentAndNullFields(t *testing.T) {
	t.Parallel()
	requireDecoded(t, []variant{
		{"members.create", 201, "member_nulls", &minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberInvited}},
		{"members.create", 201, "member_absent", &minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberDeactivated}},
	})
}

// Every method rejects invalid parameters, by name, before any request.
func TestMembers_RejectUnusableParameters(t *testing.T) {
	t.Parallel()
	requireRejected(t, map[string]unusable{
		"member without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Members.Create(ctx, nil))
		}},
	})
}
