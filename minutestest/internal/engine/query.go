package engine

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parameters returns the query parameters with these names, and ignores
// others. ok is false if one is there twice or cannot be decoded. An absent
// one is nil.
func parameters(rawQuery string, names ...string) (values map[string]*string, ok bool) {
	values = map[string]*string{}
	for pair := range strings.SplitSeq(rawQuery, "&") { // url.ParseQuery would reject semicolons and errors in other parameters
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, false
		}
		if !slices.Contains(names, name) {
			continue
		}
		value, err = url.QueryUnescape(value)
		if err != nil || values[name] != nil {
			return nil, false
		}
		values[name] = &value
	}
	return values, true
}

// parseLimit takes a whole number from 1 to 50 in decimal digits.
func parseLimit(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32) // no sign, and no underscore
	return int(n), err == nil && 1 <= n && n <= maxLimit
}
