package world_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func TestScript_AsJSON(t *testing.T) {
	t.Parallel()
	script := world.Script{
		Title: "Weekly", Outcome: "minutes_failed", Duration: 90 * time.Minute, Stages: world.Stages{Write: time.Second}, Hold: "transcribing", ListedAfter: time.Minute,
	}
	const text = `{"title":"Weekly","outcome":"minutes_failed","stages":{"write":"1s"},"hold":"transcribing","duration":"1h30m0s","listed_after":"1m0s"}`
	written, err := json.Marshal(script)
	require.NoError(t, err)
	assert.Equal(t, text, string(written))
	var read world.Script
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, script, read)
}

func TestDecode_NamesMistake(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                 "the JSON value is not complete",
		`{`:                                "the JSON value is not complete",
		"{\n\"title\":\n}":                 "line 3: invalid character '}' looking for beginning of value",
		`{} {}`:                            "there is more after the JSON value",
		`[]`:                               "script: the JSON value: a array does not fit here",
		`{"title":1}`:                      "script: title: a number does not fit here",
		`{"titel":"x"}`:                    `script: unknown field "titel"`,
		`{"stages":{"prepair":"1s"}}`:      `script: stages: unknown field "prepair"`,
		`{"duration":"soon"}`:              `script: "soon" is not a duration such as 20ms or 1m30s`,
		"\ufeff" + `{"duration":"1"} true`: "script: \"1\" is not a duration such as 20ms or 1m30s",
	} {
		var script world.Script
		assert.EqualError(t, world.Decode([]byte(text), &script), want, text)
	}
	require.NoError(t, world.Decode([]byte("\ufeff{}\n"), new(world.Script)), "a byte order mark")
}
