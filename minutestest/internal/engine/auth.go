package engine

import (
	"net/http"
	"net/netip"
	"strings"
)

// authenticate finds the key and refuses what is decided by it alone, in the
// order of D6. It takes no lock.
func (c *call) authenticate() *refusal {
	secret, ok := bearer(c.r.Header)
	if !ok {
		return errUnauthenticated
	}
	c.x.KeySecret = secret
	k := (*c.world.keys.Load())[secret]
	if k == nil {
		return errUnauthenticated
	}
	c.key, c.org = k, k.org
	c.x.KeySecret = k.Secret // its own, not a piece of the header
	c.x.Organisation, c.x.Caller, c.x.Personal = k.org.id, k.caller, k.personal
	switch {
	case k.dead, k.expires != 0 && c.now >= k.expires:
		return errUnauthenticated
	case len(k.Allowlist) > 0 && !k.permits(c.r.RemoteAddr):
		return errIPNotAllowed
	}
	return k.standing
}

// bearer returns the key of the one Authorization header, whose scheme is
// compared without regard to case (D18).
func bearer(h http.Header) (secret string, ok bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	const scheme = "Bearer "
	v := values[0]
	if len(v) <= len(scheme) || !strings.EqualFold(v[:len(scheme)], scheme) {
		return "", false
	}
	secret = strings.Trim(v[len(scheme):], " ")
	return secret, secret != ""
}

// permits reports whether the key's allowlist holds a caller's address. A
// caller without one, as over a transport in memory, counts as loopback.
func (k *key) permits(remote string) bool {
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if at, err := netip.ParseAddrPort(remote); err == nil {
		addr = at.Addr()
	} else if alone, err := netip.ParseAddr(remote); err == nil {
		addr = alone
	}
	addr = addr.Unmap().WithZone("")
	for _, p := range k.Allowlist {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// unmapPrefix writes an IPv4 prefix in IPv6 clothes as the IPv4 prefix it is,
// which is what addresses are compared as.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
