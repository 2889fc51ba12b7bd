package rest

import (
	"net/url"

	"github.com/google/go-querystring/query"
)

// queryOf returns the query of a request, given as url.Values, a struct for
// go-querystring or nil.
func queryOf(q any) (url.Values, error) {
	if values, ok := q.(url.Values); ok || q == nil {
		return values, nil
	}
	return query.Values(q)
}
