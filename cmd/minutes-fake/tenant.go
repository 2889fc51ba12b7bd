package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// tenant is a fake with a control API of its own: the program's, or that of an organisation that a test
// has made for itself. No two tenants have a key or an organisation in common, so a request belongs to
// one of them.
type tenant struct {
	// id is that of the organisation that it was made for; "": it is the program's.
	id string
	// world is the one that it begins with.
	world minutestest.World
	// fake is the one that serves at present.
	fake atomic.Pointer[fake]
	// claims are its keys and organisations.
	claims []claim
}

// claim is a key or an organisation of a tenant.
type claim struct{ kind, name string }

const (
	claimOfKey          = "key"
	claimOfOrganisation = "organisation"
)

func claimsOf(w minutestest.World) (list []claim) {
	for _, o := range w.Organisations {
		list = append(list, claim{claimOfOrganisation, o.ID})
		for _, k := range o.Keys {
			list = append(list, claim{claimOfKey, k.Secret})
		}
	}
	return list
}

// newTenant returns a tenant that begins with a world.
func (p *process) newTenant(id string, w minutestest.World) (*tenant, error) {
	t := &tenant{id: id, world: w}
	err := p.checkClaims(t, w)
	if err != nil {
		return nil, err
	}
	first, err := p.newFake(w)
	if err != nil {
		return nil, err
	}
	t.fake.Store(first)
	p.claim(t)
	return t, nil
}

// checkClaims returns an error if a world of t has what belongs to another tenant.
func (p *process) checkClaims(t *tenant, w minutestest.World) error {
	for _, c := range claimsOf(w) {
		owner, taken := p.owners.Load(c)
		if taken && owner != t {
			return fmt.Errorf("organisations: the %s %q is in use, "+
				"by the program's world or another POST /organisations", c.kind, c.name)
		}
	}
	return nil
}

// claim makes the keys and organisations that t has now its own. Those that it keeps are never without
// an owner.
func (p *process) claim(t *tenant) {
	before := t.claims
	t.claims = claimsOf(t.fake.Load().World())
	for _, c := range t.claims {
		p.owners.Store(c, t)
	}
	for _, c := range before {
		if !slices.Contains(t.claims, c) {
			p.owners.Delete(c)
		}
	}
}

// replace makes next the fake of t. This is a reset, because everything that a reset removes belongs to
// a fake.
func (p *process) replace(t *tenant, next *fake) {
	p.conclude(t.fake.Swap(next))
	p.claim(t)
}

// tenantOf returns the tenant whose key or upload URL a request has. Any other request belongs to the
// program's.
func (p *process) tenantOf(r *http.Request) *tenant {
	owner, ok := p.owners.Load(claimIn(r))
	if !ok {
		return p.main
	}
	return owner.(*tenant)
}

// claimIn returns the organisation in an upload URL or, of any other request, the key.
func claimIn(r *http.Request) claim {
	stored, isUpload := strings.CutPrefix(r.URL.EscapedPath(), "/storage/")
	if isUpload {
		escaped, _, _ := strings.Cut(stored, "/")
		id, _ := url.PathUnescape(escaped)
		return claim{claimOfOrganisation, id}
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return claim{}
	}
	return claim{claimOfKey, strings.Trim(secret, " ")}
}

// serveTenant serves the control API of an organisation.
func (p *process) serveTenant(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("organisation")
	p.turn.Lock()
	t := p.tenants[id]
	p.turn.Unlock()
	if t == nil {
		respond(w, nil, p.noTenant(id))
		return
	}
	http.StripPrefix(pathOf(id), p.controlOf(t)).ServeHTTP(w, r)
}

func pathOf(id string) string { return "/organisations/" + url.PathEscape(id) }

func (p *process) noTenant(id string) error {
	return &problem{http.StatusNotFound, fmt.Sprintf("POST /organisations has made no organisation %q", id)}
}

// show is a tenant as the control API shows it.
func (r request) show(t *tenant) object {
	var keys []string
	for _, c := range t.claims {
		if c.kind == claimOfKey {
			keys = append(keys, c.name)
		}
	}
	return object{
		"id":          t.id,
		"keys":        some(keys),
		"control_url": "http://" + r.Host + pathOf(t.id), // as this client reaches it
	}
}

func (r request) organisations() (any, error) {
	list := []object{}
	for _, id := range slices.Sorted(maps.Keys(r.process.tenants)) {
		list = append(list, r.show(r.process.tenants[id]))
	}
	return object{"organisations": list}, nil
}

// addOrganisation makes an organisation like the first of the program's world, with an id and keys of
// its own, and changes it as a PATCH /world would.
func (r request) addOrganisation(patch object) (any, error) {
	p := r.process
	w := p.main.world
	var like object
	for like == nil {
		p.made++
		like = p.numbered(w.Organisations[0], fmt.Sprintf("_%d", p.made))
	}
	text, err := json.Marshal(merge(like, patch))
	if err != nil {
		return nil, err
	}
	var o minutestest.Organisation
	err = strictjson.Decode(text, &o)
	if err != nil {
		return nil, err
	}
	w.Organisations = []minutestest.Organisation{o}
	t, err := p.newTenant(o.ID, w)
	if err != nil {
		return nil, err
	}
	p.tenants[t.id] = t
	return r.show(t), nil
}

// numbered returns an organisation with a suffix after its id and its keys, or nil if one of these is in
// use.
func (p *process) numbered(o minutestest.Organisation, suffix string) object {
	o.ID += suffix
	o.Keys = slices.Clone(o.Keys)
	for i := range o.Keys {
		o.Keys[i].Secret += suffix
	}
	if p.checkClaims(nil, minutestest.World{Organisations: []minutestest.Organisation{o}}) != nil {
		return nil
	}
	var like object
	text, _ := json.Marshal(o)
	_ = json.Unmarshal(text, &like)
	return like
}

func (r request) deleteOrganisation() (any, error) {
	id := r.PathValue("organisation")
	t := r.process.tenants[id]
	if t == nil {
		return nil, r.process.noTenant(id)
	}
	delete(r.process.tenants, id)
	for _, c := range t.claims {
		r.process.owners.Delete(c)
	}
	r.process.conclude(t.fake.Load())
	return nil, nil
}

// all returns every tenant. The caller holds turn, unless nothing can change them anymore.
func (p *process) all() []*tenant {
	return append(slices.Collect(maps.Values(p.tenants)), p.main)
}
