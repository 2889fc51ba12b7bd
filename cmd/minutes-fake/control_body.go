package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Of bodies longer than longBody, one at a time is in memory.
const (
	maxBody   = 16 << 20
	longBody  = 256 << 10
	maxValues = 1 << 20 // each takes much more memory than its text
)

// values is how many JSON values data has, or a little more.
func values(data []byte) (n int) {
	for _, c := range data {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	}
	return n
}

// body reads a request's body as one JSON value, without unknown fields.
func body(r *http.Request, into any) error {
	var text bytes.Buffer
	text.Grow(int(min(max(r.ContentLength, 0), maxBody)) + bytes.MinRead)
	_, err := text.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	data := text.Bytes()
	switch {
	case err != nil:
		return bad("", "the body could not be read: %v", err)
	case len(data) > maxBody:
		return &problem{Status: http.StatusRequestEntityTooLarge, Message: "the body is too long"}
	case values(data) > maxValues:
		return &problem{Status: http.StatusRequestEntityTooLarge, Message: "the body has too many elements"}
	case len(bytes.TrimSpace(data)) == 0:
		return bad("", "a JSON body expected")
	case !utf8.Valid(data):
		return bad("", "the body is not UTF-8")
	case string(bytes.TrimSpace(data)) == "null":
		return bad("", "a JSON object expected")
	}
	return decode("", data, into)
}

// decode reads data, which stands in the field given, into a value.
func decode(field string, data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			return bad(field, "more than one JSON value, or something that is none")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return bad(join(field, wrong.Field), "a %s does not fit here", wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return bad(join(field, strings.Trim(name, `"`)), "no such field")
	}
	return badIn(field, err)
}

// badIn is what an error says that begins with a place in the field, or does
// not.
func badIn(field string, err error) *problem {
	place, text, _ := placed(withoutOrigin(err))
	return bad(join(field, place), "%s", text)
}

func join(field, inner string) string { return strings.Trim(field+"."+inner, ".") }

// placed takes an error's text apart that begins with the place it is about,
// as in "members[1].status: …".
func placed(text string) (place, rest string, ok bool) {
	place, rest, ok = strings.Cut(text, ": ")
	if !ok || place == "" || strings.ContainsFunc(place, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_.[]", r)
	}) {
		return "", text, false
	}
	return place, rest, true
}
