package engine

import "strconv"

func (c *call) listProjects() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	c.out = append(c.out, `{"projects":[`...)
	first := true
	for _, p := range c.org.projectOrder {
		if p.Archived {
			continue
		}
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		c.out = appendProject(c.out, p)
	}
	c.out = append(c.out, "]}"...)
	return nil
}

func (c *call) createProject() *refusal {
	f, no := c.body()
	if no != nil {
		return no
	}
	p := &Project{}
	p.Name, _ = f.trimmed("name", maxProjectName, true)
	if no := f.refusal(); no != nil {
		return no
	}
	o := c.org
	o.lock(c.now)
	defer o.mu.Unlock()
	for p.ID == "" || o.projects[p.ID] != nil {
		p.ID = c.world.ids.next(projectPrefix)
	}
	o.projects[p.ID] = p
	o.projectOrder = append(o.projectOrder, p)
	c.out = appendProject(c.out, p)
	return nil
}

func (c *call) listTemplates() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	c.out = append(c.out, `{"templates":[`...)
	for i, t := range c.org.templateOrder {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendTemplate(c.out, t, t == c.org.defaultTemplate)
	}
	c.out = append(c.out, "]}"...)
	return nil
}

func (c *call) getUsage() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	c.out = append(c.out, `{"credits_remaining":`...)
	c.out = strconv.AppendInt(c.out, int64(c.org.credits), 10)
	c.out = append(c.out, `,"transcribe_seconds_remaining":`...)
	c.out = strconv.AppendInt(c.out, int64(c.org.seconds), 10)
	c.out = append(c.out, `,"next_reset_at":`...)
	if c.org.resetDate == 0 {
		c.out = append(c.out, "null}"...)
		return nil
	}
	c.out = append(c.out, '"')
	c.out = c.org.resetDate.append(c.out)
	c.out = append(c.out, `"}`...)
	return nil
}
