package minutes

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The checks made before a request are those that keep a value from being
// changed on the wire or from reaching another resource. Lengths, dates and
// the like are the service's to judge: a copy of its rules would go stale.

// text is a string parameter and its name.
type text struct{ param, value string }

// checkTexts refuses what JSON and URLs cannot carry unchanged.
func checkTexts(texts ...text) error {
	for _, t := range texts {
		if !utf8.ValidString(t.value) {
			return &ParamError{t.param, "is not valid UTF-8"}
		}
	}
	return nil
}

// checkID refuses ids that would name another path than a meeting's.
func checkID(param, id string) error {
	switch {
	case id == "":
		return &ParamError{param, "must not be empty"}
	case id == "." || id == "..":
		return &ParamError{param, "is a relative path, not an id"}
	case strings.ContainsFunc(id, isControl):
		return &ParamError{param, "holds a control character"}
	case !utf8.ValidString(id):
		return &ParamError{param, "is not valid UTF-8"}
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// missingID names the field where a reply came without its id.
func missingID(id string) string {
	if id == "" {
		return "id"
	}
	return ""
}

// missingIn names the list that a reply lacks, or what its first incomplete
// element lacks.
func missingIn[T any, R reply[T]](list *[]T, field string, body []byte) string {
	if absent(list, field, body) {
		return field
	}
	for i := range *list {
		if lack := R(&(*list)[i]).missing(nil); lack != "" {
			return field + "[" + strconv.Itoa(i) + "]." + lack
		}
	}
	return ""
}

// absent reports whether a reply has no such list at all. Where it is null, as many
// servers write an empty list, it is made empty.
func absent[T any](list *[]T, field string, body []byte) bool {
	if *list != nil {
		return false
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it has been read once
	if _, there := fields[field]; !there {
		return true
	}
	*list = []T{}
	return false
}
