package engine

func (c *call) listProjects() (any, *apiError) {
	c.org.lock(c.now)
	defer c.org.unlock()
	list := []projectJSON{}
	for _, p := range c.org.projectOrder {
		if !p.Archived {
			list = append(list, projectJSON{p.ID, p.Name})
		}
	}
	return projectsJSON{list}, nil
}

func (c *call) createProject() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	p := &Project{}
	p.Name, _ = f.trimmed("name", maxProjectName, true)
	if err := f.err(); err != nil {
		return nil, err
	}
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	for p.ID == "" || o.projects[p.ID] != nil {
		p.ID = newID(projectPrefix)
	}
	o.projects[p.ID] = p
	o.projectOrder = append(o.projectOrder, p)
	return projectJSON{p.ID, p.Name}, nil
}

func (c *call) listTemplates() (any, *apiError) {
	c.org.lock(c.now)
	defer c.org.unlock()
	list := []templateJSON{}
	for _, t := range c.org.templateOrder {
		list = append(list, templateJSON{t.ID, t.Name, t.Source, optional(t.Description), t == c.org.defaultTemplate, t.Version})
	}
	return templatesJSON{list}, nil
}

func (c *call) getUsage() (any, *apiError) {
	c.org.lock(c.now)
	defer c.org.unlock()
	return usageJSON{c.org.credits, c.org.seconds, optional(c.org.resetDate)}, nil
}
