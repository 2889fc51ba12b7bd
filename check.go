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

// The checks made before a request are those that keep a value from being
// changed on the wire or from reaching another resource. Lengths, dates and
// the like are the service's to judge: a copy of its rules would go stale.

// checkThat refuses a parameter of which something does not hold.
func checkThat(param string, holds bool, reason string) error {
	if holds {
		return nil
	}
	return &ParamError{param, reason}
}

// checkGiven refuses a parameter that is nil.
func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

const noUTF8 = "is not valid UTF-8"

// checkTexts refuses texts in a struct of parameters that JSON and URLs cannot carry
// unchanged. A struct whose type has no name holds a method's own parameters, whose
// names begin with a small letter.
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

// checkID refuses ids that would name another path than a meeting's.
func checkID(param, id string) error {
	return cmp.Or(
		checkThat(param, id != "", "must not be empty"),
		checkThat(param, id != "." && id != "..", "is a relative path, not an id"),
		checkThat(param, !strings.ContainsFunc(id, unicode.IsControl), "holds a control character"),
		checkThat(param, utf8.ValidString(id), noUTF8),
	)
}

// wrongPath says why a path would not arrive as it is, or would lead elsewhere, and
// returns "" for a good one.
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

// isNoASCII reports what is no printable ASCII.
func isNoASCII(r rune) bool { return r < ' ' || r >= 0x7f }

// missing says where a reply, or a part of it, lacks what it is of no use without, as in
// ".meetings[0].id", and returns "" where it lacks nothing. body is nil for a part.
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

// lacks reports whether an empty field is one that is needed: by its tag, a "value"
// must not be empty, and a "field" may be, if it stands in body. A list that is null
// there, as many servers write an empty one, is made empty.
func lacks(empty reflect.Value, need, name string, body []byte) bool {
	if need != "field" {
		return need == "value"
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it has been read once
	came := string(fields[name])
	if empty.Kind() == reflect.Slice && came != "" {
		empty.Set(reflect.MakeSlice(empty.Type(), 0, 0))
		return false
	}
	return came == "" || came == "null"
}
