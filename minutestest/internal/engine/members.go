package engine

import minutes "github.com/meeting-minutes/minutes-go"

func (c *call) listMembers() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	c.out = append(c.out, `{"members":[`...)
	for i, m := range c.org.memberOrder {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendMember(c.out, m)
	}
	c.out = append(c.out, "]}"...)
	return nil
}

// createMember adds a member without an account.
func (c *call) createMember() *refusal {
	f, no := c.body()
	if no != nil {
		return no
	}
	m := &member{Status: minutes.MemberNoAccount}
	m.Name, _ = f.trimmed("name", maxMemberName, true)
	if m.Email, _ = f.text("email"); m.Email != "" && !validEmail(m.Email) {
		f.fault("email", errEmail)
	}
	m.Role, _ = f.trimmed("role", maxMemberRole, false)
	m.Description, _ = f.trimmed("description", maxDescription, false)
	if no := f.refusal(); no != nil {
		return no
	}

	o := c.org
	o.lock(c.now)
	defer o.mu.Unlock()
	if holder := o.emails[foldEmail(m.Email)]; holder != nil { // before the limit (D18)
		no := *errEmailTaken
		no.holder = holder
		return &no
	}
	if len(o.memberOrder) >= o.maxMembers {
		return errMemberLimit
	}
	for m.ID == "" || o.members[m.ID] != nil || o.integrations[m.ID] != nil {
		m.ID = c.world.ids.next(memberPrefix)
	}
	o.members[m.ID] = m
	o.memberOrder = append(o.memberOrder, m)
	if m.Email != "" {
		o.emails[foldEmail(m.Email)] = m
	}
	c.out = appendMember(c.out, m)
	return nil
}
