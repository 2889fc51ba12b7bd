package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Check returns every mistake in w, each with its path, as in
//
//	organisations[0].keys[1].member_id: no member "emp_x"
func Check(w world.World) error {
	c := &checker{owners: map[property]owner{}}
	c.stages(placeOf("stages"), w.Stages)
	each(placeOf("page_sizes"), w.PageSizes, c.notNegative)
	if len(w.PageSizes) > 0 && slices.Max(w.PageSizes) <= 0 {
		c.mistake(placeOf("page_sizes"), "a list of empty pages alone has no end")
	}
	if len(w.Organisations) == 0 {
		c.mistake(placeOf("organisations"), "at least one expected")
	}
	each(placeOf("organisations"), w.Organisations, c.organisation)
	return mistake.Join(c.mistakes...)
}

// each calls check with each element of a list, and its place.
func each[T any](list place, elements []T, check func(at place, element *T)) {
	for i := range elements {
		check(list.index(i), &elements[i])
	}
}

type checker struct {
	mistakes []error

	// owners has who came first with each property that may exist once.
	owners map[property]owner
}

// property is a value of a kind, in an organisation or, if that is "", anywhere.
type property struct{ organisation, kind, value string }

// owner has a property: a place in the checked value or, if that is zero, a meeting.
type owner struct {
	at        place
	meetingID string
}

func (o owner) name() mistake.Name {
	if o.meetingID != "" {
		text := "that of meeting " + o.meetingID
		return mistake.Name{JSON: text, Go: text}
	}
	return o.at.name()
}

func (c *checker) mistake(at place, format string, args ...any) {
	c.mistakes = append(c.mistakes, mistake.Errorf("%s: %s", at.name(), mistake.Errorf(format, args...)))
}

// required checks that a value is there. The other checks accept a value that is not.
func (c *checker) required(at place, value string) {
	if strings.TrimSpace(value) == "" {
		c.mistake(at, "missing")
	}
}

// prefixed checks that a value begins with a prefix, and has more than that.
func (c *checker) prefixed(at place, prefix, value string) {
	if value != "" && (!strings.HasPrefix(value, prefix) || value == prefix) {
		c.mistake(at, "%q does not begin with %s", value, prefix)
	}
}

// unique checks that a value is the only one of its kind.
func (c *checker) unique(at place, organisation, kind, value string) {
	if value == "" {
		return
	}
	this := property{organisation, kind, value}
	first, taken := c.owners[this]
	if taken {
		c.mistake(at, "the same as %s", first.name())
		return
	}
	c.owners[this] = owner{at: at}
}

func (c *checker) notNegative(at place, n *int) {
	if n != nil && *n < 0 {
		c.mistake(at, "%d is negative", *n)
	}
}

func (c *checker) date(at place, date string) {
	if date != "" && !validDate(date) {
		c.mistake(at, "%q is not a date such as 2026-12-01", date)
	}
}

func (c *checker) stages(at place, s world.Stages) {
	c.duration(at.field("prepare"), s.Prepare)
	c.duration(at.field("transcribe"), s.Transcribe)
	c.duration(at.field("write"), s.Write)
}

func (c *checker) duration(at place, d time.Duration) {
	if d < 0 {
		c.mistake(at, "%s is negative", d)
	}
}

func oneOf[T ~string](c *checker, at place, value T, of ...T) {
	if value != "" && !slices.Contains(of, value) {
		c.mistake(at, "%q is none of %q", value, of)
	}
}

// organisation checks o. No id or secret may be in two organisations, because the service never
// mixes up two things of one kind. Templates may: many come from the service itself.
func (c *checker) organisation(at place, o *world.Organisation) {
	c.required(at.field("id"), o.ID)
	c.unique(at.field("id"), "", "organisation", o.ID)
	c.notNegative(at.field("credits"), o.Credits)
	c.notNegative(at.field("transcribe_seconds"), o.TranscribeSeconds)
	c.notNegative(at.field("max_members"), o.MaxMembers)
	c.notNegative(at.field("max_terms"), o.MaxTerms)
	c.date(at.field("next_reset_at"), o.NextResetAt)
	each(at.field("members"), o.Members, func(at place, m *world.Member) { c.member(at, o, m) })
	each(at.field("integrations"), o.Integrations, func(at place, in *world.Integration) {
		c.required(at.field("id"), in.ID)
		c.unique(at.field("id"), "", "caller", in.ID)
		oneOf(c, at.field("default_visibility"), in.DefaultVisibility, visibilities...)
	})
	each(at.field("projects"), o.Projects, func(at place, p *world.Project) {
		c.required(at.field("id"), p.ID)
		c.prefixed(at.field("id"), projectPrefix, p.ID)
		c.unique(at.field("id"), "", "project", p.ID)
	})
	each(at.field("templates"), o.Templates, func(at place, t *world.Template) {
		c.required(at.field("id"), t.ID)
		c.prefixed(at.field("id"), templatePrefix, t.ID)
		c.unique(at.field("id"), o.ID, "template", t.ID)
	})
	c.vocabulary(at.field("vocabulary"), o)
	each(at.field("keys"), o.Keys, func(at place, k *world.Key) { c.key(at, o, k) })
	c.meetings(at.field("meetings"), o, o.Meetings)
}

