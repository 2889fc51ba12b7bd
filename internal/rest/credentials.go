package rest

import "net/http"

// credentials sets the header. Each attempt gets a header of its own, because a transport may still
// read that of an attempt which has ended.
type credentials struct {
	next          http.RoundTripper
	authorization []string
	userAgent     []string
}

var jsonType = []string{"application/json"}

func (l *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	header := http.Header{"User-Agent": l.userAgent, "Accept": jsonType}
	if k.Body != nil {
		header["Content-Type"] = jsonType
	}
	for name, values := range k.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header["Authorization"] = l.authorization
	req.Header = header // req is the attempt's own copy, which the link exchange has made
	return l.next.RoundTrip(req)
}
