package engine

import "github.com/meeting-minutes/minutes-go/minutestest/world"

// The things of an organisation by their ids or secrets, or nil. The methods of a world.Organisation would
// panic instead.

func memberOf(o *world.Organisation, id string) *world.Member {
	return first(o.Members, func(m *world.Member) bool { return m.ID == id })
}

func integrationOf(o *world.Organisation, id string) *world.Integration {
	return first(o.Integrations, func(i *world.Integration) bool { return i.ID == id })
}

func projectOf(o *world.Organisation, id string) *world.Project {
	return first(o.Projects, func(p *world.Project) bool { return p.ID == id })
}

func templateOf(o *world.Organisation, id string) *world.Template {
	return first(o.Templates, func(t *world.Template) bool { return t.ID == id })
}

func keyOf(o *world.Organisation, secret string) *world.Key {
	return first(o.Keys, func(k *world.Key) bool { return k.Secret == secret })
}

// first returns the first element for which is returns true, or nil.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
