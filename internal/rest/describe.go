package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// heading finds the title of a page, or else its first heading: HAProxy's pages have no title.
var heading = regexp.MustCompile(`(?is)<(?:title|h1)[^>]*>\s*([^<\s].*?)</(?:title|h1)>`)

// Page describes a response of another sender, such as a proxy, by its sender and the heading of
// its page or else its beginning, without secrets.
func (m *Mask) Page(host string, header http.Header, body []byte) string {
	text := string(body)
	if found := heading.FindStringSubmatch(text); found != nil {
		text = found[1]
	}
	words := strings.Join(strings.Fields(m.Text(text)), " ")
	if words == "" {
		return m.Sender(host, header) + " sent no text"
	}
	return fmt.Sprintf("%s sent %.200q", m.Sender(host, header), words)
}

// Sender says who sent a response: the host, and the Server header.
func (m *Mask) Sender(host string, header http.Header) string {
	server := m.Text(header.Get("Server"))
	if server == "" {
		return host
	}
	return fmt.Sprintf("%s (%.80s)", host, server)
}

// Redirect describes a redirect, which the Client never follows. It names the target's host.
func (m *Mask) Redirect(host string, header http.Header) string {
	to, err := url.Parse(header.Get("Location"))
	if err != nil || *to == (url.URL{}) {
		return "the Client does not follow redirects"
	}
	return "the Client does not follow redirects, here to " + m.Text(cmp.Or(to.Host, host))
}
