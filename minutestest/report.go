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

// Report writes what the Server has seen so far as one HTML file. The file needs
// no server and loads nothing. It shows a line for each of the newest 10,000
// meetings, with its requests, faults and violations, and the calls of Script,
// Update, Advance and Release. A click shows the details. Like [Request], it
// contains no secrets. It holds at most 32 MiB of transcripts and minutes.
//
// The page opens on the likely cause of a failure: the first violation, else the
// faults that were never applied, else the last requests.
//
// Times are from the clock of the goroutines that made the requests, so in a
// synctest bubble they are the bubble's. [NewServer] writes a report if the test
// fails.
func (s *Server) Report(w io.Writer) error {
	var news newsreader
	all, _ := news.read(s)
	if t, ok := s.tb.(interface {
		Name() string
		Failed() bool
	}); ok {
		all.Name, all.Failed = t.Name(), t.Failed()
	}
	if err := inspector.Write(w, all, s.details(all)); err != nil {
		return fmt.Errorf("minutestest: Report: %w", err)
	}
	return nil
}

// maxDetails is the size limit of the meetings in a report, in bytes.
const maxDetails = 32 << 20

// details yields what a click shows, by path.
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
	path, err := s.writeReport(t.ArtifactDir())
	if err != nil {
		t.Logf("minutestest: cannot write the report: %v", err)
		return
	}
	t.Logf("minutestest: what the service saw: %s", path)
}

// writeReport writes a report into dir, under a name that no other Server of
// the test has used.
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
