package minutestest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/inspector"
)

// Report writes what the Server has seen so far as a page for a browser: one
// HTML file that needs no server and loads nothing. It shows a line for each
// meeting, the newest 10,000, with the requests that looked at it or changed
// it, faults and violations; a click opens what there is to know. Nothing in it
// is secret, as in [Request]. Of meetings it holds 32 MiB of transcripts and
// minutes at most.
//
// Times are those of the clock in the goroutines that made the requests: in a
// synctest bubble, of the bubble. [NewServer] writes a report by itself where a
// test fails.
func (s *Server) Report(w io.Writer) error {
	var news newsreader
	all, _ := news.read(s)
	if named, ok := s.tb.(interface{ Name() string }); ok {
		all.Name = named.Name()
	}
	if err := inspector.Write(w, all, s.details(all)); err != nil {
		return fmt.Errorf("minutestest: Report: %w", err)
	}
	return nil
}

// maxDetails is how many bytes of meetings a report holds.
const maxDetails = 32 << 20

// details are what a click opens, by path, one at a time.
func (s *Server) details(of news) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range of.Requests {
			if e, ok := s.journal.find(uint64(of.Requests[i].Seq)); ok && !yield(requestPath(int(e.seq)), e.request()) {
				return
			}
		}
		room := maxDetails
		for i := range of.Meetings {
			m, ok := s.Meeting(of.Meetings[i].ID)
			if !ok {
				continue
			}
			text, err := json.Marshal(m)
			if room -= len(text); err != nil || room < 0 || !yield(meetingPath(m.ID), json.RawMessage(text)) {
				return
			}
		}
	}
}

func requestPath(seq int) string   { return fmt.Sprintf("requests/%d", seq) }
func meetingPath(id string) string { return "meetings/" + id }

// keepReport writes a report of a test that failed, where that was asked for.
func (s *Server) keepReport(tb TB) {
	s.helper()
	t, ok := tb.(interface {
		Failed() bool
		ArtifactDir() string
		Logf(format string, args ...any)
	})
	if asked := flag.Lookup("test.artifacts"); !ok || !t.Failed() || asked == nil || asked.Value.String() != "true" {
		return // a directory that nobody asked for is not kept
	}
	path, err := s.writeReport(t.ArtifactDir())
	if err != nil {
		t.Logf("minutestest: no report: %v", err)
		return
	}
	t.Logf("minutestest: what the service saw: %s", path)
}

// writeReport writes a report into dir, under a name that no other Server of
// the test has taken.
func (s *Server) writeReport(dir string) (path string, err error) {
	var file *os.File
	for n := 1; file == nil; n++ {
		path = filepath.Join(dir, fmt.Sprintf("minutestest-%d.html", n))
		if file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return path, errors.Join(s.Report(file), file.Close())
}
