package main

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// forwarded gives next the scheme and the host that a client came to, and the
// address that it came from, if a proxy in front reports them. Without a proxy that sets them, anybody could.
func forwarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // a copy
		switch strings.ToLower(first(r.Header, "X-Forwarded-Proto")) {
		case "https":
			r.TLS = new(tls.ConnectionState)
		case "http":
			r.TLS = nil
		}
		if host := first(r.Header, "X-Forwarded-Host"); isHost(host) {
			r.Host = host
		}
		if addr, err := netip.ParseAddr(first(r.Header, "X-Forwarded-For")); err == nil {
			r.RemoteAddr = netip.AddrPortFrom(addr, 0).String()
		}
		next.ServeHTTP(w, r)
	})
}

// first is the first element of a list in a header: that of the proxy which
// the client came to.
func first(h http.Header, name string) string {
	value, _, _ := strings.Cut(h.Get(name), ",")
	return strings.TrimSpace(value)
}

// isHost reports whether s is a host, with a port or without, and no markup.
func isHost(s string) bool {
	u, err := url.Parse("//" + s)
	return err == nil && s != "" && u.Host == s && !strings.ContainsAny(s, "<>\"'`{}|\\^ ")
}
