package minutes_test

import (
	"context"
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Every method rejects invalid parameters, by name, before any request.
func TestProjects_RejectUnusableParameters(t *testing.T) {
	t.Parallel()
	const bad = "text\xff\xfe"
	requireRejected(t, map[string]unusable{
		"project name": {"Name", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Projects.Create(ctx, &minutes.ProjectCreateParams{Name: bad}))
		}},
	})
}
