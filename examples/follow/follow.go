package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// since is how far back a start looks for meetings, which costs a request per fifty meetings. It must cover the longest
// time that the program may be stopped, plus the longest time from the creation of a meeting to its minutes.
const since = 30 * 24 * time.Hour

// follow writes minutes into dir until ctx is done. It calls written after each file. The files are the table of the
// meetings that were handled, so a restart loses nothing and writes nothing twice. An error that may be temporary, such
// as a 403 while the key lacks a scope, makes no file: Follow tries again, and so does the next run.
func follow(ctx context.Context, client *minutes.Client, dir string, written func(file string)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := func(id string) string { return filepath.Join(dir, url.PathEscape(id)+".md") }
	opts := &minutes.FollowOptions{
		Since:  time.Now().Add(-since),
		Format: minutes.FormatMarkdown,
		Skip: func(m *minutes.Meeting) bool {
			_, err := os.Stat(path(m.ID))
			return err == nil
		},
	}
	for result, err := range client.Meetings.Follow(ctx, opts) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // the service rejects the key
			return err
		}
		text := ""
		failed, ok := errors.AsType[*minutes.MeetingFailedError](result.Err)
		switch {
		case result.Err == nil:
			text = result.Minutes.Content
		case ok:
			text = fmt.Sprintf("# %s\n\nThere are no minutes: %s.\n", result.Meeting.Title, failed.Status)
		default:
			slog.Error("no minutes yet", "meeting", result.MeetingID, "err", result.Err)
			continue
		}
		if err := write(path(result.MeetingID), text); err != nil {
			return err
		}
		written(path(result.MeetingID))
	}
	return nil
}

// write writes a file as a whole or not at all, because half a file would count as handled.
func write(file, text string) error {
	temp := file + ".tmp"
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, file)
}
