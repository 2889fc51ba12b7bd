package engine

import minutes "github.com/meeting-minutes/minutes-go"

func (o *organisation) listMembers() any {
	list := []memberJSON{}
	for _, m := range o.memberOrder {
		list = append(list, m.json())
	}
	return map[string]any{"members": list}
}

// createMember adds a member without an account.
func (c *call) createMember() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	m := &Member{Status: minutes.MemberNoAccount}
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
	if holder := o.emails[foldEmail(m.Email)]; holder != nil { // before the limit (D18)
		return nil, errEmailTaken.with(holderDetails{holder.ID, holder.Name})
	}
	if len(o.memberOrder) >= o.maxMembers {
		return nil, errMemberLimit
	}
	for m.ID == "" || o.members[m.ID] != nil || o.integrations[m.ID] != nil {
		m.ID = newID(memberPrefix)
	}
	o.members[m.ID] = m
	o.memberOrder = append(o.memberOrder, m)
	if m.Email != "" {
		o.emails[foldEmail(m.Email)] = m
	}
	return m.json(), nil
}
