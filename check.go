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

// Before a request, the Client checks only what would change a value on the wire or reach
// another resource. The service judges lengths, dates and the like: a copy of its rules
// would become outdated.

// checkThat returns a ParamError for param unless ok.
func checkThat(param string, ok bool, reason string) error {
	if ok {
		return nil
	}
	return &ParamError{param, reason}
}

// checkGiven returns a ParamError for a parameter that is nil.
func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

const notUTF8 = "is not valid UTF-8"

// checkTexts rejects a struct with a text that JSON and URLs would change. If the
// struct's type has no name, its fields are parameters of a method, and the error begins
// their names with a small letter.
func checkTexts(params any) error {
	if v := reflect.Indirect(reflect.ValueOf(params)); v.Kind() == reflect.Struct {
		return checkFields(v)
	}
	return nil
}

func checkFields(v reflect.Value) error {
	for field, value := range v.Fields() {
		name := field.Name
		if v.Type().Name() == "" {
			name = strings.ToLower(name[:1]) + name[1:]
		}
		texts, isList := reflect.TypeAssert[[]string](value)
		for i, text := range texts {
			if !utf8.ValidString(text) {
				return &ParamError{name + "[" + strconv.Itoa(i) + "]", notUTF8}
			}
		}
		if !isList && !utf8.ValidString(reflect.Indirect(value).String()) { // valid for all other types
			return &ParamError{name, notUTF8}
		}
	}
	return nil
}

// checkID rejects an id that would make the path another one.
func checkID(param, id string) error {
	return cmp.Or(
		checkThat(param, id != "", "must not be empty"),
		checkThat(param, id != "." && id != "..", "is a relative path, not an id"),
		checkThat(param, !strings.ContainsFunc(id, unicode.IsControl), "holds a control character"),
		checkThat(param, utf8.ValidString(id), notUTF8),
	)
}

// pathProblem returns why a path would change on its way or lead elsewhere, or "".
func pathProblem(path string) string {
	u, err := url.Parse(path)
	switch {
	case !strings.HasPrefix(path, "/"):
		return "must begin with a slash"
	case err != nil || u.EscapedPath() != path || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must be escaped, and must not hold a query, a fragment or a control character"
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		if unescaped, _ := url.PathUnescape(segment); unescaped == "" || unescaped == "." || unescaped == ".." {
			return "must not hold empty or relative segments"
		}
	}
	return ""
}

func notPrintableASCII(r rune) bool { return r < ' ' || r >= 0x7f }
