// Package engine is the Meeting Minutes Service in memory: its API, and the storage behind its
// upload URLs, without a goroutine, a timer or a channel.
//
// A meeting's status is a function of the time its audio arrived, its script and the current time.
// Every request first brings its organisation up to now: everything that has fallen due happens, in
// the order in which it fell due. So quotas, transitions and history are the same whether anyone
// polled or not. Now is time.Now in the goroutine of the request, which is the bubble's time inside
// a testing/synctest bubble, and as far ahead of that as the clock was advanced.
package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Config is the initial state of a Service.
type Config struct {
	// World must pass [Check].
	World world.World

	// Storage maps the host of an API request to the scheme and host of the upload URLs it gets. Other
	// hosts get URLs of their own.
	Storage map[string]string

	// KeepAudio keeps the bytes of recordings for world.Audio. Otherwise they are only hashed and
	// counted.
	KeepAudio bool

	// MinPollInterval is what Cache-Control asks of clients that poll; 0: 30 s.
	MinPollInterval time.Duration

	// Speed divides every stage; 0: 1.
	Speed float64

	// Seed makes ids and cursors the same on each run; 0 does not.
	Seed uint64
}

// Service is the service in memory. Many goroutines may use it at once, from inside and outside
// synctest bubbles.
type Service struct {
	cfg Config
	ids *ids

	// pace is the Cache-Control of a meeting.
	pace string

	// ahead is how many nanoseconds the clock was advanced by.
	ahead atomic.Int64

	// mu guards everything below, and the organisations. Bodies are read and responses written
	// without it.
	mu      sync.Mutex
	changes uint64
	scripts scripts
	// named has the targets of the scripts that would match a meeting now or earlier, even if it is
	// deleted since.
	named     map[world.Script]bool
	stages    world.Stages
	pageSizes []int
	orgs      []*organisation
}

// New returns a service that holds cfg's World, or an error that names the path of each mistake in
// it.
func New(cfg Config) (*Service, error) {
	err := Check(cfg.World)
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg:     cfg,
		ids:     newIDs(cfg.Seed),
		scripts: scripts{},
		named:   map[world.Script]bool{},
		pace:    meetingCacheControl,
	}
	d := cfg.MinPollInterval
	if d > 0 {
		s.pace = fmt.Sprintf("private, max-age=%.0f", math.Ceil(d.Seconds()))
	}
	s.adopt(cfg.World)
	return s, nil
}

// Now returns the service's time in UTC, without a monotonic reading: requests from inside and outside a
// synctest bubble share only the wall clock.
func (s *Service) Now() time.Time {
	return time.Now().Round(0).UTC().Add(s.Ahead())
}

// Ahead returns how far [Service.AdvanceClock] has moved the service's time.
func (s *Service) Ahead() time.Duration { return time.Duration(s.ahead.Load()) }

// maxAhead is how far the clock can be advanced in total, because a time.Duration overflows after 292 years.
const maxAhead = 100 * 365 * 24 * time.Hour

// AdvanceClock moves the service's time on by d, and returns the new time. All that falls due
// meanwhile has happened at its own time: upload URLs and keys expire, quotas are topped up, and meetings
// progress. A d below zero changes nothing, because time never goes back.
func (s *Service) AdvanceClock(d time.Duration) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d > maxAhead-s.Ahead() {
		return s.Now(), fmt.Errorf("%s more would move the clock by over 100 years in total", d)
	}
	s.ahead.Add(int64(max(d, 0)))
	return s.Now(), nil
}

