package engine

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// key is an API key and all that it decides alone. It does not change: an
// update of its organisation replaces it.
type key struct {
	Key
	org        *organisation
	caller     string // id of the member or integration
	personal   bool
	admin      bool               // personal, and of an administrator
	dead       bool               // revoked, or of a member who is not active
	blocked    *apiError          // the error of every call with it, after 401 and IP_NOT_ALLOWED
	visibility minutes.Visibility // of meetings created without one
}

func (k *key) allows(scope string) bool {
	return k.Scopes == nil || slices.Contains(k.Scopes, scope)
}

func (k *key) expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// makeKeys makes the keys of o, as d describes them.
func (d *directory) makeKeys(o *organisation) []*key {
	list := make([]*key, 0, len(d.settings.Keys))
	for _, k := range d.settings.Keys {
		made := &key{Key: k, org: o, dead: k.Revoked}
		made.Scopes, made.Allowlist = slices.Clone(k.Scopes), nil
		for _, p := range k.Allowlist {
			made.Allowlist = append(made.Allowlist, unmapPrefix(p))
		}
		inactive := false
		if k.MemberID != "" {
			m := d.members[k.MemberID]
			made.personal, made.caller, made.admin = true, m.ID, m.Admin
			made.dead = made.dead || m.Status != minutes.MemberActive // D18
			made.visibility = defaultPersonalVisibility
		} else {
			in := d.integrations[k.IntegrationID]
			made.caller, inactive = in.ID, in.Inactive
			made.visibility = in.DefaultVisibility
		}
		switch { // the order of D6 and D18
		case d.settings.Suspended:
			made.blocked = errSuspended
		case d.settings.Expired:
			made.blocked = errExpired
		case d.settings.APIDisabled, inactive:
			made.blocked = errAPIDisabled
		case d.settings.PersonalKeysDisabled && made.personal:
			made.blocked = errPersonalDisabled
		}
		list = append(list, made)
	}
	return list
}

// authenticate finds the key, and returns the errors that it decides alone, in
// the order of D6.
func (c *call) authenticate() *apiError {
	secret, ok := bearer(c.r.Header)
	if !ok {
		return errUnauthenticated
	}
	c.x.KeySecret = secret
	k := c.world.key(secret)
	if k == nil {
		return errUnauthenticated
	}
	c.key, c.org = k, k.org
	c.x.KeySecret = k.Secret // its own, not a piece of the header
	c.x.Organisation, c.x.Caller, c.x.Personal = k.org.id, k.caller, k.personal
	switch {
	case k.dead, k.expired(c.now):
		return errUnauthenticated
	case len(k.Allowlist) > 0 && !k.permits(c.r.RemoteAddr):
		return errIPNotAllowed
	}
	return k.blocked
}

// bearer returns the key of the one Authorization header, whose scheme may be
// in any case (D18).
func bearer(h http.Header) (secret string, ok bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	secret = strings.Trim(secret, " ")
	return secret, strings.EqualFold(scheme, "Bearer") && secret != ""
}

// permits reports whether the key's allowlist holds a caller's address. A
// caller without one, as over a transport in memory, counts as loopback.
func (k *key) permits(remote string) bool {
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if withPort, err := netip.ParseAddrPort(remote); err == nil {
		addr = withPort.Addr()
	} else if bare, err := netip.ParseAddr(remote); err == nil {
		addr = bare
	}
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(k.Allowlist, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// unmapPrefix returns an IPv4 prefix that is written as IPv6 as IPv4, which is
// how addresses are compared.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
