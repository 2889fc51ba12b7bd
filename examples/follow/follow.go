package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// follow writes minutes into dir until ctx ends. It calls written after each file.
func follow(ctx context.Context, client *minutes.Client, dir string, written func(file string)) error {
	since, err := firstRun(dir)
	if err != nil {
		return err
	}
	path := func(m *minutes.Meeting) string { return filepath.Join(dir, url.PathEscape(m.ID)+".md") }
	opts := &minutes.FollowOptions{
		Since:  since,
		Format: minutes.FormatMarkdown,
		Skip: func(m *minutes.Meeting) bool { // the file exists
			_, err := os.Stat(path(m))
			return err == nil
		},
	}
	for result, err := range client.Meetings.Follow(ctx, opts) {
		var failed *minutes.MeetingFailedError
		var text string
		switch {
		case ctx.Err() != nil:
			return nil
		case result == nil:
			return err
		case err == nil:
			text = result.Minutes.Content
		case errors.As(err, &failed):
			text = fmt.Sprintf("# %s\n\nThere are no minutes: %s.\n", result.Meeting.Title, failed.Status)
		default: // the next run tries again
			slog.Error("no minutes", "err", err)
			continue
		}
		if err := write(path(result.Meeting), text); err != nil {
			return err
		}
		written(path(result.Meeting))
	}
	return nil
}

// firstRun returns when the first run with this folder began.
func firstRun(dir string) (time.Time, error) {
	file := filepath.Join(dir, ".since")
	text, err := os.ReadFile(file)
	if err == nil {
		return time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return time.Time{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	return now, errors.Join(os.MkdirAll(dir, 0o755), write(file, now.Format(time.RFC3339)+"\n"))
}

// write writes a file as a whole or not at all.
func write(file, text string) error {
	temp := file + ".tmp"
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, file)
}
