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
	"cmp"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Config is the initial state of a Service.
type Config struct {
	World world.World // [Check] finds nothing wrong with it

	// StorageBase returns scheme://host of the upload URLs for the caller of r. Nil: OwnBase.
	StorageBase func(r *http.Request) string

	// KeepAudio keeps the bytes of recordings for world.Audio. Otherwise they are only hashed and
	// counted.
	KeepAudio bool

	// MinPollInterval is what Cache-Control asks of clients that poll; 0: 30 s.
	MinPollInterval time.Duration

	// Seed makes ids and cursors the same on each run; 0 does not.
	Seed uint64
}

// Service is the service in memory. Many goroutines may use it at once, from inside and outside
// synctest bubbles.
type Service struct {
	state atomic.Pointer[state] // replaced by Reset
}

// state is everything that a Service knows.
type state struct {
	Config
	ids   *ids
	pace  string       // Cache-Control of a meeting
	ahead atomic.Int64 // nanoseconds that the clock was advanced by

	// mu guards everything below, and the organisations. Bodies are read and responses written
	// without it.
	mu        sync.Mutex
	changes   uint64
	scripts   scripts
	stages    world.Stages
	pageSizes []int
	orgs      []*organisation
}

// New returns a service that holds cfg's World, or an error that names the path of each mistake in
// it.
func New(cfg Config) (*Service, error) {
	s := &Service{}
	return s, s.Reset(cfg)
}

// Reset starts again with cfg, as New does: earlier meetings, scripts, cursors and upload URLs are
// gone, and the clock is not ahead. On error nothing changes. A request in progress ends in the
// state in which it began.
func (s *Service) Reset(cfg Config) error {
	if err := Check(cfg.World); err != nil {
		return err
	}
	st := &state{Config: cfg, ids: newIDs(cfg.Seed), scripts: scripts{}}
	if st.StorageBase == nil {
		st.StorageBase = OwnBase
	}
	st.pace = meetingCacheControl
	if d := cfg.MinPollInterval; d > 0 {
		st.pace = fmt.Sprintf("private, max-age=%.0f", math.Ceil(d.Seconds()))
	}
	st.adopt(cfg.World)
	s.state.Store(st)
	return nil
}

// now is the service's time in UTC, without a monotonic reading: requests from inside and outside a
// synctest bubble share only the wall clock.
func (st *state) now() time.Time {
	return time.Now().Round(0).UTC().Add(time.Duration(st.ahead.Load()))
}

// Now returns the service's time.
func (s *Service) Now() time.Time { return s.state.Load().now() }

// AdvanceClock moves the service's time on by d, and returns the new time. What falls due meanwhile
// has happened at its own time: upload URLs and keys expire, quotas are topped up, and meetings
// progress. A d below zero changes nothing, because time never goes back.
func (s *Service) AdvanceClock(d time.Duration) time.Time {
	st := s.state.Load()
	st.ahead.Add(int64(max(d, 0)))
	return st.now()
}

// OwnBase returns the scheme and host that a request came to, or its address if it names no host,
// as HTTP/1.0 allows.
func OwnBase(r *http.Request) string {
	scheme, host := "http://", r.Host
	if r.TLS != nil {
		scheme = "https://"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && host == "" {
		host = at.String()
	}
	return scheme + cmp.Or(host, "localhost")
}

// organisation returns an organisation, or nil.
func (st *state) organisation(id string) *organisation {
	for _, o := range st.orgs {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// find returns a meeting by its id, with the state locked and brought up to now, or nil.
func (st *state) find(id string) (*organisation, *meeting) {
	st.lock()
	for _, o := range st.orgs {
		if m := o.byID[id]; m != nil {
			return o, m
		}
	}
	st.mu.Unlock()
	return nil, nil
}

// World returns the present settings of all organisations, with the members, projects and terms
// added through the API and the quota that is left. It has no meetings.
func (s *Service) World() world.World {
	st := s.state.Load()
	st.lock()
	defer st.mu.Unlock()
	return st.world()
}

func (st *state) world() world.World {
	w := world.World{Stages: st.stages, PageSizes: slices.Clone(st.pageSizes)}
	for _, o := range st.orgs {
		w.Organisations = append(w.Organisations, o.settings())
	}
	return w
}

// lock locks the state, and brings all organisations up to now.
func (st *state) lock() (now time.Time) {
	st.mu.Lock()
	now = st.now()
	for _, o := range st.orgs {
		o.settle(now)
	}
	return now
}

// Update changes the settings while the service is in use: change edits what World returns, which
// is then checked and takes effect as a whole. On error, which names the path of each mistake,
// nothing changes. Organisations that stay keep their meetings. change runs under a lock, so it
// must not call the Service.
func (s *Service) Update(change func(*world.World) error) error {
	st := s.state.Load()
	now := st.lock()
	defer st.mu.Unlock()
	w := st.world()
	if err := change(&w); err != nil {
		return err
	}
	if err := Check(w); err != nil {
		return err
	}
	for i := range w.Organisations {
		if o := &w.Organisations[i]; len(o.Meetings) > 0 && st.organisation(o.ID) != nil {
			return fmt.Errorf("organisations[%d].meetings: only a new organisation begins with them; AddMeetings adds more", i)
		}
	}
	st.adopt(w)
	st.replan(now)
	return nil
}

// adopt makes the settings of a checked World those of the service.
func (st *state) adopt(w world.World) {
	now, before := st.now(), st.orgs
	st.stages, st.pageSizes = orStages(w.Stages, defaultStages), slices.Clone(w.PageSizes)
	st.orgs = nil
	for i := range w.Organisations {
		settings := &w.Organisations[i]
		at := slices.IndexFunc(before, func(o *organisation) bool { return o.ID == settings.ID })
		var o *organisation
		if at >= 0 {
			o = before[at]
			o.Organisation = complete(settings)
			o.quota = o.quota.updated(&o.Organisation, now)
		} else {
			o = &organisation{state: st, Organisation: complete(settings), byID: map[string]*meeting{}, byExternal: map[string]*meeting{}}
			o.quota = newQuota(&o.Organisation, now)
		}
		st.orgs = append(st.orgs, o)
		for j := range settings.Meetings {
			o.add(&settings.Meetings[j], now)
		}
	}
}

// replan sets when the present statuses of all meetings under way end, after a change of scripts or
// stages.
func (st *state) replan(now time.Time) {
	for _, o := range st.orgs {
		for _, m := range o.meetings {
			if m.job != nil && !m.status.Final() {
				o.plan(m, now)
			}
		}
	}
}
