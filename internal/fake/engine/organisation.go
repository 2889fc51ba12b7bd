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
	service *Service

	// Organisation is complete, with the quota that is left.
	world.Organisation

	// reserved seconds are set aside for recordings that are not transcribed yet (D23).
	reserved int

	// periodCredits and periodSeconds are what a top-up restores.
	periodCredits int
	periodSeconds int

	// resetAt is the time of the next top-up. Zero means never, as after a date that had already passed
	// when it was set.
	resetAt time.Time

	// lastSeq is the number of the newest meeting.
	lastSeq uint64

	// meetings are in the order in which they were created.
	meetings []*meeting

	// byID and byExternal find meetings by their ids and external ids.
	byID       map[string]*meeting
	byExternal map[string]*meeting

	// running meetings are those whose status ends by itself, the one that ends first at the front.
	running []*meeting
}

// complete returns a copy of an organisation in which everything that was left out has its default.
// The API shows no member, project or template without a name: one that was left out is the id.
func complete(from *world.Organisation) world.Organisation {
	o := *from
	o.Meetings = nil
	o.Credits = orDefault(o.Credits, defaultCredits)
	o.TranscribeSeconds = orDefault(o.TranscribeSeconds, defaultTranscribeSeconds)
	o.MaxMembers = orDefault(o.MaxMembers, defaultMaxMembers)
	o.MaxTerms = orDefault(o.MaxTerms, defaultMaxTerms)
	o.Members = slices.Clone(o.Members)
	for i := range o.Members {
		m := &o.Members[i]
		m.Name = cmp.Or(m.Name, m.ID)
		m.Status = cmp.Or(m.Status, minutes.MemberStatusActive)
	}
	o.Integrations = slices.Clone(o.Integrations)
	for i := range o.Integrations {
		in := &o.Integrations[i]
		in.DefaultVisibility = cmp.Or(in.DefaultVisibility, defaultIntegrationVisibility)
	}
	o.Projects = slices.Clone(o.Projects)
	for i := range o.Projects {
		p := &o.Projects[i]
		p.Name = cmp.Or(p.Name, p.ID)
	}
	o.Templates = completeTemplates(o.Templates)
	o.Vocabulary = completeVocabulary(o.Vocabulary)
	o.Keys = slices.Clone(o.Keys)
	for i := range o.Keys {
		k := &o.Keys[i]
		k.Scopes = slices.Clone(k.Scopes)
		k.IPAllowlist = slices.Clone(k.IPAllowlist)
	}
	return o
}

func completeTemplates(from []world.Template) []world.Template {
	if len(from) == 0 {
		return []world.Template{standardTemplate}
	}
	templates := slices.Clone(from)
	for i := range templates {
		t := &templates[i]
		t.Name = cmp.Or(t.Name, t.ID)
		t.Source = cmp.Or(t.Source, standardTemplate.Source)
	}
	return templates
}

func completeVocabulary(from []minutes.VocabularyEntry) []minutes.VocabularyEntry {
	vocabulary := slices.Clone(from)
	for i := range vocabulary {
		e := &vocabulary[i]
		e.Term = strings.TrimSpace(e.Term)
		e.Variants = append([]minutes.VocabularyVariant{}, e.Variants...)
		for j := range e.Variants {
			v := &e.Variants[j]
			v.Source = cmp.Or(v.Source, minutes.VariantSourceManual)
		}
	}
	return vocabulary
}

func orDefault(p *int, otherwise int) *int {
	if p == nil {
		return &otherwise
	}
	return new(*p)
}

// defaultTemplate is what a meeting gets that names none (D25).
func (o *organisation) defaultTemplate() *world.Template {
	marked := first(o.Templates, func(t *world.Template) bool { return t.IsDefault })
	return cmp.Or(marked, &o.Templates[0])
}

// byEmail returns the member with an address, or nil. Addresses are compared without regard to case
// (D16).
func (o *organisation) byEmail(email string) *world.Member {
	return first(o.Members, func(m *world.Member) bool { return email != "" && strings.EqualFold(m.Email, email) })
}

func (o *organisation) toppedUpBy(at time.Time) bool {
	return !o.resetAt.IsZero() && !o.resetAt.After(at)
}

// topUp restores the period's quota. The next top-up is a month later.
func (o *organisation) topUp() {
	*o.Credits = o.periodCredits
	*o.TranscribeSeconds = o.periodSeconds
	o.resetAt = o.resetAt.AddDate(0, 1, 0)
	o.NextResetAt = o.resetAt.Format(time.DateOnly)
}

// reserve sets the seconds of m's recording aside, and reports whether there were enough.
func (o *organisation) reserve(m *meeting) bool {
	if m.seconds > *o.TranscribeSeconds-o.reserved {
		return false
	}
	o.setAside(m)
	return true
}

// setAside is reserve, whether there are enough or not.
func (o *organisation) setAside(m *meeting) {
	m.reserved = m.seconds
	o.reserved += m.seconds
}

// refund gives back the seconds set aside for m.
func (o *organisation) refund(m *meeting) {
	o.reserved -= m.reserved
	m.reserved = 0
}

// charge uses up the seconds set aside for m.
func (o *organisation) charge(m *meeting) {
	*o.TranscribeSeconds = max(0, *o.TranscribeSeconds-m.reserved)
	o.refund(m)
}

// spend uses up credits, and reports whether there were enough.
func (o *organisation) spend(credits int) bool {
	if *o.Credits < credits {
		return false
	}
	*o.Credits -= credits
	return true
}
