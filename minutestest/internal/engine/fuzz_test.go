package engine

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzForm compares the parser of bodies with encoding/json.
func FuzzForm(f *testing.F) {
	for _, s := range []string{`{}`, `{"title":"x","date":null,"participant_ids":["a","a"]}`, `{"a":{"b":[1,"}"]},"title":" \ud83d\ude00\u0000"}`, ` { "title" : -1.5e3 , "x":true } `, `[`, `{"":""}`, `{"title":"\ud800\u0041"}`, `{"t":"\\u0000"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		form, ok := parseForm(data)
		var want map[string]json.RawMessage
		err := json.Unmarshal(data, &want)
		require.Equal(t, err == nil && want != nil && utf8.Valid(data), ok)
		if !ok {
			return
		}
		last := map[string]json.RawMessage{}
		for _, in := range form.fields {
			last[in.name] = in.raw
		}
		require.Len(t, last, len(want))
		for name, raw := range want {
			if _, plain := last[name]; plain {
				require.Equal(t, string(raw), string(last[name]))
			}
		}
		form.text("title")
		form.trimmed("date", 3, true)
		list, there := form.list("participant_ids")
		require.True(t, there || list == nil)
		form.err()
	})
}

// FuzzCursor: no string but our own is a cursor.
func FuzzCursor(f *testing.F) {
	s, err := New(Config{})
	require.NoError(f, err)
	w := s.world.Load()
	f.Add(w.cursor("o", "", "", position{7, 1}))
	f.Add("")
	f.Add("AA==\n")
	f.Fuzz(func(t *testing.T, cursor string) {
		if p, ok := w.position("o", "", "", cursor); ok {
			require.Equal(t, cursor, w.cursor("o", "", "", p))
			require.Equal(t, position{7, 1}, p)
		}
	})
}

// FuzzUploadURL: no URL but our own is signed, and none breaks storage.
func FuzzUploadURL(f *testing.F) {
	s, err := New(Config{Organisations: []Organisation{acme()}})
	require.NoError(f, err)
	own := s.world.Load().presign("org_acme", "mtg_x", "audio/wav", time.Unix(0, 0).UTC())
	f.Add(own, "audio/wav")
	f.Add("/storage/", "")
	f.Add("/storage/%zz/x?X-Amz-Signature=", "x")
	f.Fuzz(func(t *testing.T, target, contentType string) {
		u, err := url.Parse(target)
		if err != nil || !isStorage(u) {
			return
		}
		_, ok := s.world.Load().signed(u, contentType)
		require.Equal(t, u.EscapedPath()+"?"+u.RawQuery == own && contentType == "audio/wav", ok)
		w := httptest.NewRecorder()
		x := s.Serve(w, &http.Request{Method: "PUT", URL: u, Header: http.Header{"Content-Type": {contentType}}, Body: http.NoBody})
		require.Contains(t, []int{403}, x.Status)
	})
}

// FuzzQuery: a query never breaks the list, and every page is JSON.
func FuzzQuery(f *testing.F) {
	s, err := New(Config{Organisations: []Organisation{acme()}})
	require.NoError(f, err)
	for _, q := range []string{"limit=5", "cursor=&&=&", "external_id=%00", "date_from=2026-01-01&date_to=2026-12-31", "limit=%", "a;b"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := request("ci", "/v1/meetings")
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		x := s.Serve(w, r)
		require.Contains(t, []int{200, 400}, x.Status)
		require.True(t, json.Valid(w.Body.Bytes()))
	})
}

// A JSON string decodes to its original.
func FuzzString(f *testing.F) {
	f.Add("plain \" \\ \x00\x1f\u2028é😀\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		require.NoError(t, json.Unmarshal(encode(s), &back))
		require.Equal(t, string([]rune(s)), back)
	})
}

// FuzzText: scripted speech of any kind becomes a transcript and minutes.
func FuzzText(f *testing.F) {
	f.Add("spk_0: I will. We decided? 1. x", "emp_ada & <b>", "x")
	f.Add("spk_99999: \x00", "", "\xff")
	f.Fuzz(func(t *testing.T, script, title, variant string) {
		sp := &spoken{title: title, speakers: 1, scripted: script, terms: []Term{{"T", []Variant{{variant, "auto"}}}}, people: map[string]bool{"emp_ada": true}}
		sp.transcript()
		w := &written{spoken: sp, title: title, participants: []string{title}, template: &standardTemplate, date: "2026-01-01"}
		w.minutes()
	})
}
