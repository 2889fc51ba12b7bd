package poll

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// A discovery reads the list at once, back to since, and later only down to a page with nothing
// new.
func TestDiscovery_ReadsDownToWhatItKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &scripted{began: began, list: func(cursor string) (Page[int], *Failure) {
			age := time.Duration(len(cursor)+1) * time.Hour // each page is an hour older
			created := began.Add(-age)
			m := Snapshot[int]{ID: age.String(), Final: true, Created: created, Updated: created}
			return Page[int]{Shown: []Snapshot[int]{m}, Next: cursor + "x"}, nil
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
		found, _, err := d.Next(t.Context())
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
			s := &scripted{began: began, list: func(cursor string) (Page[int], *Failure) {
				below := []Snapshot[int]{old}
				if time.Since(began) > time.Minute {
					below = []Snapshot[int]{meeting("late", late), old}
				}
				if cursor == firstPage {
					above := []Snapshot[int]{meeting("newest", 0), meeting("newer", late/2)}
					return Page[int]{Shown: above, Next: "below"}, nil
				}
				return Page[int]{Shown: below}, nil
			}}
			d := newPoller(s).Discover(began.Add(-30 * time.Minute))
			defer d.Cancel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			first, _, err := d.Next(ctx)
			require.NoError(t, err)
			require.Len(t, first, 2)
			time.Sleep(2 * time.Minute)
			second, _, err := d.Next(ctx)
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
		s.list = func(string) (Page[int], *Failure) {
			return Page[int]{Shown: []Snapshot[int]{{ID: "a", Created: s.began}, {ID: "b", Created: s.began}}}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		d := newPoller(s).Discover(s.began)
		defer d.Cancel()
		found, _, err := d.Next(ctx)
		require.NoError(t, err)
		require.Len(t, found, 2)
		time.Sleep(time.Hour)
		d.Forget("b")
		again, _, err := d.Next(ctx)
		require.NoError(t, err)
		require.Len(t, again, 1)
		require.Equal(t, "b", again[0].ID)
	})
}

// newestFirst is the pages of a list of final meetings that begins with the newest, fifty a page.
func newestFirst(meetings []Snapshot[int], now time.Time) func(cursor string) (Page[int], *Failure) {
	return func(cursor string) (Page[int], *Failure) {
		from, _ := strconv.Atoi(cmp.Or(cursor, "0"))
		to := min(from+perPage, len(meetings))
		page := Page[int]{Shown: meetings[from:to], Now: now}
		if to < len(meetings) {
			page.Next = strconv.Itoa(to)
		}
		return page, nil
	}
}

// finished returns meetings with ids from first, which were all created and finished at a time.
func finished(first, n int, at time.Time) (all []Snapshot[int]) {
	for i := range n {
		all = append(all, Snapshot[int]{ID: strconv.Itoa(first + i), Final: true, Created: at, Updated: at})
	}
	return all
}

// After an import in one second, the list does not change any more. Then one page in each cycle is
// enough, apart from the readings back to since.
func TestDiscovery_ReadsAnImportForAWhileOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		list := finished(0, 1000, s.began)
		s.list = func(cursor string) (Page[int], *Failure) { return newestFirst(list, time.Time{})(cursor) }
		defer newPoller(s).Discover(s.began).Cancel()
		time.Sleep(15 * time.Minute)
		require.Greater(t, len(s.cursors()), 19*20, "a meeting may still appear late")
		before := len(s.cursors())
		time.Sleep(time.Hour)
		require.LessOrEqual(t, len(s.cursors())-before, 120+2*20)
	})
}

