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

// display shows the progress of the batch: a line for each recording, and on a
// terminal a bar below them. Uploads report to it from their own goroutines.
type display struct {
	out        io.Writer
	recordings int
	bar        *progressbar.ProgressBar // nil: no terminal
	columns    func() int               // of the terminal

	mu        sync.Mutex
	jobs      int   // under way
	uploading int   // of these
	bytes     int64 // read for uploads, all in all
	drawn     time.Time
}

func newDisplay(out io.Writer, recordings int) *display {
	d := &display{out: out, recordings: recordings}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.startBar(func() int {
			columns, _, _ := term.GetSize(int(f.Fd()))
			return columns
		})
	}
	return d
}

func (d *display) startBar(columns func() int) {
	d.columns = columns
	d.bar = progressbar.NewOptions(d.recordings,
		progressbar.OptionSetWriter(d.out),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowCount(),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
	)
	d.draw()
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
			d.fit()
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

// change applies one change to the display.
func (d *display) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	d.draw()
}

func (d *display) draw() {
	d.drawn = time.Now()
	if d.bar != nil {
		d.bar.Describe(d.fit())
	}
}

// The width of the bar itself, and what the line has beside it: "100% |", "| "
// and the space for the "^C" that the terminal adds. A line that wraps would
// leave its first half behind.
const (
	minBar  = 10
	maxBar  = 24
	besides = 7 + 3 + 3
)

// fit sets the width of the bar, and returns the longest description that
// leaves it room.
func (d *display) fit() string {
	sent := fmt.Sprintf("%d uploading, %s sent", d.uploading, size(d.bytes))
	for _, text := range []string{fmt.Sprintf("%s, %d being written", sent, d.jobs-d.uploading), sent, ""} {
		room := d.columns() - besides - len(fmt.Sprintf("(%d/%d)", d.recordings, d.recordings)) - len(text)
		if room >= minBar || text == "" {
			progressbar.OptionSetWidth(min(max(room, 1), maxBar))(d.bar)
			return text
		}
	}
	return ""
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
