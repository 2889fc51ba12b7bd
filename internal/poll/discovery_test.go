package poll

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A discovery reads the list at once, back to since, and later only down to a page with nothing
// new.
func TestDiscovery_ReadsDownToWhatItKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &scripted{began: began, list: func(cursor string) ([]Snapshot[int], string, *Failure) {
			age := time.Duration(len(cursor)+1) * time.Hour // each page is an hour older
			created := began.Add(-age)
			m := Snapshot[int]{ID: age.String(), Final: true, Created: created, Updated: created}
			return []Snapshot[int]{m}, cursor + "x", nil
		}}
		p := newPoller(s)
		for i := range 5 { // for whom the list is read at 30 s
			defer p.Subscribe(string(rune('a'+i)), false).Cancel()
		}
		time.Sleep(40 * time.Second)
		s.mu.Lock()
		s.pages = nil
		s.mu.Unlock()
		d := p.Discover(began.Add(-3*time.Hour - time.Minute))
		defer d.Cancel()
		time.Sleep(20 * time.Second)
		found, err := d.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 3)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(t, []string{"", "x", "xx", "xxx"}, s.pages)
	})
}

// A meeting may appear below others that are newer, because the list is late or because clocks
// differ.
func TestDiscovery_FindsMeetingsThatTheListShowsLate(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{time.Minute, 9 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			meeting := func(id string, age time.Duration) Snapshot[int] {
				return Snapshot[int]{ID: id, Final: true, Created: began.Add(-age), Updated: began.Add(-age)}
			}
			old := meeting("old", time.Hour)
			s := &scripted{began: began, list: func(cursor string) ([]Snapshot[int], string, *Failure) {
				below := []Snapshot[int]{old}
				if time.Since(began) > time.Minute {
					below = []Snapshot[int]{meeting("late", late), old}
				}
				if cursor == firstPage {
					return []Snapshot[int]{meeting("newest", 0), meeting("newer", late/2)}, "below", nil
				}
				return below, "", nil
			}}
			d := newPoller(s).Discover(began.Add(-30 * time.Minute))
			defer d.Cancel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			first, err := d.Next(ctx)
			require.NoError(t, err)
			require.Len(t, first, 2)
			time.Sleep(2 * time.Minute)
			second, err := d.Next(ctx)
			require.NoError(t, err)
			require.Len(t, second, 1)
		})
	}
}

// What the caller has forgotten is found again on the next page that shows it, and nothing else is.
func TestDiscovery_FindsAgainWhatWasForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		s.list = func(string) ([]Snapshot[int], string, *Failure) {
			return []Snapshot[int]{{ID: "a", Created: s.began}, {ID: "b", Created: s.began}}, "", nil
		}
		d := newPoller(s).Discover(s.began)
		defer d.Cancel()
		found, err := d.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 2)
		time.Sleep(time.Hour)
		d.Forget("b")
		again, err := d.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, again, 1)
		require.Equal(t, "b", again[0].ID)
	})
}
