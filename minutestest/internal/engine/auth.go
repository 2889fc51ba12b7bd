package engine

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// authenticate finds the caller and its organisation, and returns the errors that the key decides
// alone, in the order of D6 and D18.
func (c *call) authenticate() *apiError {
	secret := KeyOf(c.r)
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	for _, o := range c.service.orgs {
		if k := keyOf(&o.Organisation, secret); k != nil {
			c.org = o
			return c.identify(o, k)
		}
	}
	return errUnauthenticated
}

func (c *call) identify(o *organisation, k *world.Key) *apiError {
	m, in := memberOf(&o.Organisation, k.MemberID), integrationOf(&o.Organisation, k.IntegrationID)
	c.key, c.member, c.Caller = k, m, cmp.Or(k.MemberID, k.IntegrationID)
	switch {
	case k.Revoked, k.ExpiresAt != 0 && !c.now.Before(k.ExpiresAt.Time()), m != nil && m.Status != minutes.MemberStatusActive:
		return errUnauthenticated
	case len(k.IPAllowlist) > 0 && !permits(k, c.r.RemoteAddr):
		return errIPNotAllowed
	case o.Suspended:
		return errSuspended
	case o.Expired:
		return errExpired
	case o.APIDisabled, in != nil && in.Inactive:
		return errAPIDisabled
	case o.PersonalKeysDisabled && m != nil:
		return errPersonalDisabled
	}
	return nil
}

// KeyOf returns the key in the one Authorization header of r, whose scheme may be in any case (D18),
// or "". No key is empty.
func KeyOf(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(secret, " ")
}

// permits reports whether a key's allowlist holds a caller's address.
func permits(k *world.Key, remote string) bool {
	from, _ := netip.ParseAddrPort(remote)
	addr := from.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(k.IPAllowlist, func(entry string) bool {
		p, _ := parsePrefix(entry)
		return p.Contains(addr)
	})
}
