package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

type settings struct {
	in, out string
	format  minutes.Format
	titles  bool // from names
	restart bool // what failed in an earlier run
}

// batch is one run.
type batch struct {
	settings
	client     *minutes.Client
	recordings []recording
	folder     folder
	display    *display
	stop       context.CancelFunc

	mu       sync.Mutex          // of what follows: ProcessAll reads the jobs on a goroutine of their own
	meetings map[string]*meeting // by external id
	tally    tally
}

// meeting is the meeting of a recording, and of others with the same content.
type meeting struct {
	recordings []recording
	over       bool
	err        error // why it failed
}

// process does the whole batch and prints the summary.
func process(ctx context.Context, client *minutes.Client, s settings, stdout, stderr io.Writer) error {
	began := time.Now()
	recordings, err := recordingsIn(s.in)
	if err != nil {
		return err
	}
	if len(recordings) == 0 {
		return fmt.Errorf("there are no recordings in %s", s.in)
	}
	folder, err := openFolder(s.out, s.in, s.format)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	b := &batch{
		settings: s, client: client, recordings: recordings, folder: folder, stop: stop,
		display:  newDisplay(stderr, len(recordings)),
		meetings: make(map[string]*meeting),
		tally:    tally{all: len(recordings)},
	}
	opts := &minutes.ProcessOptions{Format: s.format, Restart: s.restart}
	for result, err := range client.Meetings.ProcessAll(running, b.jobs(running), opts) {
		if result == nil {
			b.display.close()
			return err
		}
		b.finish(running, result, err)
	}
	b.display.close()

	b.mu.Lock() // who is interrupted may still read a recording
	defer b.mu.Unlock()
	b.tally.took = time.Since(began)
	b.tally.interrupted = ctx.Err() != nil
	b.tally.print(stdout, s.out, quotaLeft(ctx, client))
	switch {
	case b.tally.interrupted:
		return errInterrupted
	case len(b.tally.failures) > 0:
		return errFailures
	}
	return nil
}

// jobs gives the recordings that have no minutes yet, each content once. It is
// asked for the next one when there is room for its upload, so no recording is
// read long before.
func (b *batch) jobs(ctx context.Context) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for _, r := range b.recordings {
			if ctx.Err() != nil {
				return
			}
			var id string
			var err error
			there := b.folder.has(r)
			if !there {
				id, err = r.identify(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			if b.needsJob(r, there, id, err) && !yield(b.job(id, r)) {
				return
			}
		}
	}
}

// needsJob takes in a recording and reports whether its minutes are to be made.
func (b *batch) needsJob(r recording, there bool, id string, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.meetings[id]
	switch {
	case there:
		b.tally.there++
		b.display.end("")
	case err != nil:
		b.failed(r, err)
	case m == nil:
		b.meetings[id] = &meeting{recordings: []recording{r}}
		b.display.begin()
		return true
	default:
		m.recordings = append(m.recordings, r)
		if m.over {
			b.copy(m, r)
		}
	}
	return false
}

func (b *batch) job(id string, r recording) minutes.Job {
	return minutes.Job{
		Params: &minutes.MeetingCreateParams{
			Title:      r.title(b.titles),
			Date:       minutes.DateOf(r.modified), // when the recording ended, most likely
			Time:       minutes.TimeOfDay(r.modified),
			ExternalID: id,
		},
		Source: func(ctx context.Context) (minutes.Recording, error) {
			rec, err := r.open(ctx, b.display.sent, b.display.endUpload)
			if err == nil {
				b.display.beginUpload(r)
			}
			return rec, err
		},
	}
}

// finish takes in what became of a job.
func (b *batch) finish(ctx context.Context, result *minutes.Result, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.meetings[result.Params.ExternalID]
	first := m.recordings[0]
	b.display.endJob()
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return // not a failure: the next run goes on with it
	}
	if minutes.KeyRejected(err) { // every other recording would meet that, too
		b.stop()
	}
	if err == nil {
		err = b.folder.write(first, result.Minutes.Content)
	}
	m.over, m.err = true, err
	if err != nil {
		b.failed(first, err)
	} else {
		b.tally.written++
		b.display.end("done    %s -> %s", first.name, filepath.Base(b.folder.path(first)))
	}
	for _, same := range m.recordings[1:] {
		b.copy(m, same)
	}
}

// copy gives a recording what the first one with its content got. The caller
// holds mu.
func (b *batch) copy(m *meeting, r recording) {
	first, err := m.recordings[0], m.err
	if err == nil {
		var content []byte
		if content, err = os.ReadFile(b.folder.path(first)); err == nil {
			err = b.folder.write(r, string(content))
		}
	}
	if err != nil {
		b.failed(r, err)
		return
	}
	b.tally.copied++
	b.display.end("copied  %s is the same recording as %s", r.name, first.name)
}

// failed takes in a recording without minutes. The caller holds mu.
func (b *batch) failed(r recording, err error) {
	b.tally.failures = append(b.tally.failures, failure{r.name, err})
	b.display.end("FAILED  %s: %s", r.name, reason(err))
}
