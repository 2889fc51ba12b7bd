package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meeting-minutes/minutes-go"
)

var extensions = map[minutes.Format]string{
	minutes.FormatMarkdown: ".md",
	minutes.FormatHTML:     ".html",
}

// folder is the destination of the minutes. A file of minutes has the
// recording's whole name and one more extension, so that no two recordings
// share one.
type folder struct{ dir, extension string }

// openFolder makes the folder if need be, and finds out whether it can be
// written to, before anything costs an upload.
func openFolder(dir, recordings string, format minutes.Format) (folder, error) {
	f := folder{dir, extensions[format]}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return f, err
	}
	a, errA := os.Stat(dir)
	b, errB := os.Stat(recordings)
	if err := errors.Join(errA, errB); err != nil {
		return f, err
	}
	if os.SameFile(a, b) {
		return f, fmt.Errorf("%s holds the recordings; the minutes need a folder of their own", dir)
	}
	probe, err := os.CreateTemp(dir, ".batch-*")
	if err != nil {
		return f, err
	}
	return f, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (f folder) path(r recording) string { return filepath.Join(f.dir, r.name+f.extension) }

// has reports whether the minutes are there already. As make does, it goes by
// the times of the files, which costs nothing even for very large recordings.
func (f folder) has(r recording) bool {
	info, err := os.Stat(f.path(r))
	return err == nil && info.Mode().IsRegular() && !info.ModTime().Before(r.modified)
}

// write puts the minutes in place at once or not at all. So half a file can
// never pass for a complete one.
func (f folder) write(r recording, content string) (err error) {
	temp, err := os.CreateTemp(f.dir, ".batch-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.WriteString(content)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Chmod(temp.Name(), 0o644); err != nil { // CreateTemp's is 0600
		return err
	}
	return os.Rename(temp.Name(), f.path(r))
}
