package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
)

// configError names the path of an invalid value in a Config.
type configError struct{ place, fault string }

func (e *configError) Error() string { return "engine: " + e.place + ": " + e.fault }

// compiler builds a directory, and keeps the first fault that it finds.
type compiler struct {
	directory
	err error
}

// compile makes the lists and limits of o ready for use. It checks that texts are UTF-8, ids unique and addresses
// valid; package minutestest checks the rest before. place is the path of o in its Config.
func compile(place string, o *Organisation) (directory, error) {
	c := compiler{directory: directory{
		members:      make(map[string]*Member, len(o.Members)),
		emails:       map[string]*Member{},
		integrations: map[string]*Integration{},
		projects:     map[string]*Project{},
		templates:    map[string]*Template{},
		maxMembers:   value(o.MaxMembers, defaultMaxMembers),
		maxTerms:     value(o.MaxTerms, defaultMaxTerms),
	}}
	c.text(place+".id", o.ID, true)
	c.text(place+".name", o.Name, false)
	c.settings = Organisation{
		ID: o.ID, Name: o.Name, MaxMembers: o.MaxMembers, MaxTerms: o.MaxTerms, Keys: slices.Clone(o.Keys),
		Suspended: o.Suspended, Expired: o.Expired, APIDisabled: o.APIDisabled, PersonalKeysDisabled: o.PersonalKeysDisabled,
	}
	ids := map[string]bool{} // members and integrations share one space of ids
	c.addMembers(place, o.Members, ids)
	c.addIntegrations(place, o.Integrations, ids)
	c.addProjects(place, o.Projects)
	c.addTemplates(place, o.Templates)
	c.addVocabulary(place, o.Vocabulary)
	return c.directory, c.err
}

func (c *compiler) fail(place, format string, args ...any) {
	if c.err == nil {
		c.err = &configError{place, fmt.Sprintf(format, args...)}
	}
}

func (c *compiler) text(place, s string, required bool) {
	switch {
	case required && s == "":
		c.fail(place, "is required")
	case !utf8.ValidString(s):
		c.fail(place, "is not UTF-8")
	}
}

func (c *compiler) unique(place string, seen map[string]bool, id string) {
	c.text(place, id, true)
	if seen[id] {
		c.fail(place, "%q is there already", id)
	}
	seen[id] = true
}

func (c *compiler) addMembers(place string, members []Member, ids map[string]bool) {
	for i, m := range members {
		at := fmt.Sprintf("%s.members[%d]", place, i)
		c.unique(at+".id", ids, m.ID)
		c.text(at+".name", m.Name, true)
		c.text(at+".role", m.Role, false)
		m.Status = cmp.Or(m.Status, minutes.MemberActive)
		if m.Email != "" {
			folded := foldEmail(m.Email)
			if !validEmail(m.Email) {
				c.fail(at+".email", "%q is not an address", m.Email)
			}
			if c.emails[folded] != nil {
				c.fail(at+".email", "%q is %s's already", m.Email, c.emails[folded].ID)
			}
			c.emails[folded] = &m
		}
		c.members[m.ID] = &m
		c.memberOrder = append(c.memberOrder, &m)
	}
}

func (c *compiler) addIntegrations(place string, integrations []Integration, ids map[string]bool) {
	for i, in := range integrations {
		c.unique(fmt.Sprintf("%s.integrations[%d].id", place, i), ids, in.ID)
		in.DefaultVisibility = cmp.Or(in.DefaultVisibility, defaultIntegrationVisibility)
		c.integrations[in.ID] = &in
	}
}

func (c *compiler) addProjects(place string, projects []Project) {
	seen := map[string]bool{}
	for i, p := range projects {
		at := fmt.Sprintf("%s.projects[%d]", place, i)
		c.unique(at+".id", seen, p.ID)
		c.text(at+".name", p.Name, true)
		c.projects[p.ID] = &p
		c.projectOrder = append(c.projectOrder, &p)
	}
}

func (c *compiler) addTemplates(place string, templates []Template) {
	if len(templates) == 0 {
		templates = []Template{standardTemplate}
	}
	seen := map[string]bool{}
	for i, t := range templates {
		at := fmt.Sprintf("%s.templates[%d]", place, i)
		c.unique(at+".id", seen, t.ID)
		c.text(at+".name", t.Name, true)
		c.text(at+".description", t.Description, false)
		c.text(at+".source", t.Source, false)
		t.Source = cmp.Or(t.Source, standardTemplate.Source)
		c.templates[t.ID] = &t
		c.templateOrder = append(c.templateOrder, &t)
		if t.IsDefault && c.defaultTemplate == nil {
			c.defaultTemplate = &t
		}
	}
	if c.defaultTemplate == nil { // D25: without a default, the first is
		c.defaultTemplate = c.templateOrder[0]
	}
}

func (c *compiler) addVocabulary(place string, terms []Term) {
	seen := map[string]bool{}
	for i, t := range terms {
		at := fmt.Sprintf("%s.vocabulary[%d]", place, i)
		t.Term = strings.TrimSpace(t.Term)
		c.unique(at+".term", seen, t.Term)
		t.Variants = slices.Clone(t.Variants)
		for j := range t.Variants {
			v := &t.Variants[j]
			v.Source = cmp.Or(v.Source, "manual")
			c.text(fmt.Sprintf("%s.variants[%d].text", at, j), v.Text, true)
		}
		c.vocabulary = append(c.vocabulary, t)
	}
}

func value(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}

func validVisibility(v minutes.Visibility) bool {
	return v == minutes.VisibilityPrivate || v == minutes.VisibilityOrganisation || v == minutes.VisibilityShared
}
