package testkit

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A Job is one thing a Client does over the network, and what it needs to be
// done: all operations, a Create that may be repeated, and the PUT of
// an upload.
type Job struct {
	Name    string
	Op      minutes.Operation // of the request that faults strike
	Repeats bool              // also after a try that may have taken effect
	Ready   bool              // needs a meeting with minutes, not a new one
	Call    func(ctx context.Context, c *minutes.Client, meetingID string) error
}

// Upload reports whether the job is the PUT of an upload.
func (j Job) Upload() bool { return j.Op == minutestest.OpUpload }

// Jobs lists all of them.
func Jobs() []Job {
	second := func(_ any, err error) error { return err }
	create := &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"}
	referenced := &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20", ExternalID: "drill/1"}
	return []Job{
		{Name: "members.list", Op: "members.list", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Members.List(ctx)) }},
		{Name: "members.create", Op: "members.create", Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Members.Create(ctx, &minutes.MemberCreateParams{Name: "Fay"}))
		}},
		{Name: "meetings.list", Op: "meetings.list", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Meetings.List(ctx, nil)) }},
		{Name: "meetings.create", Op: "meetings.create", Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, create)
			return err
		}},
		{Name: "meetings.create with external id", Op: "meetings.create", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, referenced)
			return err
		}},
		{Name: "meetings.get", Op: "meetings.get", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Get(ctx, id))
		}},
		{Name: "meetings.update", Op: "meetings.update", Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Update(ctx, id, &minutes.MeetingUpdateParams{Title: new("Fire")}))
		}},
		{Name: "meetings.delete", Op: "meetings.delete", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, id string) error { return c.Meetings.Delete(ctx, id) }},
		{Name: "meetings.set_participants", Op: "meetings.set_participants", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.SetParticipants(ctx, id, []string{"emp_ada"}))
		}},
		{Name: "meetings.upload_url", Op: "meetings.upload_url", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.UploadURL(ctx, id, "audio/mpeg"))
		}},
		{Name: "meetings.minutes", Op: "meetings.minutes", Repeats: true, Ready: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Minutes(ctx, id, minutes.FormatMarkdown))
		}},
		{Name: "meetings.transcript", Op: "meetings.transcript", Repeats: true, Ready: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Transcript(ctx, id))
		}},
		{Name: "projects.list", Op: "projects.list", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Projects.List(ctx)) }},
		{Name: "projects.create", Op: "projects.create", Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Projects.Create(ctx, "Fire"))
		}},
		{Name: "templates.list", Op: "templates.list", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Templates.List(ctx)) }},
		{Name: "usage.get", Op: "usage.get", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Usage.Get(ctx)) }},
		{Name: "vocabulary.get", Op: "vocabulary.get", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Vocabulary.Get(ctx)) }},
		{Name: "vocabulary.replace", Op: "vocabulary.replace", Repeats: true, Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Vocabulary.Replace(ctx, []string{"fire"}))
		}},
		{Name: "vocabulary.add", Op: "vocabulary.add", Call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Vocabulary.Add(ctx, "fire"))
		}},
		{Name: "upload", Op: minutestest.OpUpload, Repeats: true, Call: func(ctx context.Context, c *minutes.Client, id string) error {
			return c.Meetings.Upload(ctx, id, Audio(3000), nil)
		}},
	}
}

// MeetingFor makes the meeting that the job is about, over a Client that meets
// no faults.
func (j Job) MeetingFor(t testing.TB, srv *minutestest.Server) string {
	t.Helper()
	c := Client(srv)
	if j.Ready {
		m := Uploaded(t, c, "Fire drill")
		time.Sleep(time.Hour) // of the bubble
		return m.ID
	}
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"})
	require.NoError(t, err)
	return m.ID
}

// A Line is a transport that counts the requests of one operation, and can
// fail to connect or bend what comes back. It is where faults live that a
// server cannot bring about.
type Line struct {
	Next http.RoundTripper
	Op   minutes.Operation

	Dial     error // a connection is not made, for this reason,
	Dials    int   // this often; -1 for always
	Location string

	mu    sync.Mutex
	tries int
	Times []time.Time // of the requests
}

func (l *Line) RoundTrip(req *http.Request) (*http.Response, error) {
	if op, _ := Identify(req); op != l.Op {
		return l.Next.RoundTrip(req)
	}
	l.mu.Lock()
	l.tries++
	l.Times = append(l.Times, time.Now())
	unconnected := l.Dial != nil && (l.Dials < 0 || l.tries <= l.Dials)
	l.mu.Unlock()
	if unconnected {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, l.Dial }
		return (&http.Transport{DialContext: dial, DialTLSContext: dial}).RoundTrip(req)
	}
	resp, err := l.Next.RoundTrip(req)
	if err == nil && l.Location != "" && resp.StatusCode/100 == 3 {
		resp.Header.Set("Location", l.Location)
	}
	return resp, err
}

// Count is the number of requests so far.
func (l *Line) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// On returns a Client of srv whose requests take the line.
func (l *Line) On(srv *minutestest.Server, opts ...minutes.Option) *minutes.Client {
	l.Next = srv.HTTPClient().Transport
	return Client(srv, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: l})}, opts...)...)
}

// Expired is what a store says of a URL past its time.
func Expired() minutestest.Fault {
	return minutestest.Respond(403, "application/xml", "<Error><Code>AccessDenied</Code><Message>Request has expired</Message><RequestId>r</RequestId></Error>")
}
