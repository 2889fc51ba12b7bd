package main

import (
	"io"
	"sync/atomic"
	"time"
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
		for line := <-l.lines; line != nil; line = <-l.lines {
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
	go func() { l.lines <- nil }()
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}
