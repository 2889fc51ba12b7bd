package minutes

import (
	"cmp"
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// TemplatesService reads the templates that shape minutes ([section 4]).
//
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
type TemplatesService struct{ service }

// Template shapes minutes, and comes from the service or from the organisation ([section 2.5]).
//
// [section 2.5]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Template struct {
	ID          string `json:"id"` // for MeetingCreateParams.TemplateID
	Name        string `json:"name"`
	Source      string `json:"source"`                // where it comes from, as free text
	Description string `json:"description,omitempty"` // what it is for
	IsDefault   bool   `json:"is_default"`            // meetings without a TemplateID use it
	Version     *int   `json:"version,omitzero"`      // nil if the template has no versions
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
