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
func (r *request) authenticate() *apiError {
	secret := KeyOf(r.http)
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	for _, o := range r.service.orgs {
		k := keyOf(&o.Organisation, secret)
		if k != nil {
			r.org = o
			return r.identify(o, k)
		}
	}
	return errUnauthenticated
}

func (r *request) identify(o *organisation, k *world.Key) *apiError {
	m := memberOf(&o.Organisation, k.MemberID)
	in := integrationOf(&o.Organisation, k.IntegrationID)
	r.key = k
	r.member = m
	r.Caller = cmp.Or(k.MemberID, k.IntegrationID)
	expired := k.ExpiresAt != 0 && !r.now.Before(k.ExpiresAt.Time())
	switch {
	case k.Revoked, expired, m != nil && m.Status != minutes.MemberStatusActive:
		return errUnauthenticated
	case len(k.IPAllowlist) > 0 && !permits(k, r.http.RemoteAddr):
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
