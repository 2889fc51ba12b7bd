package minutes_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
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
		"project name": {"name", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Projects.Create(ctx, bad))
		}},
	})
}

func ExampleProjectsService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	project, err := client.Projects.Create(ctx, "Hermes")
	if err != nil {
		log.Fatal(err)
	}
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Kick-off", Date: "2026-03-09", ProjectID: project.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(project.Name, m.ProjectID == project.ID)
	// Output: Hermes true
}
