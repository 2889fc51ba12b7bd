package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// An organisation is changed as the JSON it is in a world file: the same
// fields, the same checks, the same errors.
type tree = map[string]any

// parts are the lists of an organisation whose elements have a path of their
// own, with the field that names an element.
var parts = map[string]string{"members": "id", "integrations": "id", "projects": "id", "templates": "id", "keys": "secret"}

func (c *control) getWorld(*http.Request) (any, error) {
	world := minutestest.World{Stages: c.world.Stages, Organisations: []minutestest.Organisation{}}
	for i := range c.world.Organisations {
		if o, ok := c.fake.Organisation(c.world.Organisations[i].ID); ok {
			world.Organisations = append(world.Organisations, o)
		}
	}
	return world, nil
}

func (c *control) getOrganisation(r *http.Request) (any, error) {
	o, ok := c.fake.Organisation(r.PathValue("organisation"))
	if !ok {
		return nil, noOrganisation(r)
	}
	return o, nil
}

func noOrganisation(r *http.Request) *problem {
	return notFound("there is no organisation %q", r.PathValue("organisation"))
}

func (c *control) putOrganisation(r *http.Request) (any, error) {
	return c.edit(r, func(o, sent tree) error {
		clear(o)
		maps.Copy(o, sent)
		return named(o, "id", r.PathValue("organisation"))
	})
}

func (c *control) patchOrganisation(r *http.Request) (any, error) {
	return c.edit(r, func(o, sent tree) error {
		patch(o, sent)
		return named(o, "id", r.PathValue("organisation"))
	})
}

func (c *control) getPart(r *http.Request) (any, error) {
	o, ok := c.fake.Organisation(r.PathValue("organisation"))
	if !ok {
		return nil, noOrganisation(r)
	}
	_, i, err := part(r, toTree(o))
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, noPart(r)
	}
	return partOf(o, r.PathValue("list"), r.PathValue("id")), nil
}

func noPart(r *http.Request) *problem {
	return notFound("there is no %q in %s", r.PathValue("id"), r.PathValue("list"))
}

func (c *control) putPart(r *http.Request) (any, error) {
	return c.editPart(r, func(list []any, i int, sent tree) ([]any, error) {
		if i < 0 {
			return append(list, sent), nil
		}
		list[i] = sent
		return list, nil
	})
}

func (c *control) patchPart(r *http.Request) (any, error) {
	return c.editPart(r, func(list []any, i int, sent tree) ([]any, error) {
		if i < 0 {
			return nil, noPart(r)
		}
		patch(list[i].(tree), sent)
		return list, nil
	})
}

func (c *control) deletePart(r *http.Request) (any, error) {
	_, err := c.change(r.PathValue("organisation"), func(o tree) error {
		list, i, err := part(r, o)
		if err != nil {
			return err
		}
		if i < 0 {
			return noPart(r)
		}
		o[r.PathValue("list")] = slices.Delete(list, i, i+1)
		return nil
	})
	return nil, err
}

// editPart changes a list with the body, and returns the element.
func (c *control) editPart(r *http.Request, how func(list []any, i int, sent tree) ([]any, error)) (any, error) {
	name, id, at := r.PathValue("list"), r.PathValue("id"), -1
	o, err := c.edit(r, func(o, sent tree) error {
		if key := parts[name]; key != "" && r.Method == http.MethodPut {
			if err := named(sent, key, id); err != nil {
				return err
			}
		}
		list, i, err := part(r, o)
		if err != nil {
			return err
		}
		if at = i; at < 0 {
			at = len(list)
		}
		if list, err = how(list, i, sent); err != nil {
			return err
		}
		o[name] = list
		if i >= 0 {
			return named(list[i].(tree), parts[name], id)
		}
		return nil
	})
	if p, ok := errors.AsType[*problem](err); ok {
		// The body is the element, and the field begins with it.
		p.Field = strings.TrimPrefix(strings.TrimPrefix(p.Field, fmt.Sprintf("%s[%d]", name, at)), ".")
	}
	if err != nil {
		return nil, err
	}
	return partOf(o, name, id), nil
}

// part returns the list that the path names, and the index of the element in
// it, or -1.
func part(r *http.Request, o tree) (list []any, at int, err error) {
	name := r.PathValue("list")
	key, ok := parts[name]
	if !ok {
		return nil, -1, notFound("an organisation has no list %q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(parts)), ", "))
	}
	list, _ = o[name].([]any)
	return list, slices.IndexFunc(list, func(e any) bool { return e.(tree)[key] == r.PathValue("id") }), nil
}

func partOf(o minutestest.Organisation, name, id string) any {
	list, _ := toTree(o)[name].([]any)
	for _, e := range list {
		if e.(tree)[parts[name]] == id {
			return e
		}
	}
	return nil
}

// named gives what, which may not have another one, the id of the path.
func named(what tree, key, id string) error {
	if sent, ok := what[key]; ok && sent != id {
		return bad(key, "it is %q in the path", id)
	}
	what[key] = id
	return nil
}

// patch is a JSON merge patch (RFC 7396).
func patch(into, with tree) {
	for name, v := range with {
		switch v := v.(type) {
		case nil:
			delete(into, name)
		case tree:
			inner, ok := into[name].(tree)
			if !ok {
				inner = tree{}
			}
			patch(inner, v)
			into[name] = inner
		default:
			into[name] = v
		}
	}
}

// edit is change with the object that r brings.
func (c *control) edit(r *http.Request, how func(o, sent tree) error) (minutestest.Organisation, error) {
	var sent tree
	if err := body(r, &sent); err != nil {
		return minutestest.Organisation{}, err
	}
	return c.change(r.PathValue("organisation"), func(o tree) error { return how(o, sent) })
}

// change lets how change an organisation, and returns what it has become.
func (c *control) change(id string, how func(tree) error) (minutestest.Organisation, error) {
	var rejected error
	if _, ok := c.fake.Organisation(id); !ok {
		return minutestest.Organisation{}, notFound("there is no organisation %q", id)
	}
	err := minutestest.Try(func() {
		c.fake.Update(id, func(o *minutestest.Organisation) {
			t := toTree(*o)
			if rejected = how(t); rejected != nil {
				return
			}
			changed, err := fromTree(t)
			if rejected = err; rejected == nil {
				*o = changed
			}
		})
	})
	if rejected != nil {
		return minutestest.Organisation{}, rejected
	}
	if err != nil {
		return minutestest.Organisation{}, misplaced(err)
	}
	o, _ := c.fake.Organisation(id)
	return o, nil
}

func toTree(o minutestest.Organisation) tree {
	text, _ := json.Marshal(o)
	var t tree
	_ = json.Unmarshal(text, &t)
	return t
}

func fromTree(t tree) (minutestest.Organisation, error) {
	text, err := json.Marshal(tree{"organisations": []any{t}})
	if err != nil {
		return minutestest.Organisation{}, err
	}
	world, err := minutestest.LoadWorld(strings.NewReader(string(text)))
	if err != nil {
		return minutestest.Organisation{}, misplaced(err)
	}
	return world.Organisations[0], nil
}

// misplaced returns the problem for an error in a world, with its path in the
// organisation.
func misplaced(err error) *problem {
	text := strings.ReplaceAll(withoutOrigin(err), "organisations[0].", "")
	place, text, _ := placed(strings.TrimPrefix(text, "organisation."))
	return bad(place, "%s", text)
}
