package engine

func (o *organisation) listProjects() any {
	list := []projectJSON{}
	for _, p := range o.projectOrder {
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
	p := &Project{}
	p.Name, _ = f.trimmed("name", maxProjectName, true)
	if err := f.err(); err != nil {
		return nil, err
	}
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	for p.ID == "" || o.projects[p.ID] != nil {
		p.ID = o.world.ids.next(projectPrefix)
	}
	o.projects[p.ID] = p
	o.projectOrder = append(o.projectOrder, p)
	return projectJSON{p.ID, p.Name}, nil
}

func (o *organisation) listTemplates() any {
	list := []templateJSON{}
	for _, t := range o.templateOrder {
		list = append(list, templateJSON{t.ID, t.Name, t.Source, optional(t.Description), t == o.defaultTemplate, t.Version})
	}
	return map[string]any{"templates": list}
}

func (o *organisation) getUsage() any {
	return usageJSON{o.credits, o.seconds, optional(o.resetDate)}
}
