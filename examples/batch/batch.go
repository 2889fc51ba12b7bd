package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

type settings struct {
	in, out string
	format  minutes.Format
	uploads int
	titles  bool // from names
	restart bool // what failed in an earlier run
}

// batch is one run. All of it but the display belongs to the goroutine that
// ranges over ProcessAll, which takes the jobs, too.
type batch struct {
	settings
	client     *minutes.Client
	recordings []recording
	folder     folder
	display    *display
	meetings   map[string]*meeting // by external id
	tally      tally
	stop       context.CancelFunc
}

// meeting is what came, or will come, of a recording, and of others with the
// same content.
type meeting struct {
	recordings []recording
	over       bool
	err        error // where it failed
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
	opts := &minutes.ProcessOptions{Format: s.format, Uploads: s.uploads, Restart: s.restart}
	for result, err := range client.Meetings.ProcessAll(running, b.jobs(running), opts) {
		if result == nil {
			b.display.close()
			return err
		}
		b.finish(running, result, err)
	}
	b.display.close()

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
			if b.folder.has(r) {
				b.tally.there++
				b.display.end("")
				continue
			}
			id, err := r.identify(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				b.failed(r, err)
				continue
			}
			if m := b.meetings[id]; m != nil {
				m.recordings = append(m.recordings, r)
				if m.over {
					b.copy(m, r)
				}
				continue
			}
			b.meetings[id] = &meeting{recordings: []recording{r}}
			b.display.begin()
			if !yield(b.job(id, r)) {
				return
			}
		}
	}
}

func (b *batch) job(id string, r recording) minutes.Job {
	return minutes.Job{
		Params: &minutes.MeetingCreateParams{
			Title:      r.title(b.titles),
			Date:       minutes.DateOf(r.modified), // when the recording ended, most likely
			Time:       minutes.TimeOfDay(r.modified),
			ExternalID: id,
		},
		Open: func() (minutes.Recording, error) {
			rec, err := r.open(b.display.sent, b.display.endUpload)
			if err == nil {
				b.display.beginUpload(r)
			}
			return rec, err
		},
	}
}

// finish takes in what became of a job.
func (b *batch) finish(ctx context.Context, result *minutes.Result, err error) {
	m := b.meetings[result.Params.ExternalID]
	first := m.recordings[0]
	b.display.endJob()
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return // not a failure: the next run goes on with it
	}
	if concernsAll(err) {
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

// copy gives a recording what the first one with its content got.
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

func (b *batch) failed(r recording, err error) {
	b.tally.failures = append(b.tally.failures, failure{r.name, err})
	b.display.end("FAILED  %s: %s", r.name, reason(err))
}
