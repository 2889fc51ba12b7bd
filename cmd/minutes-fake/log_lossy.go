package main

import (
	"io"
	"sync/atomic"
	"time"
)

// lossyWriter passes lines to a writer in the background. It never blocks: if
// too many lines are waiting, it drops and counts further ones, as when stderr
// is a pipe without a reader.
type lossyWriter struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Int64
}

// maxWaiting is how many lines may wait to be written.
const maxWaiting = 1024

func newLossyWriter(w io.Writer) *lossyWriter {
	l := &lossyWriter{lines: make(chan []byte, maxWaiting), done: make(chan struct{})}
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

// finish waits until the lines before it are written, but not for long.
func (l *lossyWriter) finish() {
	select {
	case l.lines <- nil:
	default:
		return
	}
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}
