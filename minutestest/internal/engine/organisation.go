package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// member is a member that is not changed any more once it is reachable: an
// update puts another in its place.
type member = Member

// organisation is one organisation and all that is its own. No id, reference
// or index reaches across two of them.
type organisation struct {
	world *world
	id    string

	// mu guards all below. It is held for no longer than memory takes: bodies
	// are read and replies written without it.
	mu sync.RWMutex

	directory
	quota

	lastSeq   uint64
	meetings  map[string]*meeting
	externals map[string]*meeting  // by external id
	everyone  calendar             // what is visible to all
	personal  map[string]*calendar // what else a member or integration sees, by its id
	schedule  schedule
	held      map[*meeting]struct{} // by a script
}

// directory is what an organisation consists of, beside its meetings.
type directory struct {
	settings        Organisation // without the lists below, the quota and the defaults
	members         map[string]*member
	memberOrder     []*member
	emails          map[string]*member // by folded address
	integrations    map[string]*Integration
	projects        map[string]*Project
	projectOrder    []*Project
	templates       map[string]*Template
	templateOrder   []*Template
	defaultTemplate *Template
	vocabulary      []Term // not changed in place: transcripts hold on to it
	maxMembers      int
	maxTerms        int
}

// key is an API key and all that is decided by it alone. It does not change:
// an update of its organisation puts another in its place.
type key struct {
	Key
	org        *organisation
	caller     string // id of the member or integration
	personal   bool
	admin      bool               // personal, and of an administrator
	dead       bool               // revoked, or of a member who is not active
	expires    instant            // 0: never
	standing   *refusal           // what every call with it is refused for, after 401 and IP_NOT_ALLOWED
	scopes     []string           // nil: all
	visibility minutes.Visibility // of meetings created without one
}

func (k *key) allows(scope string) bool {
	return k.scopes == nil || slices.Contains(k.scopes, scope)
}

// configError names the place in a Config that cannot be.
type configError struct{ place, fault string }

func (e *configError) Error() string { return "engine: " + e.place + ": " + e.fault }

// checker collects the first fault and remembers where it is.
type checker struct{ err error }

func (c *checker) fail(place, format string, args ...any) {
	if c.err == nil {
		c.err = &configError{place, fmt.Sprintf(format, args...)}
	}
}

func (c *checker) text(place, s string, required bool) {
	switch {
	case required && s == "":
		c.fail(place, "is required")
	case !utf8.ValidString(s):
		c.fail(place, "is not UTF-8")
	}
}

func (c *checker) unique(place string, seen map[string]bool, id string) {
	c.text(place, id, true)
	if seen[id] {
		c.fail(place, "%q is there already", id)
	}
	seen[id] = true
}

