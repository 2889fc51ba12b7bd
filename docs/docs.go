// Package docs holds the document that minutes-fake serves.
package docs

import _ "embed"

// Control is the OpenAPI document of minutes-fake's control API, as JSON.
//
//go:embed openapi-control.json
var Control []byte
