package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// since is how far back a start looks for meetings, which costs a request per fifty meetings. It must cover the longest
// time that the program may be stopped, plus the longest time from the creation of a meeting to its minutes.
const since = 30 * 24 * time.Hour

// attempts is how often follow tries to store a meeting before somebody has to look at it.
const attempts = 8 // in about a day, because Follow yields it after ten minutes, and then ever later

// follow writes minutes into dir until ctx is done. It calls written after each file. The files are the table of the
// meetings that were handled, so a restart loses nothing and writes nothing twice. If a file cannot be written, Follow
// yields its meeting again, because Handled finds no file. After several attempts, follow notes the meeting in the list
// of dead letters, which is a file of its own. To try again, delete its line and restart the program.
func follow(ctx context.Context, client *minutes.Client, dir string, written func(file string)) error {
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return err
	}
	path := func(id string) string { return filepath.Join(dir, url.PathEscape(id)+".md") }
	deadLetters := filepath.Join(dir, "dead-letters.txt")
	dead, err := lines(deadLetters)
	if err != nil {
		return err
	}
	opts := &minutes.FollowOptions{
		Since:  time.Now().Add(-since),
		Format: minutes.FormatMarkdown,
		Handled: func(m *minutes.Meeting) bool {
			_, err := os.Stat(path(m.ID))
			return err == nil || dead[m.ID]
		},
	}
	tries := map[string]int{} // the loop runs on one goroutine, so a map needs no lock
	for result, err := range client.Meetings.Follow(ctx, opts) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // the service rejects the key
			return err
		}
		err = store(path(result.MeetingID), result)
		if err == nil {
			written(path(result.MeetingID))
			continue
		}
		tries[result.MeetingID]++
		slog.Error("not stored", "meeting", result.MeetingID, "tries", tries[result.MeetingID], "err", err)
		if tries[result.MeetingID] == attempts {
			dead[result.MeetingID] = true
			err := appendLine(deadLetters, result.MeetingID)
			if err != nil {
				slog.Error("dead letter", "meeting", result.MeetingID, "err", err) // the next run tries again
			}
		}
	}
	return nil
}

// store writes the minutes of a result, or why there will be none. An error that may be temporary, such as a 403 while
// the key lacks a scope, makes no file.
func store(file string, result *minutes.Result) error {
	failed, ok := errors.AsType[*minutes.MeetingFailedError](result.Err)
	switch {
	case ok:
		return write(file, fmt.Sprintf("# %s\n\nThere are no minutes: %s.\n", result.Meeting.Title, failed.Status))
	case result.Err != nil:
		return result.Err
	}
	return write(file, result.Minutes.Content)
}

// write writes a file as a whole or not at all, because half a file would count as handled.
func write(file, text string) error {
	temp := file + ".tmp"
	err := os.WriteFile(temp, []byte(text), 0o644)
	if err != nil {
		return err
	}
	return os.Rename(temp, file)
}

// lines returns the lines of a file, which may not exist.
func lines(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		found[strings.TrimSuffix(line, "\n")] = true
	}
	return found, nil
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