func (c *checker) member(at place, o *world.Organisation, m *world.Member) {
	c.required(at.field("id"), m.ID)
	c.prefixed(at.field("id"), memberPrefix, m.ID)
	c.unique(at.field("id"), "", "caller", m.ID)
	oneOf(c, at.field("status"), m.Status, memberStatuses...)
	if m.Email != "" && !validEmail(m.Email) {
		c.mistake(at.field("email"), "%q is not an address", m.Email)
	}
	c.unique(at.field("email"), o.ID, "email", strings.ToLower(m.Email))
}

func (c *checker) vocabulary(at place, o *world.Organisation) {
	each(at, o.Vocabulary, func(at place, e *minutes.VocabularyEntry) {
		c.required(at.field("term"), e.Term)
		c.unique(at.field("term"), o.ID, "term", strings.TrimSpace(e.Term))
		each(at.field("variants"), e.Variants, func(at place, v *minutes.VocabularyVariant) {
			c.required(at.field("text"), v.Text)
			oneOf(c, at.field("source"), v.Source, minutes.VariantSourceAuto, minutes.VariantSourceManual)
		})
	})
	most := *orDefault(o.MaxTerms, defaultMaxTerms)
	if len(o.Vocabulary) > most {
		c.mistake(at, "%d terms, %d at most", len(o.Vocabulary), most)
	}
}

func (c *checker) key(at place, o *world.Organisation, k *world.Key) {
	c.required(at.field("secret"), k.Secret)
	c.unique(at.field("secret"), "", "secret", k.Secret)
	if strings.ContainsFunc(k.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		c.mistake(at.field("secret"), "a header cannot carry it")
	}
	switch {
	case (k.MemberID == "") == (k.IntegrationID == ""):
		c.mistake(at, "give either a %s or an %s",
			mistake.Field("member_id"), mistake.Field("integration_id"))
	case k.MemberID != "" && memberOf(o, k.MemberID) == nil:
		c.mistake(at.field("member_id"), "no member %q", k.MemberID)
	case k.IntegrationID != "" && integrationOf(o, k.IntegrationID) == nil:
		c.mistake(at.field("integration_id"), "no integration %q", k.IntegrationID)
	}
	each(at.field("scopes"), k.Scopes, func(at place, scope *minutes.Scope) { oneOf(c, at, *scope, Scopes...) })
	each(at.field("ip_allowlist"), k.IPAllowlist, func(at place, from *string) {
		_, err := parsePrefix(*from)
		if err != nil {
			c.mistake(at, "%q is neither an address nor a CIDR block", *from)
		}
	})
}

// parsePrefix reads a CIDR block, or one address (D18).
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(s)
	return netip.PrefixFrom(a, a.BitLen()), err
}

// maxCount bounds Count of a MeetingSpec.
const maxCount = 100_000

func (c *checker) meetings(at place, o *world.Organisation, specs []world.MeetingSpec) {
	each(at, specs, func(at place, m *world.MeetingSpec) {
		if strings.TrimSpace(m.Title) == "" || longer(m.Title, maxTitle) {
			c.mistake(at.field("title"), "1 to %d characters expected", maxTitle)
		}
		c.date(at.field("date"), m.Date)
		oneOf(c, at.field("status"), m.Status, statuses...)
		oneOf(c, at.field("visibility"), m.Visibility, visibilities...)
		by := creator(o, m)
		if memberOf(o, by) == nil && integrationOf(o, by) == nil {
			c.mistake(at.field("creator_id"), "no member or integration %q", by)
		}
		each(at.field("participant_ids"), m.ParticipantIDs, func(at place, id *string) {
			if memberOf(o, *id) == nil {
				c.mistake(at, "no member %q", *id)
			}
		})
		each(at.field("shared_with"), m.SharedWith, func(at place, id *string) {
			if !shareable(o, *id) {
				c.mistake(at, "no member %q who can sign in", *id)
			}
		})
		p := projectOf(o, m.ProjectID)
		if m.ProjectID != "" && (p == nil || p.Archived) {
			c.mistake(at.field("project_id"), "no active project %q", m.ProjectID)
		}
		if m.Count < 0 || m.Count > maxCount {
			c.mistake(at.field("count"), "%d is not from 0 to %d", m.Count, maxCount)
			return
		}
		c.externalIDs(at.field("external_id"), o, m)
	})
}

