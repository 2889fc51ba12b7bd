package minutestest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/inspector"
)

// Report writes what the Server has seen so far as one HTML file. The file needs no server and
// loads nothing. It shows a line for each of the newest 10,000 meetings, with its requests, faults
// and violations, and the calls of methods such as Script, Update and Advance. A click shows the
// details. Like [Request], it contains no secrets. It holds at most 32 MiB of transcripts and
// minutes.
//
// The page opens on the likely cause of a failure: the first violation, else the faults that were
// never applied, else the last requests.
//
// Times are from the clock of the goroutines that made the requests, so in a synctest bubble they
// are the bubble's. [NewServer] writes a report if the test fails.
func (s *Server) Report(w io.Writer) error {
	name, failed := "", false
	if t, ok := s.tb.(interface {
		Name() string
		Failed() bool
	}); ok {
		name, failed = t.Name(), t.Failed()
	}
	if err := s.inspector.Report(w, name, failed); err != nil {
		return fmt.Errorf("minutestest: Report: %w", err)
	}
	return nil
}

// Inspector returns the page of [Server.Report], live. It shows requests and changes as they
// happen. Serve it beside a running program:
//
//	go http.ListenAndServe("127.0.0.1:8081", srv.Inspector())
//
// It shows all meetings to everybody who can reach it, so use a loopback address. The program
// minutes-fake serves it at its control address, and rejects requests from pages of other sites.
func (s *Server) Inspector() http.Handler { return s.inspector.Handler() }

// source is what the inspector shows of a Server.
type source struct{ s *Server }

func (v source) Engine() *engine.Service { return v.s.engine }
func (v source) Resets() uint64          { return v.s.journal.resets.Load() }
func (v source) Arrived() int            { return int(v.s.journal.seq.Load()) }

func (v source) RequestsSince(n uint64) (list []inspector.Request, next uint64) {
	entries, next := v.s.journal.ended(n)
	for i := range entries {
		e := &entries[i]
		list = append(list, inspector.Request{
			Seq: int(e.seq), At: inspector.MillisOf(e.clock), Took: inspector.Millis(e.took.Seconds() * 1000),
			Operation: minutes.Operation(e.Operation), MeetingID: e.hide(e.MeetingID), Caller: e.Caller,
			Method: e.hide(e.method), Path: e.hide(e.url.Path), Bytes: e.StorageBytes,
			Status: e.Status, Code: cmp.Or(e.StorageCode, string(e.Code)), Fault: e.fault, Lost: e.lost,
		})
	}
	return list, next
}

func (v source) Request(seq int) (any, bool) {
	e, ok := v.s.journal.find(uint64(max(seq, 0)))
	if !ok {
		return nil, false
	}
	return e.request(), true
}

func (v source) ViolationsSince(n int) (list []any) {
	for _, violation := range v.s.audit.after(n) {
		list = append(list, violation)
	}
	return list
}

func (v source) Faults() (list []inspector.Fault) {
	f := &v.s.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		match := i.match
		if match.Key != "" {
			match.Key = masked
		}
		list = append(list, inspector.Fault{Match: match, Faults: i.what, Seen: i.seen, Applied: i.applied, Unused: i.unused()})
	}
	return list
}

// keepReport writes a report if the test failed and go test keeps artifacts.
func (s *Server) keepReport(tb TB) {
	s.helper()
	t, ok := tb.(interface {
		Failed() bool
		ArtifactDir() string
		Logf(format string, args ...any)
	})
	if asked := flag.Lookup("test.artifacts"); !ok || !t.Failed() || asked == nil || asked.Value.String() != "true" {
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
