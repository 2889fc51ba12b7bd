// Package engine is the Meeting Minutes Service in memory: the API of the
// interface and the storage behind its upload URLs, without a goroutine, a
// timer or a channel.
//
// A meeting's state is a function of when its audio arrived, of its script
// and of now. Every request first settles what has fallen due in its
// organisation, in the order of the instants at which it fell due, so quotas,
// transitions and history are the same whether somebody looked or not. Now is
// time.Now in the goroutine of the request; inside a testing/synctest bubble
// that is the bubble's time.
package engine

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Service is the service in memory. It is safe for use by many at once, from
// inside and outside synctest bubbles.
type Service struct {
	mu    sync.Mutex // held while a world or what it is made of is exchanged
	world atomic.Pointer[world]
}

// world is all a Service knows: a Reset puts another in its place.
type world struct {
	ids         *ids
	pace        []string // Cache-Control of a meeting
	secret      [32]byte // under which cursors and upload URLs are signed
	stages      Stages
	storageBase func(*http.Request) string
	keepAudio   int64        // bytes of recordings at most
	kept        atomic.Int64 // of them
	changes     atomic.Uint64
	pageSize    atomic.Pointer[PageSize]
	scripts     scripts
	orgs        map[string]*organisation
	orgOrder    []*organisation
	keys        atomic.Pointer[map[string]*key] // by secret; exchanged as a whole
}

// New returns a service that holds what cfg says, or an error that names the
// place in cfg that cannot be.
func New(cfg Config) (*Service, error) {
	s := &Service{}
	if err := s.Reset(cfg); err != nil {
		return nil, err
	}
	return s, nil
}

