package main

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// The control API has no keys, so it must reject requests from web pages. They
// can reach this machine through a browser that runs on it.

// guard rejects requests that a page may have sent, and bodies without the
// content type of JSON: a page can send those anywhere without a preflight.
func (c *control) guard(r *http.Request) *problem {
	switch {
	case !c.isOwnHost(r.Host):
		return forbidden("the control API does not accept the host %q; -control sets its name", r.Host)
	case !isOwnPage(r):
		return forbidden("the control API rejects requests from web pages of other sites")
	case (r.ContentLength != 0 || r.Header["Content-Type"] != nil) && !isJSON(r.Header.Get("Content-Type")):
		return &problem{Status: http.StatusUnsupportedMediaType, Message: "a body of Content-Type application/json expected"}
	}
	return nil
}

// isOwnHost reports whether a Host can only lead here: an address, a name of
// the loopback, or the name in -control. The owner of any other name can make
// it lead here (DNS rebinding). HTTP/1.0 may omit it.
func (c *control) isOwnHost(host string) bool {
	name := strings.ToLower(withoutPort(host))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") ||
		isAddress(c.settings.control) && name == strings.ToLower(withoutPort(c.settings.control))
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// isOwnPage reports whether a browser, if it was one, was sent here by its
// user or by a page of the control API itself.
func isOwnPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || strings.EqualFold(origin, "http://"+r.Host)
}

func isJSON(contentType string) bool {
	bare, _, err := mime.ParseMediaType(contentType)
	return err == nil && bare == "application/json"
}
