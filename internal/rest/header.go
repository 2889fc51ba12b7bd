package rest

import "net/http"

// header returns the header of an attempt, with the API key (client.go of the root makes
// it a Bearer token). Each attempt has its own, since a transport may read it after the
// attempt has ended.
func (c *apiCall) header() http.Header {
	h := http.Header{"Authorization": c.client.Authorization, "User-Agent": c.client.UserAgent, "Accept": jsonType}
	if c.req.ContentLength > 0 {
		h["Content-Type"] = jsonType
	}
	return h
}

var jsonType = []string{"application/json"}
