package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// shownWorld is a world as the control API shows and takes it.
type shownWorld struct {
	minutestest.World
	PageSizes []int `json:"page_sizes,omitempty"`
}

func (c call) world() (any, error) { return c.f.now(), nil }

func (f *fake) now() shownWorld {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := shownWorld{PageSizes: f.sizes}
	w.Stages = f.world.Stages
	for i := range f.world.Organisations {
		o, _ := f.Organisation(f.world.Organisations[i].ID)
		w.Organisations = append(w.Organisations, o)
	}
	return w
}

func (c call) putWorld() (any, error) {
	var sent shownWorld
	if err := c.read(&sent); err != nil {
		return nil, err
	}
	next, err := c.p.newFake(sent.World)
	if err == nil {
		err = next.setSizes(sent.PageSizes)
	}
	if err != nil {
		return nil, err
	}
	c.p.begin(next)
	return next.now(), nil
}

// patchWorld changes one organisation after the other: if one is invalid, those before it have
// changed.
func (c call) patchWorld() (any, error) {
	var sent struct {
		Organisations []object `json:"organisations"`
		PageSizes     *[]int   `json:"page_sizes"`
	}
	if err := c.read(&sent); err != nil {
		return nil, err
	}
	for _, patch := range sent.Organisations {
		invalid := error(nil)
		err := c.f.Update(nameOf(patch), func(o *minutestest.Organisation) { invalid = patched(o, patch) })
		if err = errors.Join(invalid, err); err != nil {
			return nil, err
		}
	}
	if sent.PageSizes != nil {
		if err := c.f.setSizes(*sent.PageSizes); err != nil {
			return nil, err
		}
	}
	return c.f.now(), nil
}

// patched merges a patch into o, unless the result is invalid.
func patched(o *minutestest.Organisation, patch object) error {
	var before object
	text, _ := json.Marshal(o)
	_ = json.Unmarshal(text, &before)
	text, _ = json.Marshal(merge(before, patch))
	var after minutestest.Organisation
	if err := world.Decode(text, &after); err != nil {
		return err
	}
	*o = after
	return nil
}

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

// setSizes makes list pages as long as sizes say: the first, the second and so on, and all further
// ones as the last. No sizes make them full.
func (f *fake) setSizes(sizes []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sizes = nil; len(sizes) == 0 {
		f.SetPageSize(nil)
		return nil
	}
	if slices.Min(sizes) < 0 || sizes[len(sizes)-1] == 0 {
		return errors.New("page_sizes: numbers from 0 expected, the last one over 0")
	}
	f.sizes = sizes
	f.SetPageSize(func(limit, page int) int { return min(limit, sizes[min(page, len(sizes)-1)]) })
	return nil
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
		return w, fmt.Errorf("-world %s: %s", path, plain(err))
	}
	return w, nil
}

// faster divides stages by speed. A stage that is left out stays so.
func faster(s minutestest.Stages, speed float64) minutestest.Stages {
	for _, d := range []*time.Duration{&s.Prepare, &s.Transcribe, &s.Write} {
		if *d > 0 {
			*d = max(time.Duration(float64(*d)/speed), 1)
		}
	}
	return s
}
