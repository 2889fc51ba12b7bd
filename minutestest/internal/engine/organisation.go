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
	world.Organisation // complete; of its quota, only quota counts
	quota

	lastSeq    uint64
	meetings   []*meeting // the oldest first
	byID       map[string]*meeting
	byExternal map[string]*meeting
	running    []*meeting // whose status ends by itself, the one that ends first at the front
}

// settings returns a copy of the organisation's settings, with the quota that is left.
func (o *organisation) settings() world.Organisation {
	all := complete(&o.Organisation)
	all.Credits, all.TranscribeSeconds, all.NextResetAt = new(o.credits), new(o.seconds), o.resetDate
	return all
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
		m.Name, m.Status = cmp.Or(m.Name, m.ID), cmp.Or(m.Status, minutes.MemberActive)
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

func orStages(s, other world.Stages) world.Stages {
	return world.Stages{
		Prepare:    cmp.Or(s.Prepare, other.Prepare),
		Transcribe: cmp.Or(s.Transcribe, other.Transcribe),
		Write:      cmp.Or(s.Write, other.Write),
	}
}

// quota is the allowance that an organisation has left, and its next top-up.
type quota struct {
	credits, seconds             int // as Usage shows them
	reserved                     int // of seconds, set aside for recordings under way (D23)
	periodCredits, periodSeconds int // what a top-up restores

	resetDate string    // "": never
	resetAt   time.Time // zero: never, also if the date had passed when it was set
}

// newQuota returns the quota of a complete organisation. now is when it begins.
func newQuota(o *world.Organisation, now time.Time) quota {
	q := quota{credits: *o.Credits, seconds: *o.TranscribeSeconds, periodCredits: *o.Credits, periodSeconds: *o.TranscribeSeconds, resetDate: o.NextResetAt}
	if at, err := time.Parse(time.DateOnly, q.resetDate); err == nil && now.Before(at) {
		q.resetAt = at
	}
	return q
}

// updated returns the quota after an update of o. The amount that a top-up restores stays.
func (q quota) updated(o *world.Organisation, now time.Time) quota {
	after := newQuota(o, now)
	after.reserved, after.periodCredits, after.periodSeconds = q.reserved, q.periodCredits, q.periodSeconds
	return after
}

func (q *quota) toppedUpBy(at time.Time) bool { return !q.resetAt.IsZero() && !q.resetAt.After(at) }

// topUp restores the period's quota. The next top-up is a month later.
func (q *quota) topUp() {
	q.credits, q.seconds = q.periodCredits, q.periodSeconds
	q.resetAt = q.resetAt.AddDate(0, 1, 0)
	q.resetDate = q.resetAt.Format(time.DateOnly)
}

// reserve sets the seconds of a recording aside, and reports whether there were enough.
func (q *quota) reserve(m *meeting) bool {
	if m.seconds > q.seconds-q.reserved {
		return false
	}
	m.reserved = m.seconds
	q.reserved += m.seconds
	return true
}

// release gives back the seconds set aside for m.
func (q *quota) release(m *meeting) {
	q.reserved -= m.reserved
	m.reserved = 0
}

// take uses up the seconds set aside for m.
func (q *quota) take(m *meeting) {
	q.seconds = max(0, q.seconds-m.reserved)
	q.release(m)
}

// spend takes credits, and reports whether there were enough.
func (q *quota) spend(credits int) bool {
	if q.credits < credits {
		return false
	}
	q.credits -= credits
	return true
}
