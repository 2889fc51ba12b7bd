package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// display tells how far the batch is: a line for each recording, and below them
// a bar if it is on a terminal. Uploads report to it from their own goroutines.
type display struct {
	out io.Writer
	bar *progressbar.ProgressBar // nil: no terminal

	mu        sync.Mutex
	jobs      int   // under way
	uploading int   // of these
	bytes     int64 // read for uploads, all in all
	drawn     time.Time
}

func newDisplay(out io.Writer, recordings int) *display {
	d := &display{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.bar = progressbar.NewOptions(recordings,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetWidth(24),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionShowCount(),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	return d
}

func (d *display) begin() { d.change(func() { d.jobs++ }) }

func (d *display) beginUpload(r recording) {
	d.change(func() {
		d.uploading++
		if d.bar == nil { // a bar says so itself
			d.line("upload  %s (%s)", r.name, size(r.size))
		}
	})
}

// sent is called for every few kilobytes.
func (d *display) sent(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += bytes
	if time.Since(d.drawn) > 100*time.Millisecond {
		d.draw()
	}
}

func (d *display) endUpload() { d.change(func() { d.uploading-- }) }

func (d *display) endJob() { d.change(func() { d.jobs-- }) }

// end is for each recording, when nothing more is to be done for it in this run.
func (d *display) end(format string, args ...any) {
	d.change(func() {
		if format != "" {
			d.line(format, args...)
		}
		if d.bar != nil {
			_ = d.bar.Add(1)
		}
	})
}

func (d *display) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bar != nil {
		_ = d.bar.Clear()
		d.bar = nil
	}
}

// change is one change of what is shown.
func (d *display) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	d.draw()
}

func (d *display) draw() {
	d.drawn = time.Now()
	if d.bar != nil {
		d.bar.Describe(fmt.Sprintf("%d uploading, %s sent, %d being written", d.uploading, size(d.bytes), d.jobs-d.uploading))
	}
}

// line prints above the bar. The caller holds mu.
func (d *display) line(format string, args ...any) {
	if d.bar != nil {
		_ = d.bar.Clear()
	}
	fmt.Fprintf(d.out, format+"\n", args...)
}

func size(bytes int64) string {
	if bytes < 1e6 {
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
