// Package docs holds the documents that programs of this module serve.
package docs

import _ "embed"

// Service describes the API of the service, and Control the control API of minutes-fake. Both are
// OpenAPI documents in YAML.
var (
	//go:embed openapi.yaml
	Service []byte
	//go:embed openapi-control.yaml
	Control []byte
)