// compile checks the lists and limits of o and makes them ready for use.
// place is where o stands in its Config.
func compile(place string, o *Organisation) (directory, error) {
	var c checker
	d := directory{
		members:      make(map[string]*member, len(o.Members)),
		emails:       map[string]*member{},
		integrations: map[string]*Integration{},
		projects:     map[string]*Project{},
		templates:    map[string]*Template{},
		maxMembers:   value(o.MaxMembers, defaultMaxMembers),
		maxTerms:     value(o.MaxTerms, defaultMaxTerms),
	}
	c.text(place+".id", o.ID, true)
	c.text(place+".name", o.Name, false)
	if d.maxMembers < 0 || d.maxTerms < 0 {
		c.fail(place, "limits cannot be negative")
	}
	d.settings = Organisation{
		ID: o.ID, Name: o.Name, MaxMembers: o.MaxMembers, MaxTerms: o.MaxTerms, Keys: slices.Clone(o.Keys),
		Suspended: o.Suspended, Expired: o.Expired, APIDisabled: o.APIDisabled, PersonalKeysDisabled: o.PersonalKeysDisabled,
	}

	people := map[string]bool{} // members and integrations share one space of ids
	for i, m := range o.Members {
		at := fmt.Sprintf("%s.members[%d]", place, i)
		c.unique(at+".id", people, m.ID)
		c.text(at+".name", m.Name, true)
		c.text(at+".role", m.Role, false)
		m.Status = cmp.Or(m.Status, minutes.MemberActive)
		switch m.Status {
		case minutes.MemberActive, minutes.MemberInvited, minutes.MemberNoAccount, minutes.MemberDeactivated:
		default:
			c.fail(at+".status", "%q is none of active, invited, no_account, deactivated", m.Status)
		}
		if m.Email != "" {
			folded := foldEmail(m.Email)
			if !validEmail(m.Email) {
				c.fail(at+".email", "%q is not an address", m.Email)
			}
			if d.emails[folded] != nil {
				c.fail(at+".email", "%q is %s's already", m.Email, d.emails[folded].ID)
			}
			d.emails[folded] = &m
		}
		d.members[m.ID] = &m
		d.memberOrder = append(d.memberOrder, &m)
	}
	for i, in := range o.Integrations {
		at := fmt.Sprintf("%s.integrations[%d]", place, i)
		c.unique(at+".id", people, in.ID)
		if in.DefaultVisibility == "" {
			in.DefaultVisibility = defaultIntegrationVisibility
		}
		if !validVisibility(in.DefaultVisibility) {
			c.fail(at+".default_visibility", "%q is none of private, organisation, shared", in.DefaultVisibility)
		}
		d.integrations[in.ID] = &in
	}
	seen := map[string]bool{}
	for i, p := range o.Projects {
		at := fmt.Sprintf("%s.projects[%d]", place, i)
		c.unique(at+".id", seen, p.ID)
		c.text(at+".name", p.Name, true)
		d.projects[p.ID] = &p
		d.projectOrder = append(d.projectOrder, &p)
	}
	templates := o.Templates
	if len(templates) == 0 {
		templates = []Template{standardTemplate}
	}
	clear(seen)
	for i, t := range templates {
		at := fmt.Sprintf("%s.templates[%d]", place, i)
		c.unique(at+".id", seen, t.ID)
		c.text(at+".name", t.Name, true)
		c.text(at+".description", t.Description, false)
		c.text(at+".source", t.Source, false)
		t.Source = cmp.Or(t.Source, standardTemplate.Source)
		d.templates[t.ID] = &t
		d.templateOrder = append(d.templateOrder, &t)
		if t.IsDefault && d.defaultTemplate == nil {
			d.defaultTemplate = &t
		}
	}
	if d.defaultTemplate == nil { // D25: of several templates without a default, the first is
		d.defaultTemplate = d.templateOrder[0]
	}
	clear(seen)
	for i, t := range o.Vocabulary {
		at := fmt.Sprintf("%s.vocabulary[%d]", place, i)
		t.Term = trim(t.Term)
		c.unique(at+".term", seen, t.Term)
		t.Variants = slices.Clone(t.Variants)
		for j := range t.Variants {
			v := &t.Variants[j]
			v.Source = cmp.Or(v.Source, "manual")
			c.text(fmt.Sprintf("%s.variants[%d].text", at, j), v.Text, true)
			if v.Source != "auto" && v.Source != "manual" {
				c.fail(fmt.Sprintf("%s.variants[%d].source", at, j), "%q is neither auto nor manual", v.Source)
			}
		}
		d.vocabulary = append(d.vocabulary, t)
	}
	if len(d.vocabulary) > d.maxTerms {
		c.fail(place+".vocabulary", "holds %d terms, more than max_terms %d", len(d.vocabulary), d.maxTerms)
	}
	for i, k := range o.Keys {
		at := fmt.Sprintf("%s.keys[%d]", place, i)
		c.text(at+".secret", k.Secret, true)
		if strings.ContainsFunc(k.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			c.fail(at+".secret", "holds a character that no header can carry")
		}
		switch {
		case (k.MemberID == "") == (k.IntegrationID == ""):
			c.fail(at, "names either a member or an integration")
		case k.MemberID != "" && d.members[k.MemberID] == nil:
			c.fail(at+".member_id", "there is no member %q", k.MemberID)
		case k.IntegrationID != "" && d.integrations[k.IntegrationID] == nil:
			c.fail(at+".integration_id", "there is no integration %q", k.IntegrationID)
		}
		for _, scope := range k.Scopes {
			if !slices.Contains(route.Scopes, scope) {
				c.fail(at+".scopes", "there is no scope %q", scope)
			}
		}
		for _, p := range k.Allowlist {
			if !p.IsValid() {
				c.fail(at+".ip_allowlist", "holds an invalid prefix")
			}
		}
	}
	return d, c.err
}

// keys makes the keys of an organisation.
func (o *organisation) keys() []*key {
	list := make([]*key, 0, len(o.settings.Keys))
	for _, k := range o.settings.Keys {
		made := &key{Key: k, org: o, dead: k.Revoked, scopes: slices.Clone(k.Scopes)}
		made.Allowlist = nil
		for _, p := range k.Allowlist {
			made.Allowlist = append(made.Allowlist, unmapPrefix(p))
		}
		if !k.ExpiresAt.IsZero() {
			made.expires = max(1, instantOf(k.ExpiresAt))
		}
		inactive := false
		if k.MemberID != "" {
			m := o.members[k.MemberID]
			made.personal, made.caller, made.admin = true, m.ID, m.Admin
			made.dead = made.dead || m.Status != minutes.MemberActive // D18
			made.visibility = defaultPersonalVisibility
		} else {
			in := o.integrations[k.IntegrationID]
			made.caller, inactive = in.ID, in.Inactive
			made.visibility = in.DefaultVisibility
		}
		switch { // the order of D6 and D18
		case o.settings.Suspended:
			made.standing = errSuspended
		case o.settings.Expired:
			made.standing = errExpired
		case o.settings.APIDisabled, inactive:
			made.standing = errAPIDisabled
		case o.settings.PersonalKeysDisabled && made.personal:
			made.standing = errPersonalDisabled
		}
		list = append(list, made)
	}
	return list
}

func value(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}

func validVisibility(v minutes.Visibility) bool {
	return v == minutes.VisibilityPrivate || v == minutes.VisibilityOrganisation || v == minutes.VisibilityShared
}
