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
	"maps"
	"math"
	"net"
	"net/http"
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

// PageSize returns how many meetings a list page may hold: page number page, from 0, if the caller
// asks for limit. Results are clamped to 0..limit. Many goroutines call it at once, without a lock.
type PageSize func(limit, page int) int

// Service is the service in memory. Many goroutines may use it at once, from inside and outside
// synctest bubbles.
type Service struct {
	state atomic.Pointer[state] // replaced by Reset
}

// state is everything that a Service knows.
type state struct {
	Config
	ids    *ids
	pace   string       // Cache-Control of a meeting
	ahead  atomic.Int64 // nanoseconds that the clock was advanced by
	stages world.Stages
	orgs   []*organisation

	// mu guards everything below, and the organisations. Bodies are read and responses written
	// without it.
	mu       sync.Mutex
	changes  uint64
	pageSize PageSize
	scripts  scripts
	keys     map[string]*key // by secret
}

// New returns a service that holds cfg's World, or an error that names the path of each mistake
// in it.
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
	st := &state{Config: cfg, ids: newIDs(cfg.Seed), stages: orStages(cfg.World.Stages, defaultStages), keys: map[string]*key{}, scripts: scripts{}}
	if st.StorageBase == nil {
		st.StorageBase = OwnBase
	}
	st.pace = meetingCacheControl
	if d := cfg.MinPollInterval; d > 0 {
		st.pace = fmt.Sprintf("private, max-age=%.0f", math.Ceil(d.Seconds()))
	}
	for i := range cfg.World.Organisations {
		settings := &cfg.World.Organisations[i]
		o := &organisation{state: st, Organisation: complete(settings), byID: map[string]*meeting{}, byExternal: map[string]*meeting{}}
		o.quota = newQuota(&o.Organisation, st.now())
		st.orgs = append(st.orgs, o)
		maps.Copy(st.keys, o.makeKeys())
		for j := range settings.Meetings {
			o.add(&settings.Meetings[j], st.now())
		}
	}
	s.state.Store(st)
	return nil
}

// now is the service's time in UTC, without a monotonic reading: requests from inside and outside
// a synctest bubble share only the wall clock.
func (st *state) now() time.Time {
	return time.Now().Round(0).UTC().Add(time.Duration(st.ahead.Load()))
}

// Now returns the service's time.
func (s *Service) Now() time.Time { return s.state.Load().now() }

// AdvanceClock moves the service's time on by d, and returns the new time. What falls due
// meanwhile has happened at its own time: upload URLs and keys expire, quotas are topped up, and
// meetings progress. A d below zero changes nothing, because time never goes back.
func (s *Service) AdvanceClock(d time.Duration) time.Time {
	st := s.state.Load()
	st.ahead.Add(int64(max(d, 0)))
	return st.now()
}

// SetPageSize makes list pages short, or empty, on demand: the API lets a page hold fewer items
// than its limit. Nil ends that.
func (s *Service) SetPageSize(f PageSize) {
	st := s.state.Load()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pageSize = f
}

// pageSizeOf returns the size of a page of a list, from 0 to limit.
func (st *state) pageSizeOf(limit, page int) int {
	st.mu.Lock()
	f := st.pageSize
	st.mu.Unlock()
	if f == nil {
		return limit
	}
	return min(max(f(limit, page), 0), limit)
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

// find returns a meeting by its id, with its organisation locked and brought up to now, or nil.
func (st *state) find(id string) (*organisation, *meeting) {
	for _, o := range st.orgs {
		o.lock(st.now())
		if m := o.byID[id]; m != nil {
			return o, m
		}
		o.unlock()
	}
	return nil, nil
}

// Organisation returns the present settings of an organisation, with the members, projects and
// terms added through the API, and the quota that is left.
func (s *Service) Organisation(id string) (world.Organisation, bool) {
	st := s.state.Load()
	o := st.organisation(id)
	if o == nil {
		return world.Organisation{}, false
	}
	o.lock(st.now())
	defer o.unlock()
	return o.settings(), true
}

// Update changes an organisation while it is in use: change edits what Organisation returns, which
// is then checked and takes effect as a whole. On error, which names the path of each mistake,
// nothing changes. Meetings and the id stay. change runs under a lock, so it must not call the
// Service.
func (s *Service) Update(id string, change func(*world.Organisation)) error {
	st := s.state.Load()
	o := st.organisation(id)
	if o == nil {
		return fmt.Errorf("there is no organisation %q", id)
	}
	now := st.now()
	o.lock(now)
	defer o.unlock()
	settings := o.settings()
	change(&settings)
	settings.ID = id
	if err := st.checkUpdate(&settings); err != nil {
		return err
	}
	o.Organisation = complete(&settings)
	o.quota = o.quota.updated(&o.Organisation, now)
	maps.DeleteFunc(st.keys, func(_ string, k *key) bool { return k.org == o })
	maps.Copy(st.keys, o.makeKeys())
	return nil
}
