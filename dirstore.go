package minutes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// DirStore returns a [Store] in the directory dir, which the Store creates if needed. The processes
// of one machine can share dir. Each meeting has a small subdirectory. You can delete subdirectories
// that have not changed for days. A power failure may undo the last changes.
func DirStore(dir string) Store { return dirStore(dir) }

// dirStore keeps the state of a meeting in the name of an empty file, because a rename is atomic.
type dirStore string

func (d dirStore) Load(_ context.Context, id string) (MeetingState, error) {
	entries, err := os.ReadDir(d.of(id))
	for _, e := range entries {
		var polled, upload int64
		if n, _ := fmt.Sscanf(e.Name(), stateName, &polled, &upload); n == 2 {
			return MeetingState{time.UnixMilli(polled).UTC(), time.UnixMilli(upload).UTC()}, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return MeetingState{}, err
}

func (d dirStore) Save(_ context.Context, id string, old, next MeetingState) (bool, error) {
	dir := d.of(id)
	err := os.Rename(filepath.Join(dir, nameOf(old)), filepath.Join(dir, nameOf(next)))
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case !missing:
		return err == nil, err
	case old != MeetingState{}: // it is another state now
		return false, nil
	}
	temp := dir + "-" + rand.Text()
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return false, err
	}
	defer os.RemoveAll(temp)
	if err := os.WriteFile(filepath.Join(temp, nameOf(next)), nil, 0o600); err != nil {
		return false, err
	}
	_ = os.Remove(dir) // if it is empty: a Delete was killed
	err = os.Rename(temp, dir)
	if _, statErr := os.Stat(dir); err != nil && statErr == nil { // another process was faster
		return false, nil
	}
	return err == nil, err
}

func (d dirStore) Delete(_ context.Context, id string) error { return os.RemoveAll(d.of(id)) }

// of returns the directory of a meeting. Ids may contain any character, or differ only in case.
func (d dirStore) of(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(string(d), hex.EncodeToString(sum[:16]))
}

// stateName has the two times in milliseconds since 1970; the zero time is negative.
const stateName = "polled%d_upload%d"

func nameOf(s MeetingState) string {
	return fmt.Sprintf(stateName, s.PolledAt.UnixMilli(), s.UploadStartedAt.UnixMilli())
}
