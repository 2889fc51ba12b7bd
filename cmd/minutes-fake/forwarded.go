package main

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
)

// forwarded has next see the scheme and the host that a client came to, where a
// proxy in front tells them. Without a proxy that sets them, anybody could.
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
		next.ServeHTTP(w, r)
	})
}

// first is the first element of a list in a header: that of the proxy which
// the client came to.
func first(h http.Header, name string) string {
	value, _, _ := strings.Cut(h.Get(name), ",")
	return strings.TrimSpace(value)
}

func isHost(s string) bool {
	u, err := url.Parse("//" + s)
	return err == nil && s != "" && u.Host == s
}
