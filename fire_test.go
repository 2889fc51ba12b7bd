package minutes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A job is one thing a Client does over the network, and what it needs to be
// done: the eighteen operations, a Create that may be repeated, and the PUT of
// an upload.
type job struct {
	name    string
	op      minutes.Operation // of the request that faults strike
	repeats bool              // also after a try that may have taken effect
	ready   bool              // needs a meeting with minutes, not a new one
	call    func(ctx context.Context, c *minutes.Client, meetingID string) error
}

func (j job) upload() bool { return j.op == minutestest.OpUpload }

// jobs lists all twenty.
func jobs() []job {
	second := func(_ any, err error) error { return err }
	create := &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"}
	referenced := &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20", ExternalID: "drill/1"}
	return []job{
		{name: "members.list", op: "members.list", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Members.List(ctx)) }},
		{name: "members.create", op: "members.create", call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Members.Create(ctx, &minutes.MemberCreateParams{Name: "Fay"}))
		}},
		{name: "meetings.list", op: "meetings.list", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Meetings.List(ctx, nil)) }},
		{name: "meetings.create", op: "meetings.create", call: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, create)
			return err
		}},
		{name: "meetings.create with external id", op: "meetings.create", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, referenced)
			return err
		}},
		{name: "meetings.get", op: "meetings.get", repeats: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Get(ctx, id))
		}},
		{name: "meetings.update", op: "meetings.update", call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Update(ctx, id, &minutes.MeetingUpdateParams{Title: new("Fire")}))
		}},
		{name: "meetings.delete", op: "meetings.delete", repeats: true, call: func(ctx context.Context, c *minutes.Client, id string) error { return c.Meetings.Delete(ctx, id) }},
		{name: "meetings.set_participants", op: "meetings.set_participants", repeats: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.SetParticipants(ctx, id, []string{"emp_ada"}))
		}},
		{name: "meetings.upload_url", op: "meetings.upload_url", repeats: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.UploadURL(ctx, id, "audio/mpeg"))
		}},
		{name: "meetings.minutes", op: "meetings.minutes", repeats: true, ready: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Minutes(ctx, id, minutes.FormatMarkdown))
		}},
		{name: "meetings.transcript", op: "meetings.transcript", repeats: true, ready: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return second(c.Meetings.Transcript(ctx, id))
		}},
		{name: "projects.list", op: "projects.list", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Projects.List(ctx)) }},
		{name: "projects.create", op: "projects.create", call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Projects.Create(ctx, "Fire"))
		}},
		{name: "templates.list", op: "templates.list", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Templates.List(ctx)) }},
		{name: "usage.get", op: "usage.get", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Usage.Get(ctx)) }},
		{name: "vocabulary.get", op: "vocabulary.get", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error { return second(c.Vocabulary.Get(ctx)) }},
		{name: "vocabulary.replace", op: "vocabulary.replace", repeats: true, call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Vocabulary.Replace(ctx, []string{"fire"}))
		}},
		{name: "vocabulary.add", op: "vocabulary.add", call: func(ctx context.Context, c *minutes.Client, _ string) error {
			return second(c.Vocabulary.Add(ctx, "fire"))
		}},
		{name: "upload", op: minutestest.OpUpload, repeats: true, call: func(ctx context.Context, c *minutes.Client, id string) error {
			return c.Meetings.Upload(ctx, id, audio(3000), nil)
		}},
	}
}

// meetingFor makes the meeting that the job is about, over a Client that meets
// no faults.
func (j job) meetingFor(t testing.TB, srv *minutestest.Server) string {
	t.Helper()
	c := clientOf(srv)
	if j.ready {
		m := uploaded(t, c, "Fire drill")
		time.Sleep(time.Hour) // of the bubble
		return m.ID
	}
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"})
	require.NoError(t, err)
	return m.ID
}

// A line is a transport that counts the requests of one operation, and can
// fail to connect or bend what comes back. It is where faults live that a
// server cannot bring about.
type line struct {
	next http.RoundTripper
	op   minutes.Operation

	dial     error // a connection is not made, for this reason,
	dials    int   // this often; -1 for always
	location string

	mu    sync.Mutex
	tries int
	at    []time.Time
}

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if op, _ := identify(req); op != l.op {
		return l.next.RoundTrip(req)
	}
	l.mu.Lock()
	l.tries++
	l.at = append(l.at, time.Now())
	unconnected := l.dial != nil && (l.dials < 0 || l.tries <= l.dials)
	l.mu.Unlock()
	if unconnected {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, l.dial }
		return (&http.Transport{DialContext: dial, DialTLSContext: dial}).RoundTrip(req)
	}
	resp, err := l.next.RoundTrip(req)
	if err == nil && l.location != "" && resp.StatusCode/100 == 3 {
		resp.Header.Set("Location", l.location)
	}
	return resp, err
}

func (l *line) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// on returns a Client of srv whose requests take the line.
func (l *line) on(srv *minutestest.Server, opts ...minutes.Option) *minutes.Client {
	l.next = srv.HTTPClient().Transport
	return clientOf(srv, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: l})}, opts...)...)
}

// The reasons for which a connection is not made.
var (
	errRefused   error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errNoHost    error = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.minutes.test", IsNotFound: true}}
	errUntrusted error = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	errHandshake error = tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
)

// quiet is a buffer that several goroutines may write to, a debug log for one.
type quiet struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (q *quiet) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.buf.Write(p)
}

func (q *quiet) String() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.buf.String()
}

// pipeTo dials a server of its own for each connection, behind a pipe. The
// context of its requests ends when the client closes its end, whether or not
// the handler has read the body.
func pipeTo(h http.Handler) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx }}
		_ = srv.Serve(&single{conn: far})
		return &closer{near, cancel}, nil
	}
}

// closer tells that it was closed.
type closer struct {
	net.Conn
	closed func()
}

func (c *closer) Close() error {
	c.closed()
	return c.Conn.Close()
}

// single accepts one connection, once.
type single struct{ conn net.Conn }

func (l *single) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, io.EOF
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }
