package engine

import (
	"net/url"
	"strings"
)

// parameters finds the query parameters an operation knows. Others are
// ignored; one that is there twice, or cannot be decoded, makes ok false.
// There is nil where a parameter is absent.
func parameters(rawQuery string, names ...string) (values []*string, ok bool) {
	values = make([]*string, len(names))
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, false
		}
		for i := range names {
			if names[i] != name {
				continue
			}
			decoded, err := url.QueryUnescape(value)
			if err != nil || values[i] != nil {
				return nil, false
			}
			values[i] = &decoded
		}
	}
	return values, true
}

// parseLimit takes a whole number from 1 to 50 in decimal digits.
func parseLimit(s string) (int, bool) {
	s = strings.TrimLeft(s, "0")
	if len(s) > 2 {
		return 0, false
	}
	n, ok := digits(s)
	return n, ok && n <= maxLimit
}
