package rest

import "net/http"

// header puts the API key on a request, and what else it carries. It is made for each
// attempt: one that is abandoned may still read its own.
func (c *call) header() http.Header {
	h := http.Header{"Authorization": c.client.Authorization, "User-Agent": c.client.UserAgent, "Accept": jsonType}
	if c.req.ContentLength > 0 {
		h["Content-Type"] = jsonType
	}
	return h
}

var jsonType = []string{"application/json"}