// Somebody shares an old meeting, far below the first page. The list is read back to since at no more
// than a page a minute, beside the first page of each cycle.
func TestDiscovery_FindsWhatBecomesVisibleLate(t *testing.T) {
	t.Parallel()
	for _, meetings := range []int{60, testbase.Many(2900, 500)} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{began: time.Now()}
			since := s.began.Add(-7 * 24 * time.Hour)
			list := finished(0, meetings, s.began.Add(-time.Hour))
			old := finished(meetings, 1, since.Add(-time.Hour))
			shared := finished(-1, 1, since.Add(time.Hour))
			s.list = func(cursor string) (Page[int], *Failure) {
				if time.Since(s.began) < 10*time.Minute {
					return newestFirst(slices.Concat(list, old), time.Now())(cursor)
				}
				return newestFirst(slices.Concat(list, shared, old), time.Now())(cursor)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
			defer cancel()
			d := newPoller(s).Discover(since)
			defer d.Cancel()
			time.Sleep(5 * time.Minute)
			found, _, err := d.Next(ctx)
			require.NoError(t, err)
			require.Len(t, found, meetings)
			found, _, err = d.Next(ctx)
			require.NoError(t, err)
			require.Len(t, found, 1)
			took := time.Since(s.began) - 10*time.Minute
			require.LessOrEqual(t, took, max(time.Hour, time.Duration(meetings/perPage+2)*time.Minute))
			time.Sleep(4 * time.Hour)
			ran := time.Since(s.began)
			require.LessOrEqual(t, float64(len(s.cursors())), ran.Minutes()*3+2*float64(meetings/perPage))
		})
	}
}

// Expired cursors break readings off. They must not begin again at since in every cycle.
func TestDiscovery_DoesNotBeginAgainAndAgainAtSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{began: time.Now()}
		list := finished(0, 3000, s.began.Add(-time.Hour))
		s.list = func(cursor string) (Page[int], *Failure) {
			if cursor == "2000" && time.Since(s.began) > 5*time.Minute {
				return Page[int]{}, &Failure{Err: errCursor, Kind: failure.Rejected}
			}
			return newestFirst(list, time.Now())(cursor)
		}
		defer newPoller(s).Discover(s.began.Add(-24 * time.Hour)).Cancel()
		time.Sleep(5 * time.Minute)
		before := len(s.cursors())
		time.Sleep(3 * time.Hour)
		require.LessOrEqual(t, len(s.cursors())-before, 3*(120+60))
	})
}

// Without since, a discovery begins two minutes ago by the service's clock, and not by this
// machine's.
func TestDiscovery_BeginsByTheServicesClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		ahead time.Duration // of the service's clock
		down  time.Duration // until the list works
		says  bool          // the service says which time it is
		want  []string
	}{
		{"this machine is ahead", -10 * time.Minute, 0, true, []string{"1 old"}},
		{"this machine is behind", 10 * time.Minute, 0, true, []string{"1 old"}},
		{"the list fails for a while", -10 * time.Minute, 20 * time.Minute, true, []string{"1 old"}},
		{"the service does not say", -10 * time.Minute, 0, false, []string{"1 old"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{began: time.Now()}
				clock := func() time.Time { return time.Now().Add(c.ahead).Round(0) }
				began := clock()
				s.pageFails = func(at time.Duration) *Failure {
					if at < c.down {
						return &Failure{Err: errDown, Kind: failure.Lost}
					}
					return nil
				}
				s.list = func(string) (Page[int], *Failure) {
					page := Page[int]{Shown: []Snapshot[int]{
						{ID: "1 old", Final: true, Created: began.Add(-time.Minute), Updated: began.Add(-time.Minute)},
						{ID: "4 old", Final: true, Created: began.Add(-4 * time.Minute)},
					}}
					if c.says {
						page.Now = clock()
					}
					return page, nil
				}
				d := newPoller(s).Discover(time.Time{})
				defer d.Cancel()
				found, _, err := d.Next(t.Context())
				require.NoError(t, err)
				var ids []string
				for _, m := range found {
					ids = append(ids, m.ID)
				}
				require.Equal(t, c.want, ids)
			})
		})
	}
}
