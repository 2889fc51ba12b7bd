package minutes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// filesIn lists all files below dir.
func filesIn(t *testing.T, dir string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

var (
	noState = minutes.MeetingState{}
	polled  = minutes.MeetingState{PolledAt: time.Date(2026, 11, 22, 10, 0, 0, 123e6, time.UTC)}
	sent    = minutes.MeetingState{PolledAt: polled.PolledAt, UploadStartedAt: polled.PolledAt.Add(time.Second)}
)

func TestDirStore_ComparesAndSaves(t *testing.T) {
	t.Parallel()
	ids := []string{"mtg_1", "MTG_1", "", ".", "..", "../up", "a/b", `a\b`, "a\x00b", "ü", "CON", strings.Repeat("x", 1000)}
	dir := filepath.Join(t.TempDir(), "not", "yet", "there")
	store, other := minutes.DirStore(dir), minutes.DirStore(dir)
	ctx := t.Context()
	requireState := func(id string, want minutes.MeetingState) {
		t.Helper()
		got, err := other.Load(ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", id)
	}
	for _, id := range ids {
		requireState(id, noState)
		require.NoError(t, store.Delete(ctx, id))
		for _, step := range []struct {
			old, next, want minutes.MeetingState
			saved           bool
		}{
			{polled, sent, noState, false},
			{noState, polled, polled, true},
			{noState, sent, polled, false},
			{polled, sent, sent, true},
			{polled, polled, sent, false},
			{sent, sent, sent, true},
		} {
			saved, err := store.Save(ctx, id, step.old, step.next)
			require.NoError(t, err)
			require.Equal(t, step.saved, saved, "%q: %+v", id, step)
			requireState(id, step.want)
		}
	}
	require.Len(t, filesIn(t, dir), len(ids), "one file for each meeting")
	require.NoDirExists(t, filepath.Join(filepath.Dir(dir), "up"))
	for _, id := range ids {
		require.NoError(t, store.Delete(ctx, id))
		requireState(id, noState)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Of several concurrent changes to one state, the store saves one.
func TestDirStore_SavesOneOfConcurrentChanges(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	const workers, rounds = 8, 25
	var saves atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			store := minutes.DirStore(dir)
			for n, tries := 0, 0; n < rounds; tries++ {
				if !assert.Less(t, tries, 100*workers*rounds, "no progress") {
					return
				}
				old, err := store.Load(ctx, "mtg_1")
				if !assert.NoError(t, err) {
					return
				}
				// Each state contains its number and its writer, so all states differ.
				number := old.PolledAt.Unix()
				if old == noState {
					number = 0
				}
				next := minutes.MeetingState{PolledAt: time.Unix(number+1, 0).UTC(), UploadStartedAt: time.UnixMilli(int64(w*rounds + n)).UTC()}
				saved, err := store.Save(ctx, "mtg_1", old, next)
				if !assert.NoError(t, err) {
					return
				}
				if saved {
					saves.Add(1)
					n++
				}
			}
		})
	}
	all.Wait()
	last, err := minutes.DirStore(dir).Load(ctx, "mtg_1")
	require.NoError(t, err)
	require.Equal(t, int64(workers*rounds), saves.Load())
	require.Equal(t, saves.Load(), last.PolledAt.Unix(), "each save followed another")
}

// Leftovers of a killed Delete or Save do no harm, and neither do unrelated files.
func TestDirStore_IgnoresLeftoversOfAKill(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	store := minutes.DirStore(dir)
	saved, err := store.Save(ctx, "mtg_1", noState, polled)
	require.NoError(t, err)
	require.True(t, saved)
	file := filesIn(t, dir)[0]
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0123-NEW"), 0o700))

	empty, err := store.Load(ctx, "mtg_1")
	require.NoError(t, err)
	require.Equal(t, noState, empty)
	saved, err = store.Save(ctx, "mtg_1", polled, sent)
	require.NoError(t, err)
	require.False(t, saved)
	saved, err = store.Save(ctx, "mtg_1", noState, sent)
	require.NoError(t, err)
	require.True(t, saved, "an empty directory is no state")

	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), ".DS_Store"), nil, 0o600))
	got, err := store.Load(ctx, "mtg_1")
	require.NoError(t, err)
	require.Equal(t, sent, got)
	require.NoError(t, store.Delete(ctx, "mtg_1"))
	require.Empty(t, filesIn(t, dir))
}

func TestDirStore_ReturnsFileSystemErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	store := minutes.DirStore(file)
	_, loadErr := store.Load(context.Background(), "mtg_1")
	_, saveErr := store.Save(context.Background(), "mtg_1", noState, polled)
	for name, err := range map[string]error{"Load": loadErr, "Save": saveErr} {
		require.Error(t, err, name)
		require.Contains(t, err.Error(), fmt.Sprint(file), name)
	}
}
