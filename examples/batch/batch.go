package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/meeting-minutes/minutes-go"
)

type batch struct {
	client  *minutes.Client
	in, out string // directories
	restart bool   // what failed in an earlier run
	stdout  io.Writer

	all, ended, failures int
	unreadable           atomic.Int64 // recordings; jobs runs on another goroutine
}

// run processes the recordings that have no minutes yet.
func (b *batch) run(ctx context.Context) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(b.in)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(b.path(e.Name())); err != nil && e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	b.all = len(names)
	for len(names) > 0 {
		if names, err = b.process(ctx, names); err != nil {
			return fmt.Errorf("%w; run it again to continue, nothing is uploaded twice", err)
		}
	}
	fmt.Fprintf(b.stdout, "%d of %d recordings have minutes now, in %s\n", b.ended-b.failures, b.all, b.out)
	if b.failures > 0 || b.unreadable.Load() > 0 {
		return errors.New("some recordings have no minutes")
	}
	return nil
}

// process processes recordings, and returns those whose failed meeting it has deleted.
func (b *batch) process(ctx context.Context, names []string) (again []string, err error) {
	opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown}
	for result, err := range b.client.Meetings.ProcessAll(ctx, b.jobs(ctx, names), opts) {
		if result == nil { // interrupted, or the key was rejected
			return nil, err
		}
		if ctx.Err() != nil {
			continue // not a failure, because the next run continues
		}
		name := result.Params.Title
		if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok && b.restart && !result.Created {
			if err = b.client.Meetings.Delete(ctx, failed.MeetingID); err == nil {
				again = append(again, name)
				continue
			}
		}
		if err == nil {
			err = write(b.path(name), result.Minutes.Content)
		}
		b.ended++
		if err != nil {
			b.failures++
			fmt.Fprintf(b.stdout, "[%d/%d] %s FAILED: %v\n", b.ended, b.all, name, err)
			continue
		}
		fmt.Fprintf(b.stdout, "[%d/%d] %s\n", b.ended, b.all, name)
	}
	return again, ctx.Err()
}

// jobs yields a job for each recording. ProcessAll asks for the next one when there is room for its upload.
func (b *batch) jobs(ctx context.Context, names []string) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for _, name := range names {
			path := filepath.Join(b.in, name)
			id, date, err := identify(path)
			if err != nil {
				b.unreadable.Add(1)
				fmt.Fprintln(os.Stderr, "batch:", err)
				continue
			}
			params := &minutes.MeetingCreateParams{Title: name, Date: date, ExternalID: id}
			if ctx.Err() != nil || !yield(minutes.Job{Params: params, Source: minutes.FromFile(path)}) {
				return
			}
		}
	}
}

// identify returns an external id that depends on the content alone. So a later run finds the meeting, even if the file
// was renamed, and two files with the same content share one.
func identify(path string) (id, date string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	return "batch-" + hex.EncodeToString(hash.Sum(nil)), minutes.DateOf(info.ModTime()), err
}

func (b *batch) path(name string) string { return filepath.Join(b.out, name+".md") }

// write writes a file as a whole or not at all, because a later run takes it for complete.
func write(path, text string) error {
	temp := path + ".tmp"
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
