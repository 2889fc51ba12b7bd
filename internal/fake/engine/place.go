package engine

import (
	"fmt"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
)

// place is the position of a value in a World, a Script or a list of meetings, as in
//
//	organisations[0].keys[1].member_id
//
// It becomes text only in a mistake, because most worlds have none and a test makes one each time.
type place struct {
	steps [4]step
	depth int
}

// step is a field of an object, by its name in JSON.
type step struct {
	field string
	// element is the number of an element of the field, from 1; 0: it is the whole field.
	element int
}

// placeOf returns the place of a field of the outermost object.
func placeOf(field string) place { return place{}.field(field) }

// field returns the place of a field of the object at p.
func (p place) field(name string) place {
	p.steps[p.depth].field = name
	p.depth++
	return p
}

// index returns the place of an element of the list at p, from 0.
func (p place) index(i int) place {
	p.steps[p.depth-1].element = i + 1
	return p
}

// name returns the place as JSON and as Go write it.
func (p place) name() mistake.Name {
	var inJSON, inGo []string
	for _, s := range p.steps[:p.depth] {
		index := ""
		if s.element > 0 {
			index = fmt.Sprintf("[%d]", s.element-1)
		}
		name := mistake.Field(s.field)
		inJSON = append(inJSON, name.JSON+index)
		inGo = append(inGo, name.Go+index)
	}
	return mistake.Name{JSON: strings.Join(inJSON, "."), Go: strings.Join(inGo, ".")}
}
