package testkit

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A Job is one thing that a Client does over the network: an operation, a Create with
// an external id, or the PUT of an upload.
type Job struct {
	Name    string
	Op      minutes.Operation // of the request that faults apply to
	Repeats bool              // also after an attempt that may have taken effect
	Ready   bool              // needs a meeting with minutes, not a new one
	Call    func(ctx context.Context, c *minutes.Client, meetingID string) error
}

// Upload reports whether the job is the PUT of an upload.
func (j Job) Upload() bool { return j.Op == minutes.OpUpload }

// Jobs lists all of them, the upload last.
func Jobs() []Job {
	var jobs []Job
	for _, op := range Operations() {
		call := op.InMemory
		if call == nil {
			call = func(ctx context.Context, c *minutes.Client, id string) error {
				_, err := op.Invoke(ctx, c, id)
				return err
			}
		}
		jobs = append(jobs, Job{
			Name:    string(op.Name),
			Op:      op.Name,
			Repeats: op.Retried,
			Ready:   op.NeedsMinutes,
			Call:    call,
		})
	}
	referenced := &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20", ExternalID: "drill/1"}
	return append(jobs, Job{
		Name: "meetings.create with external id", Op: minutes.OpMeetingsCreate, Repeats: true,
		Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, referenced)
			return err
		},
	}, Job{
		Name: "upload", Op: minutes.OpUpload, Repeats: true,
		Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return c.Meetings.Upload(ctx, id, Audio(3000), nil)
		},
	})
}

// MeetingFor creates the meeting that the job needs, with a Client without faults.
func (j Job) MeetingFor(t testing.TB, srv *minutestest.Server) string {
	t.Helper()
	c := Client(srv, minutes.WithHTTPClient(Direct(srv)))
	if j.Ready {
		m := Uploaded(t, c, "Fire drill")
		time.Sleep(time.Hour) // of the bubble
		return m.ID
	}
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"})
	require.NoError(t, err)
	return m.ID
}

// Identify returns the operation and the meeting of a request to the fake, or "" if the API has none.
func Identify(r *http.Request) (op minutes.Operation, meetingID string) {
	path := strings.Split(r.URL.Path, "/")
	if path[1] == "storage" {
		return minutes.OpUpload, path[len(path)-1]
	}
	for _, row := range route.Table {
		if r.Method != row.Method {
			continue
		}
		before, param, after := route.Split(row.Path)
		rest, begins := strings.CutPrefix(r.URL.Path, before)
		id, ends := strings.CutSuffix(rest, after)
		if !begins || !ends || strings.Contains(id, "/") || (param == "") != (id == "") {
			continue
		}
		if param == route.Meeting {
			meetingID = id
		}
		return minutes.Operation(row.Operation), meetingID
	}
	return "", ""
}
