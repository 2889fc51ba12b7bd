package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func (r request) world() (any, error) { return r.fake.World(), nil }

func (r request) putWorld(sent minutestest.World) (any, error) {
	err := r.process.checkClaims(r.tenant, sent)
	if err != nil {
		return nil, err
	}
	next, err := r.process.newFake(sent)
	if err != nil {
		return nil, err
	}
	r.process.replace(r.tenant, next)
	return next.World(), nil
}

func (r request) patchWorld(patch object) (any, error) {
	err := r.knowsOrganisations(patch)
	if err != nil {
		return nil, err
	}
	var added map[string]string
	err = mistake.Catch(func() {
		r.fake.UpdateWorld(func(w *minutestest.World) error {
			var before object
			text, _ := json.Marshal(w)
			_ = json.Unmarshal(text, &before)
			added = additions("", before, patch)
			text, _ = json.Marshal(merge(before, patch))
			var after minutestest.World
			err := strictjson.Decode(text, &after)
			if err != nil {
				return err
			}
			*w = after
			return r.process.checkClaims(r.tenant, after)
		})
	})
	if err == nil {
		r.process.claim(r.tenant)
		return r.fake.World(), nil
	}
	for _, path := range slices.Sorted(maps.Keys(added)) {
		if strings.Contains(err.Error(), path) { // because the mistake may be in its name
			err = fmt.Errorf("%w; this request would add %q, which did not exist", err, added[path])
		}
	}
	return nil, err
}

// additions returns the names of the elements that a patch adds to lists, because these have none of
// that name, by the paths that they get.
func additions(path string, old, patch any) map[string]string {
	added := map[string]string{}
	switch patch := patch.(type) {
	case object:
		old, _ := old.(object)
		for field := range patch {
			maps.Copy(added, additions(strings.TrimPrefix(path+"."+field, "."), old[field], patch[field]))
		}
	case []any:
		old, _ := old.([]any)
		last := len(old)
		for _, e := range patch {
			at := indexOf(old, e)
			switch {
			case nameOf(e) == "":
			case at < 0:
				added[fmt.Sprintf("%s[%d]", path, last)] = nameOf(e)
				last++
			default:
				maps.Copy(added, additions(fmt.Sprintf("%s[%d]", path, at), old[at], e))
			}
		}
	}
	return added
}

// knowsOrganisations rejects a patch of an organisation that does not exist. A patch adds members,
// keys and so on, but an id of an organisation is one of those that tests often mistype.
func (r request) knowsOrganisations(patch object) error {
	w := r.fake.World()
	list, _ := patch["organisations"].([]any)
	for i, e := range list {
		o, _ := e.(object)
		id, ok := o["id"].(string)
		if !ok {
			continue // the checker of worlds says so
		}
		unknown := mistake.Catch(func() { w.Organisation(id) })
		if unknown != nil {
			return fmt.Errorf("organisations[%d].id: %w; POST /organisations makes one, PUT /world sets others",
				i, unknown)
		}
	}
	return nil
}

// merge is a JSON merge patch (RFC 7396), but it merges lists of objects, too: each element changes
// the one of its secret, id or term, or is added.
func merge(into, patch any) any {
	switch patch := patch.(type) {
	case object:
		old, _ := into.(object)
		return mergeObjects(old, patch)
	case []any:
		old, _ := into.([]any)
		return mergeLists(old, patch)
	}
	return patch
}

func mergeObjects(old, patch object) object {
	merged := maps.Clone(old)
	if merged == nil {
		merged = object{}
	}
	for name, value := range patch {
		if value == nil {
			delete(merged, name)
			continue
		}
		merged[name] = merge(merged[name], value)
	}
	return merged
}

func mergeLists(old, patch []any) []any {
	if len(patch) == 0 || nameOf(patch[0]) == "" {
		return patch
	}
	for _, e := range patch {
		at := indexOf(old, e)
		if at < 0 {
			old = append(old, merge(nil, e))
			continue
		}
		old[at] = merge(old[at], e)
	}
	return old
}

// indexOf returns the index of the element of a list that has the name of e, or -1.
func indexOf(list []any, e any) int {
	return slices.IndexFunc(list, func(o any) bool { return nameOf(o) == nameOf(e) })
}

// nameOf returns what identifies an element of a list, or "".
func nameOf(e any) string {
	o, _ := e.(object)
	for _, field := range []string{"secret", "id", "term"} {
		name, ok := o[field].(string)
		if ok {
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
