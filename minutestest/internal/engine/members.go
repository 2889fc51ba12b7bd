package engine

import (
	"net/mail"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func (c *call) listMembers() (any, *apiError) {
	list := []memberJSON{}
	for i := range c.org.Members {
		list = append(list, memberOf(&c.org.Members[i]))
	}
	return map[string]any{"members": list}, nil
}

// createMember adds a member without an account.
func (c *call) createMember() (any, *apiError) {
	f, o := c.form, c.org
	m := world.Member{Status: minutes.MemberNoAccount}
	m.Name, _ = f.trimmed("name", maxMemberName, true)
	if m.Email, _ = f.text("email"); m.Email != "" && !validEmail(m.Email) {
		f.fault("email", errEmail)
	}
	m.Role, _ = f.trimmed("role", maxMemberRole, false)
	m.Description, _ = f.trimmed("description", maxDescription, false)
	if err := f.err(); err != nil {
		return nil, err
	}
	if holder := o.byEmail(m.Email); holder != nil { // before the limit (D18)
		return nil, errEmailTaken.with(holderDetails{holder.ID, holder.Name})
	}
	if len(o.Members) >= *o.MaxMembers {
		return nil, errMemberLimit
	}
	m.ID = o.service.ids.next(memberPrefix)
	o.Members = append(o.Members, m)
	return memberOf(&m), nil
}

// validEmail accepts a bare address. net/mail alone would also accept a display name.
func validEmail(s string) bool {
	addr, err := mail.ParseAddress(s)
	return err == nil && addr.Address == s
}

func (c *call) listProjects() (any, *apiError) {
	list := []projectJSON{}
	for _, p := range c.org.Projects {
		if !p.Archived {
			list = append(list, projectJSON{p.ID, p.Name})
		}
	}
	return map[string]any{"projects": list}, nil
}

func (c *call) createProject() (any, *apiError) {
	name, _ := c.form.trimmed("name", maxProjectName, true)
	if err := c.form.err(); err != nil {
		return nil, err
	}
	p := world.Project{ID: c.service.ids.next(projectPrefix), Name: name}
	c.org.Projects = append(c.org.Projects, p)
	return projectJSON{p.ID, p.Name}, nil
}

func (c *call) listTemplates() (any, *apiError) {
	list, usual := []templateJSON{}, c.org.defaultTemplate()
	for i := range c.org.Templates {
		t := &c.org.Templates[i]
		list = append(list, templateJSON{t.ID, t.Name, t.Source, optional(t.Description), t == usual, t.Version})
	}
	return map[string]any{"templates": list}, nil
}

func (c *call) getUsage() (any, *apiError) {
	return usageJSON{c.org.credits, c.org.seconds, optional(c.org.resetDate)}, nil
}
