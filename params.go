package minutes

import (
	"cmp"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Before a request, the Client only checks that the service will receive every value unchanged, and
// that the path is the intended one. The service checks lengths, dates and all other rules.

// checkThat returns a ParamError for param unless ok.
func checkThat(param string, ok bool, reason string) error {
	if ok {
		return nil
	}
	return &ParamError{Param: param, Reason: reason}
}

// checkGiven returns a ParamError for a parameter that is nil.
func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

const notUTF8 = "is not valid UTF-8"

// checkTexts returns a ParamError if a field of a struct has invalid UTF-8, which JSON and URLs
// would change. It ignores other values. The fields of an anonymous struct are parameters of a
// method, so the error writes their names in lower case.
func checkTexts(params any) error {
	if v := reflect.Indirect(reflect.ValueOf(params)); v.Kind() == reflect.Struct {
		return checkFields(v) // inlined here, it would allocate v for every request
	}
	return nil
}

func checkFields(v reflect.Value) error {
	for field, value := range v.Fields() {
		name := field.Name
		if v.Type().Name() == "" {
			name = strings.ToLower(name[:1]) + name[1:]
		}
		switch value := reflect.Indirect(value); value.Kind() {
		case reflect.String:
			if !utf8.ValidString(value.String()) {
				return &ParamError{Param: name, Reason: notUTF8}
			}
		case reflect.Slice:
			texts, _ := reflect.TypeAssert[[]string](value)
			for i, text := range texts {
				if !utf8.ValidString(text) {
					return &ParamError{Param: name + "[" + strconv.Itoa(i) + "]", Reason: notUTF8}
				}
			}
		}
	}
	return nil
}

// checkID returns a ParamError for an id that would change the path of the request.
func checkID(param, id string) error {
	return cmp.Or(
		checkThat(param, id != "", "must not be empty"),
		checkThat(param, id != "." && id != "..", "is a relative path, not an id"),
		checkThat(param, !strings.ContainsFunc(id, unicode.IsControl), "contains a control character"),
		checkThat(param, utf8.ValidString(id), notUTF8),
	)
}

// pathProblem returns why path cannot be sent unchanged or would lead to another path, or "".
func pathProblem(path string) string {
	u, err := url.Parse(path)
	switch {
	case !strings.HasPrefix(path, "/"):
		return "must begin with a slash"
	case err != nil || u.EscapedPath() != path || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl):
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
