package rest

import "net/http"

// header is what a request carries besides its body, the API key among it. It is
// made for each attempt: one that is abandoned may still read its own. The values
// are made once, in New, and never written to.
func (c *call) header() http.Header {
	h := make(http.Header, 4)
	h["Authorization"] = c.client.authorization
	h["User-Agent"] = c.client.userAgent
	h["Accept"] = jsonType
	if c.req.ContentLength > 0 {
		h["Content-Type"] = jsonType
	}
	return h
}

var jsonType = []string{"application/json"}
