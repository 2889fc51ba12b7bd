package inspector

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// guarded passes only requests whose Host names this machine to h. Otherwise a page of another site
// could have its own name resolve to this machine, and then read everything in the name of its visitor.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsOwnHost(r.Host) {
			http.Error(w, fmt.Sprintf("the inspector does not accept the host %q, which is not this machine's name; "+
				"use localhost or an address", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// IsOwnHost reports whether a Host header names this machine: by an address, as localhost, or by its own
// name. An empty one, as of HTTP/1.0, is from no browser.
func IsOwnHost(header string) bool {
	host := Hostname(header)
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	if err == nil {
		return true
	}
	machine, _ := os.Hostname()
	return strings.EqualFold(host, machine)
}

// Hostname returns the name of a host, without its port.
func Hostname(host string) string { return strings.ToLower((&url.URL{Host: host}).Hostname()) }
