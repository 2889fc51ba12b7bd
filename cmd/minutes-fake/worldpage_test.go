package main

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var worldRow = regexp.MustCompile("^\\| `([a-z_]+)` \\| `(.*?)` \\|")

// WORLD.md has every field of a world, and no other, each with an example that
// is taken.
func TestWorldPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("WORLD.md")
	require.NoError(t, err)
	for title, section := range worldSections {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			_, part, found := strings.Cut(string(text), "\n## "+title+"\n")
			require.True(t, found)
			part, _, _ = strings.Cut(part, "\n## ")
			var fields []string
			for line := range strings.Lines(part) {
				m := worldRow.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				fields = append(fields, m[1])
				var example map[string]any
				require.NoError(t, json.Unmarshal([]byte("{"+m[2]+"}"), &example), line)
				require.Len(t, example, 1, line)
				require.Contains(t, example, m[1], line)
				world, err := json.Marshal(section.world(example))
				require.NoError(t, err)
				_, err = minutestest.LoadWorld(strings.NewReader(string(world)))
				assert.NoError(t, err, "%s", line)
			}
			assert.Equal(t, section.fields(), fields)
		})
	}
}

// The whole worlds of WORLD.md are taken, and the last has every field.
func TestWorldPageExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("WORLD.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		_, err := minutestest.LoadWorld(strings.NewReader(block[1]))
		require.NoError(t, err)
	}
	for title, section := range worldSections {
		for _, field := range section.fields() {
			assert.Contains(t, blocks[1][1], `"`+field+`":`, title)
		}
	}
}

// worldSection is a part of WORLD.md: a type, and how to put an object of it into an
// otherwise complete world.
type worldSection struct {
	of    reflect.Type
	world func(example tree) tree
}

func (s worldSection) fields() []string {
	if s.of == reflect.TypeFor[minutestest.Stages]() {
		return []string{"prepare", "transcribe", "write"} // it reads itself
	}
	var names []string
	for field := range s.of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

var worldSections = map[string]worldSection{
	"World":  {reflect.TypeFor[minutestest.World](), func(e tree) tree { return with(inOrganisation(nil), e) }},
	"Stages": {reflect.TypeFor[minutestest.Stages](), func(e tree) tree { return with(inOrganisation(nil), tree{"stages": e}) }},
	"Organisation": {reflect.TypeFor[minutestest.Organisation](), func(e tree) tree {
		return inOrganisation(with(tree{"keys": []tree{}}, e)) // keys are of members that an example may leave out
	}},
	"Member":      {reflect.TypeFor[minutestest.Member](), inList("members", tree{"id": "emp_new"})},
	"Integration": {reflect.TypeFor[minutestest.Integration](), inList("integrations", tree{"id": "int_new"})},
	"Project":     {reflect.TypeFor[minutestest.Project](), inList("projects", tree{"id": "prj_new"})},
	"Template":    {reflect.TypeFor[minutestest.Template](), inList("templates", tree{"id": "tpl_new"})},
	"VocabularyEntry": {reflect.TypeFor[minutes.VocabularyEntry](),
		inList("vocabulary", tree{"term": "Go"})},
	"VocabularyVariant": {reflect.TypeFor[minutes.VocabularyVariant](), func(e tree) tree {
		return inList("vocabulary", tree{"term": "Go"})(tree{"variants": []tree{with(tree{"text": "goo"}, e)}})
	}},
	"WorldMeeting": {reflect.TypeFor[minutestest.WorldMeeting](), func(e tree) tree {
		o := with(inOrganisation(nil)["organisations"].([]tree)[0], tree{"meetings": []tree{with(tree{"title": "Old"}, e)}, "projects": []tree{{"id": "prj_apollo"}}})
		return tree{"organisations": []tree{o}}
	}},
	"Key": {reflect.TypeFor[minutestest.Key](), func(e tree) tree {
		key := tree{"secret": "key_new"}
		if e["member_id"] == nil {
			key["integration_id"] = "int_ci"
		}
		return inOrganisation(tree{"keys": []tree{with(key, e)}})
	}},
}

func inOrganisation(fields tree) tree {
	return tree{"organisations": []tree{with(tree{
		"id":           "org_acme",
		"members":      []tree{{"id": "emp_ada"}},
		"integrations": []tree{{"id": "int_ci"}},
	}, fields)}}
}

func inList(list string, least tree) func(tree) tree {
	return func(e tree) tree { return inOrganisation(tree{list: []tree{with(least, e)}}) }
}

// with returns a with the fields of b.
func with(a, b tree) tree {
	c := tree{}
	maps.Copy(c, a)
	maps.Copy(c, b)
	return c
}
