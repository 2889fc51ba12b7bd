package minutes_test

import (
	"context"
	"testing"

	"github.com/meeting-minutes/minutes-go"
)

func TestProjectsOnTheWire(t *testing.T) {
	t.Parallel()
	onTheWire(t, "projects", 2)
}

// Parameters that cannot be used are refused, by name, before any request.
func TestProjectsParametersRefused(t *testing.T) {
	t.Parallel()
	const bad = "text\xff\xfe"
	refuse(t, map[string]unusable{
		"project name": {"name", func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Projects.Create(ctx, bad)) }},
	})
}
