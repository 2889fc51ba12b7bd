package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// organisation is one organisation and its meetings. No id or reference reaches across two of them.
// The Service's lock guards it.
type organisation struct {
	service            *Service
	world.Organisation // complete, with the quota that is left

	reserved                     int       // of its seconds, set aside for recordings under way (D23)
	periodCredits, periodSeconds int       // what a top-up restores
	resetAt                      time.Time // of the next top-up; zero: never, also if its date had passed when it was set

	lastSeq    uint64
	meetings   []*meeting // the oldest first
	byID       map[string]*meeting
	byExternal map[string]*meeting
	running    []*meeting // whose status ends by itself, the one that ends first at the front
}

// complete returns a copy of an organisation in which everything that was left out has its default.
// The API shows no member, project or template without a name: one that was left out is the id.
func complete(from *world.Organisation) world.Organisation {
	o := *from
	o.Meetings = nil
	o.Credits, o.TranscribeSeconds = orDefault(o.Credits, defaultCredits), orDefault(o.TranscribeSeconds, defaultTranscribeSeconds)
	o.MaxMembers, o.MaxTerms = orDefault(o.MaxMembers, defaultMaxMembers), orDefault(o.MaxTerms, defaultMaxTerms)
	o.Members, o.Integrations, o.Projects = slices.Clone(o.Members), slices.Clone(o.Integrations), slices.Clone(o.Projects)
	for i := range o.Members {
		m := &o.Members[i]
		m.Name, m.Status = cmp.Or(m.Name, m.ID), cmp.Or(m.Status, minutes.MemberStatusActive)
	}
	for i := range o.Integrations {
		in := &o.Integrations[i]
		in.DefaultVisibility = cmp.Or(in.DefaultVisibility, defaultIntegrationVisibility)
	}
	for i := range o.Projects {
		o.Projects[i].Name = cmp.Or(o.Projects[i].Name, o.Projects[i].ID)
	}
	if o.Templates = slices.Clone(o.Templates); len(o.Templates) == 0 {
		o.Templates = []world.Template{standardTemplate}
	}
	for i := range o.Templates {
		t := &o.Templates[i]
		t.Name, t.Source = cmp.Or(t.Name, t.ID), cmp.Or(t.Source, standardTemplate.Source)
	}
	o.Vocabulary = slices.Clone(o.Vocabulary)
	for i := range o.Vocabulary {
		e := &o.Vocabulary[i]
		e.Term, e.Variants = strings.TrimSpace(e.Term), append([]minutes.VocabularyVariant{}, e.Variants...)
		for j := range e.Variants {
			e.Variants[j].Source = cmp.Or(e.Variants[j].Source, "manual")
		}
	}
	o.Keys = slices.Clone(o.Keys)
	for i := range o.Keys {
		o.Keys[i].Scopes, o.Keys[i].IPAllowlist = slices.Clone(o.Keys[i].Scopes), slices.Clone(o.Keys[i].IPAllowlist)
	}
	return o
}

func orDefault(p *int, otherwise int) *int {
	if p == nil {
		return &otherwise
	}
	return new(*p)
}

// defaultTemplate is what a meeting gets that names none (D25).
func (o *organisation) defaultTemplate() *world.Template {
	for i := range o.Templates {
		if o.Templates[i].IsDefault {
			return &o.Templates[i]
		}
	}
	return &o.Templates[0]
}

// byEmail returns the member with an address, or nil. Addresses are compared without regard to case
// (D16).
func (o *organisation) byEmail(email string) *world.Member {
	for i := range o.Members {
		if m := &o.Members[i]; email != "" && strings.EqualFold(m.Email, email) {
			return m
		}
	}
	return nil
}

func (o *organisation) toppedUpBy(at time.Time) bool {
	return !o.resetAt.IsZero() && !o.resetAt.After(at)
}

// topUp restores the period's quota. The next top-up is a month later.
func (o *organisation) topUp() {
	*o.Credits, *o.TranscribeSeconds = o.periodCredits, o.periodSeconds
	o.resetAt = o.resetAt.AddDate(0, 1, 0)
	o.NextResetAt = o.resetAt.Format(time.DateOnly)
}

// reserve sets the seconds of m's recording aside, and reports whether there were enough.
func (o *organisation) reserve(m *meeting) bool {
	if m.seconds > *o.TranscribeSeconds-o.reserved {
		return false
	}
	m.reserved = m.seconds
	o.reserved += m.seconds
	return true
}

// release gives back the seconds set aside for m.
func (o *organisation) release(m *meeting) {
	o.reserved -= m.reserved
	m.reserved = 0
}

// take uses up the seconds set aside for m.
func (o *organisation) take(m *meeting) {
	*o.TranscribeSeconds = max(0, *o.TranscribeSeconds-m.reserved)
	o.release(m)
}

// spend takes credits, and reports whether there were enough.
func (o *organisation) spend(credits int) bool {
	if *o.Credits < credits {
		return false
	}
	*o.Credits -= credits
	return true
}
