package engine

import (
	"net/mail"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func (o *organisation) listMembers() any {
	list := []memberJSON{}
	for i := range o.Members {
		list = append(list, memberOf(&o.Members[i]))
	}
	return map[string]any{"members": list}
}

// createMember adds a member without an account.
func (c *call) createMember() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
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
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	if holder := o.byEmail(m.Email); holder != nil { // before the limit (D18)
		return nil, errEmailTaken.with(holderDetails{holder.ID, holder.Name})
	}
	if len(o.Members) >= *o.MaxMembers {
		return nil, errMemberLimit
	}
	m.ID = o.state.ids.next(memberPrefix)
	o.Members = append(o.Members, m)
	return memberOf(&m), nil
}

// validEmail accepts a bare address. net/mail alone would also accept a display name.
func validEmail(s string) bool {
	addr, err := mail.ParseAddress(s)
	return err == nil && addr.Address == s
}

func (o *organisation) listProjects() any {
	list := []projectJSON{}
	for _, p := range o.Projects {
		if !p.Archived {
			list = append(list, projectJSON{p.ID, p.Name})
		}
	}
	return map[string]any{"projects": list}
}

func (c *call) createProject() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	name, _ := f.trimmed("name", maxProjectName, true)
	if err := f.err(); err != nil {
		return nil, err
	}
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	p := world.Project{ID: o.state.ids.next(projectPrefix), Name: name}
	o.Projects = append(o.Projects, p)
	return projectJSON{p.ID, p.Name}, nil
}

func (o *organisation) listTemplates() any {
	list, usual := []templateJSON{}, o.defaultTemplate()
	for i := range o.Templates {
		t := &o.Templates[i]
		list = append(list, templateJSON{t.ID, t.Name, t.Source, optional(t.Description), t == usual, t.Version})
	}
	return map[string]any{"templates": list}
}

func (o *organisation) getUsage() any {
	return usageJSON{o.credits, o.seconds, optional(o.resetDate)}
}
