package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// recording is a file of the folder of recordings.
type recording struct {
	name     string
	path     string
	size     int64
	modified time.Time
}

// recordingsIn lists a folder: every file counts as a recording, but hidden
// ones and folders.
func recordingsIn(dir string) ([]recording, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []recording
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r := recording{name: e.Name(), path: filepath.Join(dir, e.Name())}
		// Follows symbolic links. Errors are reported when the file is opened.
		if info, err := os.Stat(r.path); err == nil {
			if info.IsDir() {
				continue
			}
			r.size, r.modified = info.Size(), info.ModTime()
		}
		list = append(list, r)
	}
	return list, nil
}

// identify returns the external id of the recording's meeting. The id depends
// on the content only, so a renamed recording finds the same meeting. A file
// that is no recording fails here, before a meeting is created for it.
func (r recording) identify(ctx context.Context) (string, error) {
	rec, err := minutes.FromFile(r.path)(ctx)
	if err != nil {
		return "", err
	}
	defer rec.Close()
	hash := sha256.New()
	audio := io.NewSectionReader(rec.Audio, 0, rec.Size)
	if _, err := io.Copy(hash, untilDone{audio, ctx}); err != nil {
		return "", err
	}
	return "batch-" + hex.EncodeToString(hash.Sum(nil)), nil
}

// untilDone lets a Ctrl-C end the reading of a large file.
type untilDone struct {
	io.Reader
	ctx context.Context
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

var errChanged = errors.New("the recording has changed since it was identified")

// open opens the recording for its upload. ended is called when it is closed.
func (r recording) open(ctx context.Context, sent func(bytes int64), ended func()) (minutes.Recording, error) {
	info, err := os.Stat(r.path)
	if err != nil {
		return minutes.Recording{}, err
	}
	if info.Size() != r.size || !info.ModTime().Equal(r.modified) {
		return minutes.Recording{}, errChanged // its external id is another's
	}
	rec, err := minutes.FromFile(r.path)(ctx)
	if err == nil {
		rec.Audio = &watched{Recording: rec, sent: sent, ended: ended}
	}
	return rec, err
}

// watched counts the bytes of its recording that an upload has read. A progress
// callback would start again with each attempt, and would not report the end.
type watched struct {
	minutes.Recording
	furthest atomic.Int64
	sent     func(bytes int64)
	ended    func()
}

func (w *watched) ReadAt(p []byte, offset int64) (int, error) {
	n, err := w.Audio.ReadAt(p, offset)
	// A retry reads bytes again, which do not count again.
	for {
		was, is := w.furthest.Load(), offset+int64(n)
		if is <= was {
			break
		}
		if w.furthest.CompareAndSwap(was, is) {
			w.sent(is - was)
			break
		}
	}
	return n, err
}

func (w *watched) Close() error {
	w.ended()
	return w.Recording.Close()
}

// title is what the recording's meeting is called.
func (r recording) title(fromName bool) string {
	const longest = 300 // characters, the interface says
	if !fromName {
		return "Meeting of " + minutes.DateOf(r.modified)
	}
	name := strings.ToValidUTF8(strings.TrimSuffix(r.name, filepath.Ext(r.name)), "?")
	words := strings.FieldsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '_' })
	title := []rune(strings.Join(words, " "))
	return string(title[:min(len(title), longest)])
}
