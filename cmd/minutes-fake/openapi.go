package main

import (
	"encoding/json"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/meeting-minutes/minutes-go/docs"
)

// The OpenAPI documents, as handlers.
var (
	serviceDocument = document(docs.Service)
	controlDocument = document(docs.Control)
)

// document serves a YAML document as JSON. It converts the document when it is asked for first,
// because most runs never are.
func document(text []byte) http.HandlerFunc {
	converted := sync.OnceValue(func() []byte {
		var tree any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			panic(err) // a mistake in the repository, which a test finds
		}
		data, err := json.MarshalIndent(tree, "", " ")
		if err != nil {
			panic(err)
		}
		return data
	})
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(converted())
	}
}
