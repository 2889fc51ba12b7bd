package minutes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// DirStore returns a [Store] in a directory, which it creates if needed. Processes on one
// machine can share it. It has a small directory for each meeting until that ends, and leaves
// no locks behind after a kill -9. The file system needs hard links. A file that cannot be
// read as a state, as a power failure may leave it, counts as a poll and an upload at the
// time when it was written.
func DirStore(dir string) Store { return dirStore(dir) }

// dirStore keeps each state in a file of its own, whose name is a number. The file with the
// highest number counts. Its number is claimed with a hard link, which one process only can make.
type dirStore string

// Load implements Store.
func (d dirStore) Load(_ context.Context, id string) (MeetingState, error) {
	state, _, err := d.latest(d.of(id))
	return state, err
}

// Save implements Store.
func (d dirStore) Save(_ context.Context, id string, old, next MeetingState) (bool, error) {
	dir := d.of(id)
	text, err := json.Marshal(next)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return false, err
	}
	stored, n, err := d.latest(dir)
	if err != nil || stored != old {
		return false, err
	}
	temp, err := os.CreateTemp(dir, "new-*")
	if errors.Is(err, fs.ErrNotExist) { // Delete was faster
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // Delete removes it otherwise
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err != nil {
		return false, err
	}
	name := func(n int) string { return filepath.Join(dir, strconv.Itoa(n)) }
	err = os.Link(temp.Name(), name(n+1))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, highest, err := d.latest(dir)
	_ = os.Remove(name(n - 1)) // n stays: a directory that changes while it is read may not show n+1
	return highest == n+1, err // if not, n+1 had been used and removed
}

// Delete implements Store.
func (d dirStore) Delete(_ context.Context, id string) error { return os.RemoveAll(d.of(id)) }

// of returns the directory of a meeting: ids may hold anything, and differ only in case.
func (d dirStore) of(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(string(d), hex.EncodeToString(sum[:16]))
}

// latest returns the state in a meeting's directory and its number, 0 if there is none.
func (d dirStore) latest(dir string) (s MeetingState, n int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, 0, nil
	}
	for _, e := range entries {
		number, _ := strconv.Atoi(e.Name()) // 0 if it is a temporary file
		n = max(n, number)
	}
	if err != nil || n == 0 {
		return s, 0, err
	}
	name := filepath.Join(dir, strconv.Itoa(n))
	text, err := os.ReadFile(name)
	info, statErr := os.Stat(name)
	switch err = cmp.Or(err, statErr); {
	case errors.Is(err, fs.ErrNotExist): // there is a newer state, or none any more
		return d.latest(dir)
	case err == nil && json.Unmarshal(text, &s) != nil:
		written := info.ModTime().UTC().Truncate(time.Millisecond)
		s = MeetingState{PolledAt: written, UploadStartedAt: written}
	}
	return s, n, err
}
