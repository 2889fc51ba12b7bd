package minutes

import (
	"cmp"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Before a request, only that is checked which would change a value on the wire or
// reach another resource. The service judges lengths, dates and the like: a copy of
// its rules would go stale.
//
// In a reply, missing and lacks look for the fields without which it is of no use.

// checkThat returns a ParamError for param unless holds.
func checkThat(param string, holds bool, reason string) error {
	if holds {
		return nil
	}
	return &ParamError{param, reason}
}

// checkGiven returns a ParamError for a parameter that is nil.
func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

const noUTF8 = "is not valid UTF-8"

// checkTexts refuses a struct with a text that JSON and URLs cannot carry unchanged.
// If the type of the struct has no name, its fields are parameters of a method, and
// the error names them with a small first letter.
func checkTexts(params any) error {
	at, found := findBroken(reflect.ValueOf(params))
	return checkThat(at, !found, noUTF8)
}

// findBroken finds a text that is not valid UTF-8, and its place in a struct or a list.
func findBroken(v reflect.Value) (at string, found bool) {
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.String:
		return "", !utf8.ValidString(v.String())
	case reflect.Slice:
		texts, _ := reflect.TypeAssert[[]string](v)
		i := slices.IndexFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
		return "[" + strconv.Itoa(i) + "]", i >= 0
	case reflect.Struct:
		for i := range v.NumField() {
			if at, found := findBroken(v.Field(i)); found {
				name := v.Type().Field(i).Name
				if v.Type().Name() == "" {
					name = strings.ToLower(name[:1]) + name[1:]
				}
				return name + at, true
			}
		}
	}
	return "", false
}

// checkID refuses an id with which the path would not be that of a meeting.
func checkID(param, id string) error {
	return cmp.Or(
		checkThat(param, id != "", "must not be empty"),
		checkThat(param, id != "." && id != "..", "is a relative path, not an id"),
		checkThat(param, !strings.ContainsFunc(id, unicode.IsControl), "holds a control character"),
		checkThat(param, utf8.ValidString(id), noUTF8),
	)
}

// wrongPath says why a path would be changed on its way or lead elsewhere. It returns
// "" for a good path.
func wrongPath(path string) string {
	u, err := url.Parse(path)
	switch {
	case !strings.HasPrefix(path, "/"):
		return "must begin with a slash"
	case err != nil || u.EscapedPath() != path || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must be escaped, and must not hold a query, a fragment or a control character"
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		if plain, _ := url.PathUnescape(segment); plain == "" || plain == "." || plain == ".." {
			return "must not hold empty or relative segments"
		}
	}
	return ""
}

// isNoASCII reports whether r is not printable ASCII.
func isNoASCII(r rune) bool { return r < ' ' || r >= 0x7f }

// missing returns the place of the first needed field that a reply, or a part of it,
// lacks, such as ".meetings[0].id", or "" if there is none. body is nil for a part.
func missing(v reflect.Value, body []byte) (at string) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			element := v.Index(i)
			if element.Kind() == reflect.Pointer && element.IsNil() {
				element = reflect.New(element.Type().Elem())
			}
			if at := missing(reflect.Indirect(element), nil); at != "" {
				return "[" + strconv.Itoa(i) + "]" + at
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			at := missing(v.Field(i), nil)
			if at == "" && !v.Field(i).IsZero() {
				continue
			}
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if at != "" || lacks(v.Field(i), field.Tag.Get("need"), name, body) {
				return "." + name + at
			}
		}
	}
	return ""
}

// lacks reports whether an empty field is needed by its tag: a "value" must not be
// empty; a "field" may be empty, but must be in body. A list may be null there, as
// many servers write an empty one; lacks makes it empty.
func lacks(empty reflect.Value, need, name string, body []byte) bool {
	if need != "field" {
		return need == "value"
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // no error: body was decoded before
	came := string(fields[name])
	if empty.Kind() == reflect.Slice && came != "" {
		empty.Set(reflect.MakeSlice(empty.Type(), 0, 0))
		return false
	}
	return came == "" || came == "null"
}
