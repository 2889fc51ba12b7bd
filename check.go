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

// findBroken finds a text that is not valid UTF-8, and where in a struct or a list it
// is.
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
	case strings.ContainsAny(path, "?#"):
		return "must not hold a query or a fragment"
	case err != nil || u.EscapedPath() != path || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must be escaped, and must not hold a control character"
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

// checked is a reply that is of use only if no required field is missing. missing
// names the first that is, or returns "".
type checked interface{ missing(body []byte) string }

// missing names a field that came without a value, and returns "" for any other. A
// zero is a value where the field stands in body, which is nil where it is none.
func missing[T comparable](field string, value T, body []byte) string {
	var none T
	if value != none {
		return ""
	}
	if found := lookUp(field, body); found != "" && found != "null" {
		return ""
	}
	return field
}

// missingList names a list that a reply does not have at all. Where it is null, as
// many servers write an empty list, it is made empty.
func missingList[E any](field string, list *[]E, body []byte) string {
	if *list != nil {
		return ""
	}
	if lookUp(field, body) == "" {
		return field
	}
	*list = []E{}
	return ""
}

// lookUp returns a field of a reply as it came, "" where it did not.
func lookUp(field string, body []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it has been read once
	return string(fields[field])
}

// missingIn is missingList, and names what the first incomplete element lacks, too.
func missingIn[E checked](field string, list *[]E, body []byte) string {
	for i, element := range *list {
		if lack := element.missing(nil); lack != "" {
			return field + "[" + strconv.Itoa(i) + "]." + lack
		}
	}
	return missingList(field, list, body)
}
