package main

import (
	"net/http"

	"go.yaml.in/yaml/v3"

	"github.com/meeting-minutes/minutes-go/docs"
)

// The OpenAPI documents, as handlers.
var (
	serviceDocument = document(docs.Service)
	controlDocument = document(docs.Control)
)

// document serves a YAML document as JSON.
func document(text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var tree any
		err := yaml.Unmarshal(text, &tree)
		respond(w, tree, err)
	}
}