// Reset begins anew with cfg, as New does: meetings, scripts, cursors and
// upload URLs of before are gone. On error nothing changes. A request under
// way ends in the world it began in.
func (s *Service) Reset(cfg Config) error {
	w, err := newWorld(cfg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.Store(w)
	return nil
}

func newWorld(cfg Config) (*world, error) {
	w := &world{
		stages:      cfg.Stages,
		storageBase: cfg.StorageBase,
		keepAudio:   cfg.KeepAudio,
		orgs:        make(map[string]*organisation, len(cfg.Organisations)),
	}
	if w.storageBase == nil {
		w.storageBase = OwnBase
	}
	if err := cfg.Stages.check("stages"); err != nil {
		return nil, err
	}
	w.pace = pollingPace
	if d := cfg.MinPollInterval; d > 0 {
		w.pace = []string{fmt.Sprintf("private, max-age=%.0f", math.Ceil(d.Seconds()))}
	}
	rand.Read(w.secret[:])
	if w.ids = newIDs(cfg.Seed); cfg.Seed != 0 {
		for i := range len(w.secret) / 8 {
			binary.LittleEndian.PutUint64(w.secret[8*i:], w.ids.uint64())
		}
	}
	w.setPageSize(cfg.PageSize)
	now, keys := instantOf(time.Now()), map[string]*key{}
	for i := range cfg.Organisations {
		place, settings := fmt.Sprintf("organisations[%d]", i), &cfg.Organisations[i]
		d, err := compile(place, settings)
		if err != nil {
			return nil, err
		}
		if w.orgs[settings.ID] != nil {
			return nil, &configError{place + ".id", fmt.Sprintf("%q is there already", settings.ID)}
		}
		q, err := newQuota(place, settings, now)
		if err != nil {
			return nil, err
		}
		o := &organisation{
			world: w, id: settings.ID, directory: d, quota: q,
			meetings: map[string]*meeting{}, externals: map[string]*meeting{}, personal: map[string]*calendar{}, held: map[*meeting]struct{}{},
		}
		if err := addKeys(keys, place, o); err != nil {
			return nil, err
		}
		w.orgs[o.id] = o
		w.orgOrder = append(w.orgOrder, o)
	}
	w.keys.Store(&keys)
	return w, nil
}

func addKeys(keys map[string]*key, place string, o *organisation) error {
	for i, k := range o.keys() {
		if keys[k.Secret] != nil {
			return &configError{fmt.Sprintf("%s.keys[%d].secret", place, i), "is another key's already"}
		}
		keys[k.Secret] = k
	}
	return nil
}

func (s Stages) check(place string) error {
	if s.Prepare < 0 || s.Transcribe < 0 || s.Queue < 0 || s.Write < 0 {
		return &configError{place, "durations cannot be negative"}
	}
	return nil
}

func (w *world) setPageSize(f PageSize) {
	if f == nil {
		w.pageSize.Store(nil)
		return
	}
	w.pageSize.Store(&f)
}

// SetPageSize makes list pages short, or empty, on demand: the interface lets
// a page hold fewer items than its limit. Nil takes it back.
func (s *Service) SetPageSize(f PageSize) { s.world.Load().setPageSize(f) }

// OwnBase is the scheme and host a request came to. One of HTTP/1.0 may name no
// host: then it is the address it came to.
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

// Organisation returns the settings of an organisation as they are now,
// members, projects and terms added through the API included.
func (s *Service) Organisation(id string) (Organisation, bool) {
	o := s.world.Load().orgs[id]
	if o == nil {
		return Organisation{}, false
	}
	o.lock(instantOf(time.Now()))
	defer o.mu.Unlock()
	return o.snapshot(), true
}

// snapshot is the reverse of compile and newQuota.
func (o *organisation) snapshot() Organisation {
	all := o.settings
	all.Keys = slices.Clone(all.Keys)
	all.Credits, all.TranscribeSeconds = new(o.credits), new(o.seconds)
	all.PeriodCredits, all.PeriodTranscribeSeconds = new(o.periodCredits), new(o.periodSeconds)
	all.MaxMembers, all.MaxTerms = new(o.maxMembers), new(o.maxTerms)
	if o.resetDate != 0 {
		all.NextResetAt = o.resetDate.String()
	}
	for _, m := range o.memberOrder {
		all.Members = append(all.Members, *m)
	}
	for _, in := range slices.Sorted(maps.Keys(o.integrations)) {
		all.Integrations = append(all.Integrations, *o.integrations[in])
	}
	for _, p := range o.projectOrder {
		all.Projects = append(all.Projects, *p)
	}
	for _, t := range o.templateOrder {
		all.Templates = append(all.Templates, *t)
	}
	for _, t := range o.vocabulary {
		t.Variants = slices.Clone(t.Variants)
		all.Vocabulary = append(all.Vocabulary, t)
	}
	return all
}

// Update changes an organisation while it is in use: change edits what
// [Service.Organisation] returns, which is then checked as New does and taken
// as a whole. Credits and TranscribeSeconds set what is left now. Meetings
// stay, and so does the id. change runs under a lock and must not call the
// Service.
func (s *Service) Update(id string, change func(*Organisation)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.world.Load()
	o := w.orgs[id]
	if o == nil {
		return fmt.Errorf("engine: there is no organisation %q", id)
	}
	now := instantOf(time.Now())
	o.lock(now)
	defer o.mu.Unlock()
	settings, before := o.snapshot(), o.resetDate.String()
	if o.resetDate == 0 {
		before = ""
	}
	change(&settings)
	settings.ID = id
	d, err := compile("organisation", &settings)
	if err != nil {
		return err
	}
	q, err := newQuota("organisation", &settings, now)
	if err != nil {
		return err
	}
	q.reserved = o.reserved
	if settings.NextResetAt == before {
		q.resetDay, q.resetAt, q.armed = o.resetDay, o.resetAt, o.armed
	}
	keys := maps.Clone(*w.keys.Load())
	maps.DeleteFunc(keys, func(_ string, k *key) bool { return k.org == o })
	made := &organisation{directory: d}
	for i, k := range made.keys() {
		if keys[k.Secret] != nil {
			return &configError{fmt.Sprintf("organisation.keys[%d].secret", i), "is another key's already"}
		}
		k.org = o
		keys[k.Secret] = k
	}
	o.directory, o.quota = d, q
	w.keys.Store(&keys)
	return nil
}

// trim is what "trimmed" means throughout: Unicode white space.
func trim(s string) string { return strings.TrimSpace(s) }
