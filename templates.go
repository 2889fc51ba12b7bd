package minutes

import (
	"cmp"
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// TemplatesService reads the templates that shape minutes (section 4.3).
type TemplatesService struct{ service }

// The operations of [TemplatesService].
const OpTemplatesList Operation = "templates.list" // assumed: GET /v1/templates

// Template shapes minutes, and comes from the service or from the organisation (section 2.5).
type Template struct {
	ID          string `json:"id"` // for MeetingCreateParams.TemplateID
	Name        string `json:"name"`
	Source      string `json:"source"`                // origin of the template, as free text; new values may appear
	Description string `json:"description,omitempty"` // purpose of the template
	IsDefault   bool   `json:"is_default"`            // whether meetings without a TemplateID use this template
	Version     *int   `json:"version,omitempty"`     // nil if the template has no versions
}

type templateList struct {
	Templates []*Template `json:"templates"`
}

// List returns the organisation's templates, whose ids MeetingCreateParams.TemplateID accepts.
// Method, path and the scope meetings:read are assumed, so you may need [WithRoute].
func (s *TemplatesService) List(ctx context.Context) ([]*Template, error) {
	list, _, err := call[templateList](ctx, s.core, OpTemplatesList, rest.Request{})
	return cmp.Or(list, new(templateList)).Templates, err
}

func (v *Template) missing(received) string { return lacks("id", v == nil || v.ID == "") }

func (l *templateList) missing(r received) string { return missingList("templates", l.Templates, r) }
