package minutes

import (
	"net/url"
	"strings"
	"unicode"
)

// Before a request, the Client only checks that the service will receive it as the caller means it,
// on the intended path. The service checks lengths, dates and all other rules.

// checkThat returns a ParamError for param unless ok.
func checkThat(param string, ok bool, reason string) error {
	if ok {
		return nil
	}
	return &ParamError{Param: param, Reason: reason}
}

// checkGiven returns a ParamError for a parameter that is nil.
func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

// checkID returns a ParamError for an id that would change the path of the request, and for one that
// contains the API key, because errors, logs and observers show ids.
func (c *core) checkID(param, id string) error {
	switch {
	case c == nil:
		return errNotNew
	case id == "":
		return &ParamError{Param: param, Reason: "must not be empty"}
	case id == "." || id == "..":
		return &ParamError{Param: param, Reason: "is a relative path, not an id"}
	case strings.ContainsFunc(id, unicode.IsControl):
		return &ParamError{Param: param, Reason: "contains a control character"}
	case c.Mask.Text(id) != id:
		return &ParamError{Param: param, Reason: "contains the API key"}
	}
	return nil
}

// mask returns id without the API key.
func (c *core) mask(id string) string {
	if c == nil {
		return id
	}
	return c.Mask.Text(id)
}

// pathProblem returns why path cannot be sent unchanged or would lead to another path, or "".
func pathProblem(path string) string {
	u, err := url.Parse(path)
	switch {
	case !strings.HasPrefix(path, "/"):
		return "must begin with a slash"
	case err != nil || u.EscapedPath() != path || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must be escaped, and must not contain a query, a fragment or a control character"
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		if unescaped, _ := url.PathUnescape(segment); unescaped == "" || unescaped == "." || unescaped == ".." {
			return "must not contain empty or relative segments"
		}
	}
	return ""
}

func notPrintableASCII(r rune) bool { return r < ' ' || r >= 0x7f }
