package minutestest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/internal/fake/inspector"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Report writes what the Server has seen so far as one HTML file, which loads nothing from
// elsewhere. It shows a line for each of the newest 10,000 meetings, with its requests, faults and
// violations, and the calls of methods such as Script, Update and Advance. Like [Request], it
// contains no secrets.
//
// The page opens on the likely cause of a failure: the first violation, else the faults that were
// applied fewer times than asked, else the last requests. Times are from the clock of the
// goroutines that made the requests, so in a synctest bubble they are virtual.
func (s *Server) Report(w io.Writer) error {
	about := inspector.Test{}
	if r, ok := s.reporter.(testReporter); ok {
		if t, ok := r.TB.(test); ok {
			about = inspector.Test{Name: t.Name(), Failed: t.Failed()}
		}
	}
	err := s.inspector.Report(w, about)
	if err != nil {
		return fmt.Errorf("minutestest: Report: %w", err)
	}
	return nil
}

// Inspector returns the page of [Server.Report] as a live one, which shows requests and changes as
// they happen. Serve it beside a running program:
//
//	go http.ListenAndServe("127.0.0.1:8081", srv.Inspector())
//
// Everybody who can reach it sees all meetings, so use a loopback address. It rejects requests for any
// other host than localhost, an address or the name of this machine, because a page of another site could
// have its own name resolve to this machine (DNS rebinding).
func (s *Server) Inspector() http.Handler { return s.inspector.Handler() }

// source is what the inspector shows of a Server.
type source struct{ s *Server }

func (v source) Engine() *engine.Service { return v.s.engine }
func (v source) Arrived() int            { return int(v.s.arrivals.Load()) }

func (v source) Requests(after int) ([]world.Request, int) { return v.s.journal.Since(after) }

func (v source) Violations(after int) ([]world.Violation, int) {
	return v.s.audit.violations.Since(after)
}

func (v source) Faults() (list []inspector.Fault) {
	v.s.injections.mu.Lock()
	defer v.s.injections.mu.Unlock()
	for _, i := range v.s.injections.list {
		list = append(list, inspector.Fault{
			Match:   i.match.masked(),
			Faults:  i.faults,
			Seen:    i.seen,
			Applied: i.applied,
			Unused:  i.unused(),
		})
	}
	return list
}

// test is what a *testing.T has beside the methods of TB.
type test interface {
	Name() string
	Failed() bool
	Logf(format string, args ...any)
	ArtifactDir() string
}

// explain logs possible causes if the test failed: the scripts without a meeting, and, if go
// test keeps artifacts, where the report is.
func (s *Server) explain(tb TB) {
	tb.Helper()
	t, ok := tb.(test)
	if !ok || !t.Failed() {
		return
	}
	for _, sc := range s.UnmatchedScripts() {
		t.Logf("minutestest: no meeting has matched the Script %s", summary(sc))
	}
	if asked := flag.Lookup("test.artifacts"); asked == nil || asked.Value.String() != "true" {
		return // go test would delete the directory
	}
	file, err := os.CreateTemp(t.ArtifactDir(), "minutestest-*.html")
	if err == nil {
		err = errors.Join(s.Report(file), file.Close())
	}
	if err != nil {
		t.Logf("minutestest: cannot write the report: %v", err)
		return
	}
	t.Logf("minutestest: what the service saw: %s", file.Name())
}