func (c *checker) externalIDs(at place, o *world.Organisation, m *world.MeetingSpec) {
	for n := range max(m.Count, 1) {
		id := externalID(m, n)
		if longer(id, maxExternalID) {
			c.mistake(at, "at most %d characters expected", maxExternalID)
			return
		}
		c.unique(at, o.ID, "external id", id)
	}
}

func checkScript(sc world.Script) error {
	c := &checker{}
	targets := []string{sc.MeetingID, sc.ExternalID, sc.Title}
	given := slices.DeleteFunc(targets, func(target string) bool { return target == "" })
	if len(given) > 1 {
		c.mistake(placeOf("meeting_id"), "give one of %s, %s and %s, not several",
			mistake.Field("meeting_id"), mistake.Field("external_id"), mistake.Field("title"))
	}
	oneOf(c, placeOf("outcome"), sc.Outcome, statuses[finalStatuses:]...)
	oneOf(c, placeOf("hold"), sc.Hold, statuses[1:finalStatuses]...)
	last, early := lastBefore[sc.Outcome]
	if early && slices.Index(statuses, sc.Hold) > slices.Index(statuses, last) {
		c.mistake(placeOf("hold"), "a meeting that ends in %q never comes to %q", sc.Outcome, sc.Hold)
	}
	if sc.Stages != nil {
		c.stages(placeOf("stages"), *sc.Stages)
	}
	c.duration(placeOf("duration"), sc.Duration)
	c.duration(placeOf("listed_after"), sc.ListedAfter)
	c.duration(placeOf("visible_after"), sc.VisibleAfter)
	c.duration(placeOf("noticed_after"), sc.NoticedAfter)
	c.duration(placeOf("clock_skew"), sc.ClockSkew)
	return mistake.Join(c.mistakes...)
}

// Scopes are those that a key can have (section 5 of the API reference).
var Scopes = []minutes.Scope{
	minutes.ScopeEmployeesRead,
	minutes.ScopeEmployeesWrite,
	minutes.ScopeMeetingsRead,
	minutes.ScopeMeetingsWrite,
	minutes.ScopeMeetingsDelete,
	minutes.ScopeMinutesRead,
}

var memberStatuses = []minutes.MemberStatus{
	minutes.MemberStatusActive,
	minutes.MemberStatusInvited,
	minutes.MemberStatusNoAccount,
	minutes.MemberStatusDeactivated,
}

var visibilities = []minutes.Visibility{
	minutes.VisibilityPrivate,
	minutes.VisibilityOrganisation,
	minutes.VisibilityShared,
}

// statuses are in the order in which a meeting comes to them.
var statuses = []minutes.Status{
	minutes.StatusCreated,
	minutes.StatusAudioUploaded,
	minutes.StatusTranscribing,
	minutes.StatusTranscribed,
	minutes.StatusGeneratingMinutes,
	minutes.StatusMinutesReady,
	minutes.StatusTranscriptionFailed,
	minutes.StatusMinutesFailed,
	minutes.StatusTranscribeBlocked,
	minutes.StatusAudioRejected,
}

// finalStatuses is the index of the first final status.
const finalStatuses = 5

// lastBefore has the last status before each failure that a meeting comes to before it has a transcript.
var lastBefore = map[minutes.Status]minutes.Status{
	minutes.StatusAudioRejected:       minutes.StatusAudioUploaded,
	minutes.StatusTranscribeBlocked:   minutes.StatusAudioUploaded,
	minutes.StatusTranscriptionFailed: minutes.StatusTranscribing,
}

// externalID is the external id of meeting number n, from 0, of a spec.
func externalID(m *world.MeetingSpec, n int) string {
	if m.ExternalID == "" || m.Count <= 1 {
		return m.ExternalID
	}
	return fmt.Sprintf("%s-%d", m.ExternalID, n+1)
}

// creator is the member or integration that creates the meetings of a spec.
func creator(o *world.Organisation, m *world.MeetingSpec) string {
	switch {
	case m.CreatorID == "" && len(o.Integrations) > 0:
		return o.Integrations[0].ID
	case m.CreatorID == "" && len(o.Members) > 0:
		return o.Members[0].ID
	}
	return m.CreatorID
}

// shareable reports whether a meeting can be shared with this member: not with one who cannot sign
// in, nor with an integration (section 2.3, D4).
func shareable(o *world.Organisation, id string) bool {
	m := memberOf(o, id)
	if m == nil {
		return false
	}
	status := cmp.Or(m.Status, minutes.MemberStatusActive)
	return status == minutes.MemberStatusActive || status == minutes.MemberStatusInvited
}
