package minutes

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

func TestWithWholeNumbers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`61.0`:                          `61`,
		`[61.0,-2.50e1,1.7e9,0.0,-0.0]`: `[61,-25,1700000000,0,0]`,
		`{"a":1E3,"b":{"c":[10.0]}}`:    `{"a":1000,"b":{"c":[10]}}`,
		`61.5`:                          `61.5`,
		`1e-1`:                          `1e-1`,
		`1e400`:                         `1e400`,
		`9007199254740993.0`:            `9007199254740993.0`, // no float64 has this value
		`12345678901234567890`:          `12345678901234567890`,
		`"1.0 \" 2.0 \\"`:               `"1.0 \" 2.0 \\"`,
		`{"1.0":1.0}`:                   `{"1.0":1}`,
		`1.`:                            `1.`,
		`"open 1.0`:                     `"open 1.0`,
	} {
		require.Equal(t, want, string(withWholeNumbers([]byte(body))))
	}
}

// Whatever a server sends, the JSON keeps its meaning, and what is not JSON does not become JSON.
func FuzzWithWholeNumbers(f *testing.F) {
	for _, seed := range []string{`{"a":[1.0,-2.5e3,"3.0"],"b":1e400}`, `"\u0031.0\\"`, `1.0.0`, `[1e0,`, `-`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := withWholeNumbers(body)
		require.Equal(t, json.Valid(body), json.Valid(whole))
		if json.Valid(body) {
			require.Equal(t, values(t, body), values(t, whole))
		}
	})
}

// values returns the tokens of JSON, with exact numbers.
func values(t *testing.T, body []byte) (all []any) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		number, isNumber := token.(json.Number)
		if isNumber {
			token = valueOf(string(number))
		}
		all = append(all, token)
	}
	return all
}

// valueOf returns the exact value of a number, unless its exponent is large.
func valueOf(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return "0"
	}
	if len(exponent) > 4 {
		return number
	}
	exact, _ := new(big.Rat).SetString(number)
	return exact.RatString()
}

// Whatever a server sends in a list, decoding it ends, and each element either fits or is named.
func FuzzSalvage(f *testing.F) {
	f.Add([]byte(`{"meetings":[{"id":"a","status":"created","duration_seconds":61.5},null,7,{"id":"b","status":"x"}]}`))
	f.Add([]byte(`{"meetings":{},"next_cursor":7}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var raw struct {
			Meetings []json.RawMessage `json:"meetings"`
		}
		err := json.Unmarshal(body, &raw)
		s := &salvaging{received: received{body, rest.NewMask("key")}}
		page := new(MeetingPage)
		ok := page.salvage(s)
		if err == nil && ok {
			require.Len(t, raw.Meetings, len(page.Meetings)+len(s.unfit))
		}
		for _, m := range page.Meetings {
			require.NotEmpty(t, m.ID)
			require.NotEmpty(t, m.Status)
		}
	})
}
