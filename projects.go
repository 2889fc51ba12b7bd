package minutes

import (
	"cmp"
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// ProjectsService reads and creates projects, which group meetings ([section 4]).
//
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
type ProjectsService struct{ service }

// Project is a group of meetings that belong together ([section 2.4]).
//
// [section 2.4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Project struct {
	ID   string `json:"id"` // for MeetingCreateParams.ProjectID
	Name string `json:"name"`
}

type projectList struct {
	Projects []*Project `json:"projects"`
}

// List returns the organisation's active projects. Method, path and the scope meetings:read are
// assumed, so you may need [WithRoute].
func (s *ProjectsService) List(ctx context.Context) ([]*Project, error) {
	list, _, err := call[projectList](ctx, s.core, OpProjectsList, rest.Request{})
	return cmp.Or(list, new(projectList)).Projects, err
}

// ProjectCreateParams describes a project for Create.
type ProjectCreateParams struct {
	Name string `json:"name"` // 1 to 120 characters
}

// Create adds a project. The Client does not retry a Create that may have taken effect, because a
// retry could add the project twice. Method, path and the scope meetings:write are assumed, since
// the API reference only describes the body, so you may need [WithRoute].
//
// Errors: [ErrInvalidRequest].
func (s *ProjectsService) Create(ctx context.Context, params *ProjectCreateParams) (*Project, error) {
	err := checkGiven("params", params != nil)
	if err != nil {
		return nil, err
	}
	p, _, err := call[Project](ctx, s.core, OpProjectsCreate, rest.Request{Body: params})
	return p, err
}

func (v *Project) missing(received) string { return lacks("id", v == nil || v.ID == "") }

func (l *projectList) missing(r received) string { return missingList("projects", l.Projects, r) }
