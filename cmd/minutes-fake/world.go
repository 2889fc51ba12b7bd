package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func (c call) world() (any, error) { return c.f.World(), nil }

func (c call) putWorld(sent minutestest.World) (any, error) {
	next, err := c.p.newFake(sent)
	if err != nil {
		return nil, err
	}
	c.p.replace(next)
	return next.World(), nil
}

func (c call) patchWorld(patch object) (any, error) {
	c.f.UpdateWorld(func(w *minutestest.World) error {
		var before object
		text, _ := json.Marshal(w)
		_ = json.Unmarshal(text, &before)
		text, _ = json.Marshal(merge(before, patch))
		var after minutestest.World
		err := world.Decode(text, &after)
		if err == nil && len(after.Organisations) == 0 {
			err = errNoOrganisation
		}
		if err == nil {
			*w = after
		}
		return err
	})
	return c.f.World(), nil
}

var errNoOrganisation = errors.New("organisations: at least one expected")

// merge is a JSON merge patch (RFC 7396), but it merges lists of objects, too: each element changes
// the one of its secret, id or term, or is added.
func merge(into, patch any) any {
	switch patch := patch.(type) {
	case object:
		merged, ok := into.(object)
		if !ok {
			merged = object{}
		}
		for name, value := range patch {
			if merged[name] = merge(merged[name], value); value == nil {
				delete(merged, name)
			}
		}
		return merged
	case []any:
		list, _ := into.([]any)
		if len(patch) == 0 || nameOf(patch[0]) == "" {
			return patch
		}
		for _, e := range patch {
			if at := slices.IndexFunc(list, func(old any) bool { return nameOf(old) == nameOf(e) }); at >= 0 {
				list[at] = merge(list[at], e)
			} else {
				list = append(list, merge(nil, e))
			}
		}
		return list
	}
	return patch
}

// nameOf returns what identifies an element of a list, or "".
func nameOf(e any) string {
	o, _ := e.(object)
	for _, field := range []string{"secret", "id", "term"} {
		if name, ok := o[field].(string); ok {
			return name
		}
	}
	return ""
}

// loadWorld reads a world file. Its errors are one line, with the path of each mistake.
func loadWorld(path string) (minutestest.World, error) {
	file, err := os.Open(path)
	if err != nil {
		return minutestest.World{}, fmt.Errorf("-world: %w", err)
	}
	defer file.Close()
	w, err := minutestest.LoadWorld(file)
	if err != nil {
		return w, fmt.Errorf("-world %s: %s", path, oneLine(err))
	}
	return w, nil
}