// organisation returns the organisation with this id, or nil.
func (s *Service) organisation(id string) *organisation {
	for _, o := range s.orgs {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// find returns a meeting by its id, with the Service locked and brought up to now. On error, the
// Service is not locked.
func (s *Service) find(id string) (*organisation, *meeting, error) {
	s.lock()
	for _, o := range s.orgs {
		if m := o.byID[id]; m != nil {
			return o, m, nil
		}
	}
	s.mu.Unlock()
	return nil, nil, fmt.Errorf("there is no meeting %q", id)
}

// World returns the present settings of all organisations, with the members, projects and terms
// added through the API and the quota that is left. It has no meetings.
func (s *Service) World() world.World {
	s.lock()
	defer s.mu.Unlock()
	return s.world()
}

func (s *Service) world() world.World {
	w := world.World{Stages: s.stages, PageSizes: slices.Clone(s.pageSizes)}
	for _, o := range s.orgs {
		w.Organisations = append(w.Organisations, complete(&o.Organisation))
	}
	return w
}

// lock locks the Service, and brings all organisations up to now.
func (s *Service) lock() (now time.Time) {
	s.mu.Lock()
	now = s.Now()
	for _, o := range s.orgs {
		o.settle(now)
	}
	return now
}

// Update changes the settings while the service is in use: change edits what World returns, which
// is then checked and takes effect as a whole. On error, which names the path of each mistake,
// nothing changes. Organisations that remain keep their meetings. change runs under a lock, so it
// must not call the Service.
func (s *Service) Update(change func(*world.World) error) error {
	now := s.lock()
	defer s.mu.Unlock()
	w := s.world()
	err := change(&w)
	if err != nil {
		return err
	}
	err = Check(w)
	if err != nil {
		return err
	}
	for i := range w.Organisations {
		o := &w.Organisations[i]
		if len(o.Meetings) > 0 && s.organisation(o.ID) != nil {
			return mistake.Errorf("%s: only a new organisation begins with meetings; add more on their own",
				placeOf("organisations").index(i).field("meetings").name())
		}
	}
	s.adopt(w)
	s.replan(now)
	return nil
}

// adopt makes the settings of a checked World those of the service.
func (s *Service) adopt(w world.World) {
	now := s.Now()
	s.stages = w.Stages
	s.pageSizes = slices.Clone(w.PageSizes)
	var orgs []*organisation
	for i := range w.Organisations {
		settings := complete(&w.Organisations[i])
		o := s.organisation(settings.ID)
		if o == nil {
			o = &organisation{
				service:       s,
				byID:          map[string]*meeting{},
				byExternal:    map[string]*meeting{},
				periodCredits: *settings.Credits,
				periodSeconds: *settings.TranscribeSeconds,
			}
		}
		o.Organisation = settings
		o.resetAt, _ = time.Parse(time.DateOnly, o.NextResetAt)
		if !now.Before(o.resetAt) {
			o.resetAt = time.Time{}
		}
		orgs = append(orgs, o)
		for j := range w.Organisations[i].Meetings {
			o.add(&w.Organisations[i].Meetings[j], now)
		}
	}
	s.orgs = orgs
}

// replan sets when the present statuses of all meetings under way end, after a change of scripts or
// stages.
func (s *Service) replan(now time.Time) {
	for _, o := range s.orgs {
		for _, m := range o.meetings {
			if m.Audio != nil && !m.Status.Final() {
				o.plan(m, now)
			}
		}
	}
}

// ids makes the ids of a Service, and keeps the secret that it signs with. Ids cannot be guessed.
// With a seed they are the same on each run, and those of one kind do not depend on how many of
// another kind were made meanwhile: a poll more or less changes no meeting's id.
type ids struct {
	secret [32]byte

	mu sync.Mutex
	// counts is how many ids there are of each prefix.
	counts map[string]uint64
}

// random differs in each program. It is read once, before any test begins, because in FIPS mode Go's source
// of entropy measures time, and fails in a bubble of virtual time.
var random = rand.Text()

// servers counts the services of this program.
var servers atomic.Uint64

func newIDs(seed uint64) *ids {
	i := &ids{counts: map[string]uint64{}}
	if seed == 0 {
		text := binary.LittleEndian.AppendUint64([]byte(random), servers.Add(1))
		i.secret = sha256.Sum256(text)
	} else {
		i.secret = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("seed"), seed))
	}
	return i
}

// next returns an id of 100 bits.
func (i *ids) next(prefix string) string {
	i.mu.Lock()
	i.counts[prefix]++
	n := i.counts[prefix]
	i.mu.Unlock()
	sum := i.mac("id", prefix, string(binary.LittleEndian.AppendUint64(nil, n)))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum)[:20])
}

// mac signs texts.
func (i *ids) mac(parts ...string) []byte {
	h := hmac.New(sha256.New, i.secret[:])
	h.Write([]byte(strings.Join(parts, "\x00")))
	return h.Sum(nil)
}
