package minutestest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// Report writes what the Server has seen so far as one HTML file, which loads nothing from elsewhere. It
// shows a line for each of the newest 10,000 meetings, with its requests, faults and violations, and the
// calls of methods such as Script, Update and Advance. Like [Request], it contains no secrets.
//
// The page opens on the likely cause of a failure: the first violation, else the faults that were
// applied too seldom, else the last requests. Times are from the clock of the goroutines that made the
// requests, so in a synctest bubble they are virtual.
func (s *Server) Report(w io.Writer) error {
	name, failed := "", false
	if t, ok := s.tb.(test); ok {
		name, failed = t.Name(), t.Failed()
	}
	if err := s.inspector.Report(w, name, failed); err != nil {
		return fmt.Errorf("minutestest: Report: %w", err)
	}
	return nil
}

// Inspector returns the page of [Server.Report] as a live one, which shows requests and changes as they
// happen. Serve it beside a running program:
//
//	go http.ListenAndServe("127.0.0.1:8081", srv.Inspector())
//
// Everybody who can reach it sees all meetings, so use a loopback address. The program minutes-fake
// serves it at its control address, and rejects requests from pages of other sites.
func (s *Server) Inspector() http.Handler { return s.inspector.Handler() }

// source is what the inspector shows of a Server.
type source struct{ s *Server }

func (v source) Engine() *engine.Service { return v.s.engine }
func (v source) Arrived() int            { return int(v.s.count.Load()) }

func (v source) Requests(after int) ([]any, int)   { return untyped(v.s.journal.Since(after)) }
func (v source) Violations(after int) ([]any, int) { return untyped(v.s.audit.violations.Since(after)) }

// untyped returns list for package inspector, which cannot import the types of this package.
func untyped[T any](list []T, added int) (all []any, n int) {
	for _, element := range list {
		all = append(all, element)
	}
	return all, added
}

func (v source) Faults() (list []any) {
	f := &v.s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		list = append(list, map[string]any{"match": i.match.masked(), "faults": i.what, "seen": i.seen, "applied": i.applied, "unused": i.unused()})
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

// explain logs what may be the cause if the test failed: the scripts without a meeting, and, if go
// test keeps artifacts, where the report is.
func (s *Server) explain(tb TB) {
	s.helper()
	t, ok := tb.(test)
	if !ok || !t.Failed() {
		return
	}
	for _, sc := range s.UnmatchedScripts() {
		t.Logf("minutestest: no meeting that exists now matches the Script %s", summary(sc))
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
