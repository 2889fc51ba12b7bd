package engine

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The client knows each field of a response, and no other.
func TestWire_HasTheFieldsOfTheClient(t *testing.T) {
	t.Parallel()
	fields := func(v any) (names []string) {
		for field := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		return names
	}
	assert.ElementsMatch(t, fields(minutes.Meeting{}), fields(meetingJSON{}))
	assert.ElementsMatch(t, fields(minutes.MeetingPage{}), fields(pageJSON{}))
	assert.ElementsMatch(t, fields(minutes.Template{}), fields(templateJSON{}))
	assert.ElementsMatch(t, fields(minutes.Member{}), slices.Collect(maps.Keys(memberJSON(&world.Member{}))))
}

// Each field of a script has its effect, also if a narrower script leaves it to the one for all meetings.
func TestScripts_MergeEachField(t *testing.T) {
	t.Parallel()
	var whole world.Script
	for field, value := range reflect.ValueOf(&whole).Elem().Fields() {
		switch value.Kind() {
		case reflect.String:
			value.SetString(field.Name)
		case reflect.Int64:
			value.SetInt(1)
		case reflect.Pointer:
			value.Set(reflect.New(field.Type.Elem()))
		default:
			require.Fail(t, "a field of a new kind", field.Name)
		}
	}
	whole.MeetingID = ""
	whole.ExternalID = ""
	whole.Title = ""
	all := scripts{world.Script{}: whole, world.Script{Title: "Weekly"}: {Title: "Weekly"}}
	require.Equal(t, whole, all.of(&meeting{Meeting: world.Meeting{ID: "mtg_1", Title: "Weekly"}}))
}
