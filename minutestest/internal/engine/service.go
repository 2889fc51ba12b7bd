// Package engine is the Meeting Minutes Service in memory: the API of the
// interface and the storage behind its upload URLs, without a goroutine, a
// timer or a channel.
//
// A meeting's state is a function of the time its audio arrived, its script
// and the current time. Every request first brings its organisation up to now:
// everything that has fallen due happens, in the order in which it fell due.
// So quotas, transitions and history are the same whether anyone polled or not.
// Now is time.Now in the goroutine of the request; inside a testing/synctest
// bubble that is the bubble's time.
package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Service is the service in memory. Many goroutines may use it at once, from
// inside and outside synctest bubbles.
type Service struct {
	world atomic.Pointer[world] // replaced by Reset
}

// world is everything that a Service knows.
type world struct {
	ids         *ids
	pace        string   // Cache-Control of a meeting
	secret      [32]byte // signs cursors and upload URLs
	stages      Stages
	storageBase func(*http.Request) string
	keepAudio   int64        // the most bytes of recordings to keep
	kept        atomic.Int64 // bytes kept
	orgs        map[string]*organisation
	orgOrder    []*organisation

	// mu guards everything below, and the organisations. Bodies are read and
	// responses written without it.
	mu       sync.Mutex
	changes  uint64
	pageSize PageSize
	scripts  scripts
	keys     map[string]*key // by secret
}

// New returns a service that holds cfg, or an error that names the path of an
// invalid value in cfg.
func New(cfg Config) (*Service, error) {
	s := &Service{}
	if err := s.Reset(cfg); err != nil {
		return nil, err
	}
	return s, nil
}

// Reset starts again with cfg, as New does: earlier meetings, scripts, cursors
// and upload URLs are gone. On error nothing changes. A request in progress
// ends in the world in which it began.
func (s *Service) Reset(cfg Config) error {
	w, err := newWorld(cfg)
	if err != nil {
		return err
	}
	s.world.Store(w)
	return nil
}

func newWorld(cfg Config) (*world, error) {
	if err := cfg.Stages.check("stages"); err != nil {
		return nil, err
	}
	w := &world{
		ids: newIDs(cfg.Seed), stages: cfg.Stages, storageBase: cfg.StorageBase, keepAudio: cfg.KeepAudio,
		orgs: make(map[string]*organisation, len(cfg.Organisations)), keys: map[string]*key{}, scripts: scripts{},
	}
	if w.storageBase == nil {
		w.storageBase = OwnBase
	}
	w.pace = meetingCacheControl
	if d := cfg.MinPollInterval; d > 0 {
		w.pace = fmt.Sprintf("private, max-age=%.0f", math.Ceil(d.Seconds()))
	}
	w.ids.read(w.secret[:])
	for i := range cfg.Organisations {
		if err := w.add(fmt.Sprintf("organisations[%d]", i), &cfg.Organisations[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// add adds an organisation. place is its path in the Config.
func (w *world) add(place string, settings *Organisation) error {
	d, err := compile(place, settings)
	if err != nil {
		return err
	}
	if w.orgs[settings.ID] != nil {
		return &configError{place + ".id", fmt.Sprintf("%q is there already", settings.ID)}
	}
	q, err := newQuota(place, settings, wallClock())
	if err != nil {
		return err
	}
	o := &organisation{
		world: w, id: settings.ID, directory: d, quota: q,
		meetings: map[string]*meeting{}, externals: map[string]*meeting{}, personal: map[string]*calendar{},
	}
	w.orgs[o.id] = o
	w.orgOrder = append(w.orgOrder, o)
	return addKeys(w.keys, place, d.makeKeys(o))
}

func addKeys(keys map[string]*key, place string, added []*key) error {
	for i, k := range added {
		if keys[k.Secret] != nil {
			return &configError{fmt.Sprintf("%s.keys[%d].secret", place, i), "is another key's already"}
		}
		keys[k.Secret] = k
	}
	return nil
}

// key returns the key with a secret, or nil.
func (w *world) key(secret string) *key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[secret]
}

func (s Stages) check(place string) error {
	if s.Prepare < 0 || s.Transcribe < 0 || s.Queue < 0 || s.Write < 0 {
		return &configError{place, "durations cannot be negative"}
	}
	return nil
}

// SetPageSize makes list pages short, or empty, on demand: the interface lets
// a page hold fewer items than its limit. Nil ends that.
func (s *Service) SetPageSize(f PageSize) {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pageSize = f
}

// pageSizeOf returns the size of a page of a listing, from 0 to limit.
func (w *world) pageSizeOf(limit, page int) int {
	w.mu.Lock()
	f := w.pageSize
	w.mu.Unlock()
	if f == nil {
		return limit
	}
	return min(max(f(limit, page), 0), limit)
}

// OwnBase returns the scheme and host that a request came to, or its address if
// it names no host, as HTTP/1.0 allows.
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

// Organisation returns the present settings of an organisation, with the
// members, projects and terms added through the API.
func (s *Service) Organisation(id string) (Organisation, bool) {
	o := s.world.Load().orgs[id]
	if o == nil {
		return Organisation{}, false
	}
	o.lock(wallClock())
	defer o.unlock()
	return o.snapshot(), true
}

// snapshot is the reverse of compile and newQuota.
func (o *organisation) snapshot() Organisation {
	all := o.settings
	all.Keys = slices.Clone(all.Keys)
	all.Credits, all.TranscribeSeconds = new(o.credits), new(o.seconds)
	all.PeriodCredits, all.PeriodTranscribeSeconds = new(o.periodCredits), new(o.periodSeconds)
	all.MaxMembers, all.MaxTerms, all.NextResetAt = new(o.maxMembers), new(o.maxTerms), o.resetDate
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

// Update changes an organisation while it is in use: change edits the result
// of [Service.Organisation], which is then checked as in New and applied as a
// whole. Credits and TranscribeSeconds set the quota left now. Meetings and
// the id stay. change runs under a lock and must not call the Service.
func (s *Service) Update(id string, change func(*Organisation)) error {
	w := s.world.Load()
	o := w.orgs[id]
	if o == nil {
		return fmt.Errorf("engine: there is no organisation %q", id)
	}
	now := wallClock()
	o.lock(now)
	defer o.unlock()
	settings := o.snapshot()
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
	if settings.NextResetAt == o.resetDate {
		q.resetDay, q.resetAt, q.armed = o.resetDay, o.resetAt, o.armed
	}
	keys := maps.Clone(w.keys)
	maps.DeleteFunc(keys, func(_ string, k *key) bool { return k.org == o })
	if err := addKeys(keys, "organisation", d.makeKeys(o)); err != nil {
		return err
	}
	o.directory, o.quota, w.keys = d, q, keys
	return nil
}
