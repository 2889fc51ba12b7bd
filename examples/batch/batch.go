package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/meeting-minutes/minutes-go"
)

type batch struct {
	client  *minutes.Client
	in, out string // directories
	restart bool   // process again what failed in an earlier run
	stdout  io.Writer

	all   int // how many recordings there are
	done  int // how many of them have minutes
	ended int // how many have minutes or have failed
}

// run processes the recordings that have no minutes yet.
func (b *batch) run(ctx context.Context) error {
	err := os.MkdirAll(b.out, 0o755)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(b.in)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b.all++
		if _, err := os.Stat(b.path(e.Name())); err == nil {
			b.done++
			b.ended++
		} else {
			names = append(names, e.Name())
		}
	}
	for len(names) > 0 {
		names, err = b.process(ctx, names)
		if err != nil {
			return fmt.Errorf("%w; run it again to continue, nothing is uploaded twice", err)
		}
	}
	fmt.Fprintf(b.stdout, "%d of %d recordings have minutes, in %s\n", b.done, b.all, b.out)
	if b.done < b.all {
		return errors.New("some recordings have no minutes")
	}
	return nil
}

// process processes recordings, and returns those whose failed meeting it has deleted.
func (b *batch) process(ctx context.Context, names []string) (again []string, err error) {
	opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown}
	for result, err := range b.client.Meetings.ProcessAll(ctx, b.jobs(names), opts) {
		err = cmp.Or(err, ctx.Err())
		if err != nil { // interrupted, or the key was rejected; the next run continues
			return nil, err
		}
		name := result.Params.Title
		err = result.Err
		if errors.Is(err, minutes.ErrExternalIDTaken) && result.MeetingID != "" {
			// The ExternalID depends on the content alone, so this is the same recording with another date.
			source := minutes.FromFile(filepath.Join(b.in, name))
			result, err = b.client.Meetings.Resume(ctx, result.MeetingID, source, opts)
		}
		failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
		if ok && b.restart && !result.Created {
			err = b.client.Meetings.Delete(ctx, failed.MeetingID)
			if err == nil {
				again = append(again, name)
				continue
			}
		}
		if err == nil {
			err = write(b.path(name), result.Minutes.Content)
		}
		b.ended++
		if err != nil {
			fmt.Fprintf(b.stdout, "[%d/%d] %s FAILED: %v\n", b.ended, b.all, name, err)
			continue
		}
		b.done++
		fmt.Fprintf(b.stdout, "[%d/%d] %s\n", b.ended, b.all, name)
	}
	return again, nil
}

// jobs yields a job for each recording. ProcessAll asks for the next one when there is room for its upload.
func (b *batch) jobs(names []string) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for _, name := range names {
			path := filepath.Join(b.in, name)
			id, found, err := identify(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, "batch:", err)
				continue
			}
			params := &minutes.MeetingCreateParams{Title: name, Date: minutes.DateOf(found.ModTime()), ExternalID: id}
			if !yield(minutes.Job{Params: params, Source: unchanged(path, found)}) {
				return
			}
		}
	}
}

// identify returns an external id that depends on the content alone. So a later run finds the meeting, even if the file
// was renamed, and two files with the same content share one.
func identify(path string) (id string, found fs.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	found, err = f.Stat()
	if err != nil {
		return "", nil, err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	return "batch-" + hex.EncodeToString(hash.Sum(nil)), found, err
}

// unchanged is a Source that fails if someone has written to the file since it was found. Otherwise its
// meeting would have the external id of other content, and a later run would create a second meeting.
func unchanged(path string, found fs.FileInfo) minutes.Source {
	return func(ctx context.Context) (minutes.Recording, error) {
		now, err := os.Stat(path)
		if err != nil {
			return minutes.Recording{}, err
		}
		if now.Size() != found.Size() || !now.ModTime().Equal(found.ModTime()) {
			return minutes.Recording{}, fmt.Errorf("%s is being written to; run batch again once it is complete", path)
		}
		return minutes.FromFile(path)(ctx)
	}
}

func (b *batch) path(name string) string { return filepath.Join(b.out, name+".md") }

// write writes a file as a whole or not at all, because a later run takes it for complete.
func write(path, text string) error {
	temp := path + ".tmp"
	err := os.WriteFile(temp, []byte(text), 0o644)
	if err != nil {
		return err
	}
	return os.Rename(temp, path)
}
