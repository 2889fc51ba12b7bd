package rest

import "net/http"

// header returns the header of an attempt, with the API key (the root's client.go makes
// it a Bearer token). Each attempt has its own, because a transport may still read it
// after the attempt has ended.
func (k *call) header() http.Header {
	h := http.Header{"Authorization": k.client.Authorization, "User-Agent": k.client.UserAgent, "Accept": jsonType}
	if k.Body != nil {
		h["Content-Type"] = jsonType
	}
	return h
}

var jsonType = []string{"application/json"}
