package minutestest

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// The service never mixes up two things of one kind, so an id or a secret
// belongs to one organisation of the World alone.

// check returns every mistake in w, each with its path.
func (w World) check() error {
	c := &checker{}
	stages := w.Stages
	for _, s := range []struct {
		name string
		d    time.Duration
	}{{"prepare", stages.Prepare}, {"transcribe", stages.Transcribe}, {"write", stages.Write}} {
		if s.d < 0 {
			c.fault("stages."+s.name, "%s is negative", s.d)
		}
	}
	for i := range w.Organisations {
		c.organisation(fmt.Sprintf("organisations[%d]", i), &w.Organisations[i])
	}
	if c.faults == nil {
		// The engine has the final check, of addresses among others: if it
		// accepts the world, it can serve it.
		service, err := engine.New(w.config())
		if err == nil {
			err = populate(service, w.sampled())
		}
		if err != nil {
			c.faults = append(c.faults, errors.New(strings.TrimPrefix(err.Error(), "engine: ")))
		}
	}
	return errors.Join(c.faults...)
}

type checker struct {
	faults []error
	taken  map[string]string // kind and value, and its first path
}

func (c *checker) fault(place, format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// id checks one that must be there, begin with prefix and be the only one of
// its kind.
func (c *checker) id(place, kind, prefix, id string) {
	switch {
	case strings.TrimSpace(id) == "":
		c.fault(place, "missing")
		return
	case !strings.HasPrefix(id, prefix) || id == prefix:
		c.fault(place, "%q does not begin with %s", id, prefix)
	}
	c.unique(place, kind, id)
}

func (c *checker) unique(place, kind, value string) {
	if c.taken == nil {
		c.taken = make(map[string]string)
	}
	if first, ok := c.taken[kind+value]; ok {
		c.fault(place, "the same as %s", first)
		return
	}
	c.taken[kind+value] = place
}

func (c *checker) notNegative(place string, n *int) {
	if n != nil && *n < 0 {
		c.fault(place, "%d is negative", *n)
	}
}

func oneOf[T ~string](c *checker, place string, value T, of ...T) {
	if value != "" && !slices.Contains(of, value) {
		c.fault(place, "%q is none of %q", value, of)
	}
}

func (c *checker) organisation(at string, o *Organisation) {
	c.id(at+".id", "organisation", "", o.ID)
	c.notNegative(at+".credits", o.Credits)
	c.notNegative(at+".transcribe_seconds", o.TranscribeSeconds)
	c.notNegative(at+".max_members", o.MaxMembers)
	c.notNegative(at+".max_terms", o.MaxTerms)
	if o.NextResetAt != "" {
		if _, err := time.Parse(time.DateOnly, o.NextResetAt); err != nil {
			c.fault(at+".next_reset_at", "%q is no date such as 2026-12-01", o.NextResetAt)
		}
	}
	for i, m := range o.Members {
		place := fmt.Sprintf("%s.members[%d]", at, i)
		c.id(place+".id", "member", "emp_", m.ID)
		if m.Email != "" {
			c.unique(place+".email", "email of "+o.ID+": ", strings.ToLower(m.Email))
		}
		oneOf(c, place+".status", m.Status, minutes.MemberActive, minutes.MemberInvited, minutes.MemberNoAccount, minutes.MemberDeactivated)
	}
	for i, n := range o.Integrations {
		place := fmt.Sprintf("%s.integrations[%d]", at, i)
		c.id(place+".id", "integration", "", n.ID)
		oneOf(c, place+".default_visibility", n.DefaultVisibility, minutes.VisibilityPrivate, minutes.VisibilityOrganisation, minutes.VisibilityShared)
	}
	for i, p := range o.Projects {
		c.id(fmt.Sprintf("%s.projects[%d].id", at, i), "project", "prj_", p.ID)
	}
	for i, t := range o.Templates {
		// Templates may be the same in several organisations: many come from
		// the service itself.
		c.id(fmt.Sprintf("%s.templates[%d].id", at, i), "template of "+o.ID+": ", "tpl_", t.ID)
	}
	c.vocabulary(at+".vocabulary", o)
	c.meetings(at+".meetings", o)
	for i := range o.Keys {
		c.key(fmt.Sprintf("%s.keys[%d]", at, i), o, &o.Keys[i])
	}
}

func (c *checker) vocabulary(at string, o *Organisation) {
	for i, e := range o.Vocabulary {
		place := fmt.Sprintf("%s[%d]", at, i)
		term := strings.TrimSpace(e.Term)
		if term == "" {
			c.fault(place+".term", "missing")
		} else {
			c.unique(place+".term", "term of "+o.ID+": ", term)
		}
		for j, v := range e.Variants {
			variant := fmt.Sprintf("%s.variants[%d]", place, j)
			if strings.TrimSpace(v.Text) == "" {
				c.fault(variant+".text", "missing")
			}
			oneOf(c, variant+".source", v.Source, "auto", "manual")
		}
	}
	most := 500
	if o.MaxTerms != nil {
		most = *o.MaxTerms
	}
	if len(o.Vocabulary) > most {
		c.fault(at, "%d terms, %d at most", len(o.Vocabulary), most)
	}
}

// maxExpiresAt is the last second that nanoseconds since 1970 can count to.
const maxExpiresAt = math.MaxInt64 / 1_000_000_000

func (c *checker) key(at string, o *Organisation, k *Key) {
	switch {
	case k.Secret == "":
		c.fault(at+".secret", "missing")
	case strings.ContainsFunc(k.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		c.fault(at+".secret", "a header cannot carry it")
	case c.taken["secret"+k.Secret] != "":
		c.fault(at+".secret", "the same as %s", c.taken["secret"+k.Secret])
	default:
		c.unique(at+".secret", "secret", k.Secret)
	}
	switch {
	case k.MemberID == "" && k.IntegrationID == "":
		c.fault(at, "belongs to neither a member_id nor an integration_id")
	case k.MemberID != "" && k.IntegrationID != "":
		c.fault(at, "belongs to both a member_id and an integration_id")
	case k.MemberID != "" && o.Member(k.MemberID) == nil:
		c.fault(at+".member_id", "no member %q", k.MemberID)
	case k.IntegrationID != "" && o.Integration(k.IntegrationID) == nil:
		c.fault(at+".integration_id", "no integration %q", k.IntegrationID)
	}
	if k.ExpiresAt > maxExpiresAt {
		c.fault(at+".expires_at", "%d is after the year 2262; give seconds since 1970, not milliseconds, or leave it out", k.ExpiresAt)
	}
	for i, scope := range k.Scopes {
		if !slices.Contains(route.Scopes, scope) {
			c.fault(fmt.Sprintf("%s.scopes[%d]", at, i), "%q is none of %q", scope, route.Scopes)
		}
	}
	for i, from := range k.IPAllowlist {
		if _, err := parsePrefix(from); err != nil {
			c.fault(fmt.Sprintf("%s.ip_allowlist[%d]", at, i), "%q is neither an address nor a CIDR block", from)
		}
	}
}

// parsePrefix reads a CIDR block, or one address.
func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}
