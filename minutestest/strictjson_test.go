package minutestest_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
)

// The tests of internal/fake/strictjson are here, because each package with tests is one more program to link.

type form struct {
	embedded
	Text   string               `json:"text"`
	Count  *int                 `json:"count"`
	On     bool                 `json:"on"`
	List   []embedded           `json:"list"`
	Header map[string]string    `json:"header"`
	After  *strictjson.Duration `json:"after"`
	Strict strict               `json:"strict"`
	Any    any                  `json:"any"`
	At     minutes.UnixTime     `json:"at"`
	Wait   strictjson.Duration  `json:"wait"`
	Deep   *deep                `json:"deep"`
	Hidden int                  `json:"-"`
}

// fields are those of a form, as an error lists them.
const fields = "name, text, count, on, list, header, after, strict, any, at, wait, deep"

type embedded struct {
	Name string `json:"name"`
}

type deep struct {
	X []struct {
		Low int `json:"low"`
	} `json:"x"`
}

// strict reads itself, as a script does.
type strict struct{ inner embedded }

func (s *strict) UnmarshalJSON(data []byte) error { return strictjson.Decode(data, &s.inner) }

func TestStrictJSON_ReadsEveryField(t *testing.T) {
	t.Parallel()
	const text = "\ufeff" + `{"name":"n","text":"t","count":1,"on":true,"list":[{"name":"a"},{"NAME":"b"}],
		"header":{"A":"b"},"after":"1m30s","strict":{"name":"s"},"any":[{"x":1}],"at":null,"wait":null,"deep":null} `
	var got form
	require.NoError(t, strictjson.Decode([]byte(text), &got))
	assert.Equal(t, form{
		embedded: embedded{"n"}, Text: "t", Count: new(1), On: true, List: []embedded{{"a"}, {"b"}},
		Header: map[string]string{"A": "b"}, After: new(strictjson.Duration(90 * time.Second)),
		Strict: strict{embedded{"s"}}, Any: []any{map[string]any{"x": 1.0}},
	}, got)
	written, err := json.Marshal(got.After)
	require.NoError(t, err)
	assert.Equal(t, `"1m30s"`, string(written))
}

func TestStrictJSON_NamesPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                `the JSON value is not complete`,
		`{"list":`:                        `the JSON value is not complete`,
		"{\n\"text\":x}":                  `line 2: invalid character 'x' looking for beginning of value`,
		`{} {}`:                           `there is more after the JSON value`,
		`[]`:                              `an object expected`,
		`{"nmae":1}`:                      `unknown field "nmae"; known here: ` + fields,
		`{"Hidden":1}`:                    `unknown field "Hidden"; known here: ` + fields,
		`{"-":1}`:                         `unknown field "-"; known here: ` + fields,
		`{"":1}`:                          `unknown field ""; known here: ` + fields,
		`{"low":1}`:                       `unknown field "low"; known here: ` + fields + `; there is one in deep.x`,
		`{"deep":{"low":1}}`:              `deep: unknown field "low"; known here: x; there is one in x`,
		`{"deep":{"x":[{"on":1}]}}`:       `deep.x[0]: unknown field "on"; known here: low; there is one beside deep`,
		`{"list":[{"x":[]}]}`:             `list[0]: unknown field "x"; known here: name; there is one in deep`,
		`{"text":1}`:                      `text: a string expected`,
		`{"name":{}}`:                     `name: a string expected`,
		`{"count":1.5}`:                   `count: a whole number expected`,
		`{"on":"yes"}`:                    `on: true or false expected`,
		`{"list":{"name":"a"}}`:           `list: an array expected`,
		`{"list":[{},{"nmae":"a"}]}`:      `list[1]: unknown field "nmae"; known here: name`,
		`{"list":[{},{"name":["a"]}]}`:    `list[1].name: a string expected`,
		`{"text":"nmae","list":[[]]}`:     `list[0]: an object expected`,
		`{"header":[]}`:                   `header: an object expected`,
		`{"header":{"A":1}}`:              `header.A: a string expected`,
		`{"after":"soon"}`:                `after: "soon" is not a duration such as "20ms", "1m30s" or "168h"`,
		`{"after":5}`:                     `after: 5 is not a duration such as "20ms", "1m30s" or "168h"`,
		`{"at":"2026-12-01"}`:             `at: Unix seconds, such as 1798761600, expected`,
		`{"strict":{"nmae":"a"}}`:         `strict: unknown field "nmae"; known here: name`,
		`{"strict":{"name":1}}`:           `strict.name: a string expected`,
		`{"any":{"x":1},"list":[null,1]}`: `list[1]: an object expected`,
	} {
		require.EqualError(t, strictjson.Decode([]byte(text), new(form)), want, text)
	}
}

// An error of a type that reads itself is not lost.
func TestStrictJSON_ReturnsErrorsOfTypes(t *testing.T) {
	t.Parallel()
	var got struct {
		Broken broken `json:"broken"`
	}
	require.EqualError(t, strictjson.Decode([]byte(`{"broken":1}`), &got), "broken: it is broken")
}

type broken struct{}

func (*broken) UnmarshalJSON([]byte) error { return errors.New("it is broken") }
