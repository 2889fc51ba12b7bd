package rest

import (
	"cmp"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// invisible matches the parts of a page that a browser does not show; title matches its title.
var (
	invisible = regexp.MustCompile(`(?is)<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>`)
	title     = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
)

// Page describes a response of another sender, such as a proxy: the host, the Server header,
// and the page's title or its first line of text, without secrets.
func (m Mask) Page(host string, header http.Header, body []byte) string {
	text := string(body)
	if found := title.FindStringSubmatch(text); found != nil {
		text = strings.Join(strings.Fields(found[1]), " ")
	}
	text = m.Text(html.UnescapeString(invisible.ReplaceAllLiteralString(text, "\n")))
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	page := host
	if server := header.Get("Server"); server != "" {
		page += " (" + short(m.Text(server)) + ")"
	}
	return page + " sent " + strconv.Quote(short(text))
}

// Redirect describes a redirect, which the Client never follows. It names the target's host.
func (m Mask) Redirect(host string, header http.Header) string {
	to, err := url.Parse(header.Get("Location"))
	if err != nil || *to == (url.URL{}) {
		return "the Client does not follow redirects"
	}
	return "the Client does not follow redirects, here to " + m.Text(cmp.Or(to.Host, host))
}

// short returns the first 80 characters.
func short(s string) string {
	const most = 80
	runes := []rune(s)
	return strings.TrimSpace(string(runes[:min(len(runes), most)]))
}
