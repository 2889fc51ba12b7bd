package main

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// lossyWriter passes lines to a writer in the background. It never blocks: if too many lines are
// waiting, as when stderr is a pipe that nobody reads, it drops and counts further ones.
type lossyWriter struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Int64
}

func newLossyWriter(w io.Writer) *lossyWriter {
	l := &lossyWriter{lines: make(chan []byte, 1024), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if line == nil {
				return
			}
			_, _ = w.Write(line)
		}
	}()
	return l
}

func (l *lossyWriter) Write(line []byte) (int, error) {
	select {
	case l.lines <- append([]byte{}, line...):
	default:
		l.dropped.Add(1)
	}
	return len(line), nil
}

// finish waits until the lines are written, but not for long.
func (l *lossyWriter) finish() {
	limit := time.After(time.Second)
	select {
	case l.lines <- nil:
	case <-limit:
		return
	}
	select {
	case <-l.done:
	case <-limit:
	}
}

func newRequestLog(form string, w io.Writer) *slog.Logger {
	switch form {
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil))
	case "text":
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// logRequest writes a line without secrets: of a URL the path alone, and nothing of headers and
// bodies.
func logRequest(to *slog.Logger, r minutestest.Request) {
	to.Info("request", "method", r.Method, "path", r.Path, "status", r.Status, "took", r.Took,
		"operation", r.Operation, "caller", r.Caller, "code", r.Code, "request_id", r.RequestID, "fault", r.Fault)
}
