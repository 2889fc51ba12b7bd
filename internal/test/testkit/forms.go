package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Form describes one JSON object of the interface: the kind of each field. It is
// written by hand from the tables of the interface only, so it catches a wrong name
// that client and service share. "?" after a kind means that the field may be absent,
// "|null" that it may be null. "[]" before a kind means an array. A capitalized name is
// another form.
type Form map[string]string

var (
	datePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timePattern = regexp.MustCompile(`^\d\d:\d\d$`)
)

// RequireForm fails the test unless body is one JSON value of the form.
func RequireForm(t testing.TB, name string, body []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", body)
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF, "more than one value: %s", body)
	require.Empty(t, Deviations(name, name, v), "%s", body)
}

// Deviations lists where v differs from the form.
func Deviations(at, kind string, v any) []string {
	if kind, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := v.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, not an array", at, v)}
		}
		var all []string
		for i, e := range list {
			all = append(all, Deviations(fmt.Sprintf("%s[%d]", at, i), kind, e)...)
		}
		return all
	}
	var ok bool
	switch kind {
	case "string":
		_, ok = v.(string)
	case "date":
		s, _ := v.(string)
		ok = datePattern.MatchString(s)
	case "time":
		s, _ := v.(string)
		ok = timePattern.MatchString(s)
	case "integer":
		n, isNumber := v.(json.Number)
		ok = isNumber && !strings.ContainsAny(n.String(), ".eE")
	case "boolean":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	default:
		return objectDeviations(at, Objects[kind].Form, v)
	}
	if !ok {
		return []string{fmt.Sprintf("%s is %v (%T), not a %s", at, v, v, kind)}
	}
	return nil
}

func objectDeviations(at string, f Form, v any) []string {
	object, ok := v.(map[string]any)
	if !ok || f == nil {
		return []string{fmt.Sprintf("%s is %T, not an object", at, v)}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		kind, optional := strings.CutSuffix(f[name], "?")
		kind, nullable := strings.CutSuffix(kind, "|null")
		value, there := object[name]
		switch {
		case !there && optional, there && value == nil && nullable:
		case !there:
			all = append(all, at+"."+name+" is missing")
		default:
			all = append(all, Deviations(at+"."+name, kind, value)...)
		}
	}
	for name := range object {
		if _, known := f[name]; !known {
			all = append(all, at+"."+name+" is not in the interface")
		}
	}
	return all
}
