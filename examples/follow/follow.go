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

// longestOutage is how long the program may be stopped without missing a meeting. Each start reads the list as far back as
// that, so a much longer time costs requests.
const longestOutage = 7 * 24 * time.Hour

// follow writes minutes into dir until ctx is done. It calls written after each file.
//
// The files are the table of meetings that were handled, so a restart loses nothing and writes nothing twice. Because
// only stored minutes and final failures count as handled, an error that passes, such as a 403 while the key lacks a
// scope, loses no meeting: Follow asks Skip again later, and so does the next run.
func follow(ctx context.Context, client *minutes.Client, dir string, written func(file string)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := func(id string) string { return filepath.Join(dir, url.PathEscape(id)+".md") }
	opts := &minutes.FollowOptions{
		Since:  time.Now().Add(-longestOutage),
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
		if result == nil { // the service rejects the key, so Follow has ended
			return err
		}
		var text string
		if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
			text = fmt.Sprintf("# %s\n\nThere are no minutes: %s.\n", result.Meeting.Title, failed.Status)
		} else if err != nil {
			slog.Error("no minutes yet", "meeting", result.MeetingID, "err", err)
			continue
		} else {
			text = result.Minutes.Content
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
