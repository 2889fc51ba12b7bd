package engine

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// key is an API key and all that it decides alone. It does not change: an
// update of its organisation replaces it.
type key struct {
	world.Key
	org        *organisation
	allowlist  []netip.Prefix
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
	return k.ExpiresAt != 0 && !now.Before(k.ExpiresAt.Time())
}

// makeKeys makes the keys of o, by secret.
func (o *organisation) makeKeys() map[string]*key {
	keys := map[string]*key{}
	for _, k := range o.Keys {
		made := &key{Key: k, org: o, dead: k.Revoked, caller: cmp.Or(k.MemberID, k.IntegrationID)}
		made.visibility = o.defaultVisibility(made.caller)
		for _, from := range k.IPAllowlist {
			p, _ := parsePrefix(from)
			made.allowlist = append(made.allowlist, p)
		}
		inactive := false
		if m := o.Member(k.MemberID); m != nil {
			made.personal, made.admin = true, m.Admin
			made.dead = made.dead || m.Status != minutes.MemberActive // D18
		} else {
			inactive = o.Integration(k.IntegrationID).Inactive
		}
		switch { // the order of D6 and D18
		case o.Suspended:
			made.blocked = errSuspended
		case o.Expired:
			made.blocked = errExpired
		case o.APIDisabled, inactive:
			made.blocked = errAPIDisabled
		case o.PersonalKeysDisabled && made.personal:
			made.blocked = errPersonalDisabled
		}
		keys[k.Secret] = made
	}
	return keys
}

// authenticate finds the key, and returns the errors that it decides alone, in
// the order of D6.
func (c *call) authenticate() *apiError {
	secret, ok := bearer(c.r.Header)
	if !ok {
		return errUnauthenticated
	}
	c.x.KeySecret = secret
	c.state.mu.Lock()
	k := c.state.keys[secret]
	c.state.mu.Unlock()
	if k == nil {
		return errUnauthenticated
	}
	c.key, c.org = k, k.org
	c.x.Organisation, c.x.Caller, c.x.Personal = k.org.ID, k.caller, k.personal
	switch {
	case k.dead, k.expired(c.now):
		return errUnauthenticated
	case len(k.allowlist) > 0 && !k.permits(c.r.RemoteAddr):
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

// permits reports whether the key's allowlist holds a caller's address. A caller without one, as
// over a transport in memory, counts as loopback.
func (k *key) permits(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		from = netip.MustParseAddrPort("127.0.0.1:0")
	}
	addr := from.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(k.allowlist, func(p netip.Prefix) bool { return p.Contains(addr) })
}
