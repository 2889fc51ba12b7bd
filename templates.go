package minutes

import (
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// TemplatesService reads the templates that shape minutes (section 4.3).
type TemplatesService struct{ service }

// Template shapes the minutes of a meeting (section 2.5).
type Template struct {
	ID          string `json:"id"` // goes into MeetingCreateParams.TemplateID
	Name        string `json:"name"`
	Source      string `json:"source"`                // where it comes from: free text, new values may appear
	Description string `json:"description,omitempty"` // what it is for
	IsDefault   bool   `json:"is_default"`            // what a meeting gets when no template is given
	Version     *int   `json:"version,omitempty"`     // nil if it is not versioned
}

// String shows the fields as %+v does, the version by its value.
func (t Template) String() string { return formatFields(t) }

type templateList struct {
	Templates []Template `json:"templates"`
}

// List returns the organisation's templates. Method, path and scope
// (meetings:read) are assumed; see [WithRoute].
func (s *TemplatesService) List(ctx context.Context) ([]Template, error) {
	return pick(ctx, s.core(), rest.Request{Operation: route.TemplatesList}, func(l *templateList) []Template { return l.Templates })
}
