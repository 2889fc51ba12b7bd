package poll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Those who wait on with what was just seen are no crowd that holds a newcomer
// back; those who come with it are.
func TestNewcomerInACrowd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen time.Duration // of the others
		page bool          // comes first
	}{
		"beside comebacks": {seen: time.Second},
		"in a crowd":       {seen: minPollInterval, page: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, now := newPlan(rand.New(rand.NewPCG(1, 1))), time.Hour
			join := func(id string, seen time.Duration) *watch {
				x := &thing{watch: watch{id: id, seen: seen}, model: new(model)}
				x.waiters = append(x.waiters, waiting{x, false})
				p.watches[id] = &x.watch
				p.join(&x.watch, now, now-seen < minPollInterval)
				return &x.watch
			}
			for i := range crowd {
				if i == crowd-1 {
					join("due later", now-time.Second) // which changes nothing
				}
				join(fmt.Sprint(i), now-test.seen)
			}
			w := join("newcomer", 0)
			do := p.decide(now)
			if test.page {
				require.Nil(t, do.poll)
				require.Equal(t, now+gather, do.wake)
				require.True(t, p.decide(do.wake).page)
				return
			}
			require.Equal(t, w, do.poll)
		})
	}
}

// A service that fails is left alone for longer each time, for a turn at the
// longest. It is out then, until a reply comes.
func TestOutageOfALane(t *testing.T) {
	t.Parallel()
	const turn = 40 * time.Second
	l, now := lane{share: 1}, time.Hour
	for n, seconds := range []int{0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 40, 40} {
		pause := time.Duration(seconds) * time.Second
		require.Equal(t, pause == turn, l.failed(now, now, turn), "failure %d", n+1)
		require.Equal(t, pause, max(0, l.until-now), "failure %d", n+1)
		if pause > 0 {
			require.False(t, l.failed(now+1, now, turn), "one that went out before the pause says nothing new")
			require.Equal(t, now+pause, l.until)
		}
		now = max(now, l.until)
	}
	l.good(now)
	require.False(t, l.isOut(turn))
	require.False(t, l.failed(now, now, turn))
	require.LessOrEqual(t, l.until, now, "one failure is no outage")
}

// An outage counts as failed looks of everybody, until the first reply. Whom the
// observer was told of it hears of again, when that is seen.
func TestOutageIsOver(t *testing.T) {
	t.Parallel()
	p, now := newPlan(rand.New(rand.NewPCG(1, 1))), time.Hour
	var both [2]*watch
	for i := range both {
		x := &thing{watch: watch{id: fmt.Sprint(i)}, model: new(model)}
		x.waiters = append(x.waiters, waiting{x, false})
		p.watches[x.id], both[i] = &x.watch, &x.watch
		p.join(&x.watch, now, false)
	}
	for range outage + 8 {
		p.polling++
		require.Empty(t, p.pollFailed(both[0], now, now))
		now = max(now, p.polls.until)
	}
	require.Positive(t, p.failures[both[1]].polls, "nobody has looked at it")
	told := new(watch)
	p.failures[told] = failures{polls: several, reported: true}
	p.polling++
	p.polled(both[0], now, 0)
	require.Equal(t, map[*watch]failures{told: {polls: several, reported: true}}, p.failures, "the observer is to hear of it")
}
