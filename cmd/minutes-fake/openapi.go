package main

import (
	"bytes"
	_ "embed"
	"net/http"
)

// The documents of docs/openapi.yaml and docs/openapi-control.yaml, as JSON.
var (
	//go:embed openapi/service.json
	serviceDocument []byte
	//go:embed openapi/control.json
	controlDocument []byte
)

const documentPath = "/openapi.json"

// withDocument serves the document of the service in front of it. No key is
// needed, and the request counts for nothing.
func withDocument(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == documentPath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			document(serviceDocument).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// document is an OpenAPI document as a handler.
type document []byte

func (d document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = bytes.NewReader(d).WriteTo(w)
}

func (c *control) openapi(*http.Request) (any, error) { return document(controlDocument), nil }
