package main

import (
	"net/http"

	"github.com/meeting-minutes/minutes-go/docs"
)

// serveDocument serves the OpenAPI document of the control API.
func serveDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(docs.Control)
}
