package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Check returns every mistake in w, each with its path, as in
//
//	organisations[0].keys[1].member_id: no member "emp_x"
func Check(w world.World) error {
	c := &checker{firstAt: map[string]string{}}
	c.stages("stages", w.Stages)
	each("page_sizes", w.PageSizes, c.notNegative)
	if len(w.PageSizes) > 0 && slices.Max(w.PageSizes) <= 0 {
		c.mistake("page_sizes", "a list of empty pages alone has no end")
	}
	if len(w.Organisations) == 0 {
		c.mistake("organisations", "at least one expected")
	}
	each("organisations", w.Organisations, c.organisation)
	return errors.Join(c.mistakes...)
}

// each calls check with each element of the list at a path, and its own path.
func each[T any](path string, list []T, check func(path string, item *T)) {
	for i := range list {
		check(fmt.Sprintf("%s[%d]", path, i), &list[i])
	}
}

type checker struct {
	mistakes []error

	// firstAt has the first path of each value that may exist once, by its kind and itself.
	firstAt map[string]string
}

func (c *checker) mistake(path, format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// required checks that a value is there. The other checks accept a value that is not.
func (c *checker) required(path, value string) {
	if strings.TrimSpace(value) == "" {
		c.mistake(path, "missing")
	}
}

// prefixed checks that a value begins with a prefix, and has more than that.
func (c *checker) prefixed(path, prefix, value string) {
	if value != "" && (!strings.HasPrefix(value, prefix) || value == prefix) {
		c.mistake(path, "%q does not begin with %s", value, prefix)
	}
}

// unique checks that a value is the only one of its kind.
func (c *checker) unique(path, kind, value string) {
	if value == "" {
		return
	}
	first, taken := c.firstAt[kind+"\x00"+value]
	if taken {
		c.mistake(path, "the same as %s", first)
		return
	}
	c.firstAt[kind+"\x00"+value] = path
}

func (c *checker) notNegative(path string, n *int) {
	if n != nil && *n < 0 {
		c.mistake(path, "%d is negative", *n)
	}
}

func (c *checker) date(path, date string) {
	if date != "" && !validDate(date) {
		c.mistake(path, "%q is not a date such as 2026-12-01", date)
	}
}

func (c *checker) stages(path string, s world.Stages) {
	c.duration(path+".prepare", s.Prepare)
	c.duration(path+".transcribe", s.Transcribe)
	c.duration(path+".write", s.Write)
}

func (c *checker) duration(path string, d time.Duration) {
	if d < 0 {
		c.mistake(path, "%s is negative", d)
	}
}

func oneOf[T ~string](c *checker, path string, value T, of ...T) {
	if value != "" && !slices.Contains(of, value) {
		c.mistake(path, "%q is none of %q", value, of)
	}
}

// organisation checks o. No id or secret may be in two organisations, because the service never
// mixes up two things of one kind. Templates may: many come from the service itself.
func (c *checker) organisation(at string, o *world.Organisation) {
	c.required(at+".id", o.ID)
	c.unique(at+".id", "organisation", o.ID)
	c.notNegative(at+".credits", o.Credits)
	c.notNegative(at+".transcribe_seconds", o.TranscribeSeconds)
	c.notNegative(at+".max_members", o.MaxMembers)
	c.notNegative(at+".max_terms", o.MaxTerms)
	c.date(at+".next_reset_at", o.NextResetAt)
	each(at+".members", o.Members, func(path string, m *world.Member) { c.member(path, o, m) })
	each(at+".integrations", o.Integrations, func(path string, in *world.Integration) {
		c.required(path+".id", in.ID)
		c.unique(path+".id", "caller", in.ID)
		oneOf(c, path+".default_visibility", in.DefaultVisibility, visibilities...)
	})
	each(at+".projects", o.Projects, func(path string, p *world.Project) {
		c.required(path+".id", p.ID)
		c.prefixed(path+".id", projectPrefix, p.ID)
		c.unique(path+".id", "project", p.ID)
	})
	each(at+".templates", o.Templates, func(path string, t *world.Template) {
		c.required(path+".id", t.ID)
		c.prefixed(path+".id", templatePrefix, t.ID)
		c.unique(path+".id", "template of "+o.ID, t.ID)
	})
	c.vocabulary(at+".vocabulary", o)
	each(at+".keys", o.Keys, func(path string, k *world.Key) { c.key(path, o, k) })
	c.meetings(at+".meetings", o, o.Meetings)
}

func (c *checker) member(at string, o *world.Organisation, m *world.Member) {
	c.required(at+".id", m.ID)
	c.prefixed(at+".id", memberPrefix, m.ID)
	c.unique(at+".id", "caller", m.ID)
	oneOf(c, at+".status", m.Status, memberStatuses...)
	if m.Email != "" && !validEmail(m.Email) {
		c.mistake(at+".email", "%q is not an address", m.Email)
	}
	c.unique(at+".email", "email of "+o.ID, strings.ToLower(m.Email))
}

func (c *checker) vocabulary(at string, o *world.Organisation) {
	each(at, o.Vocabulary, func(path string, e *minutes.VocabularyEntry) {
		c.required(path+".term", e.Term)
		c.unique(path+".term", "term of "+o.ID, strings.TrimSpace(e.Term))
		each(path+".variants", e.Variants, func(path string, v *minutes.VocabularyVariant) {
			c.required(path+".text", v.Text)
			oneOf(c, path+".source", v.Source, minutes.VariantSourceAuto, minutes.VariantSourceManual)
		})
	})
	most := *orDefault(o.MaxTerms, defaultMaxTerms)
	if len(o.Vocabulary) > most {
		c.mistake(at, "%d terms, %d at most", len(o.Vocabulary), most)
	}
}

func (c *checker) key(at string, o *world.Organisation, k *world.Key) {
	c.required(at+".secret", k.Secret)
	c.unique(at+".secret", "secret", k.Secret)
	if strings.ContainsFunc(k.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		c.mistake(at+".secret", "a header cannot carry it")
	}
	switch {
	case (k.MemberID == "") == (k.IntegrationID == ""):
		c.mistake(at, "give either a member_id or an integration_id")
	case k.MemberID != "" && memberOf(o, k.MemberID) == nil:
		c.mistake(at+".member_id", "no member %q", k.MemberID)
	case k.IntegrationID != "" && integrationOf(o, k.IntegrationID) == nil:
		c.mistake(at+".integration_id", "no integration %q", k.IntegrationID)
	}
	each(at+".scopes", k.Scopes, func(path string, scope *minutes.Scope) { oneOf(c, path, *scope, Scopes...) })
	each(at+".ip_allowlist", k.IPAllowlist, func(path string, from *string) {
		_, err := parsePrefix(*from)
		if err != nil {
			c.mistake(path, "%q is neither an address nor a CIDR block", *from)
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

func (c *checker) meetings(at string, o *world.Organisation, specs []world.MeetingSpec) {
	each(at, specs, func(path string, m *world.MeetingSpec) {
		if strings.TrimSpace(m.Title) == "" || longer(m.Title, maxTitle) {
			c.mistake(path+".title", "1 to %d characters expected", maxTitle)
		}
		c.date(path+".date", m.Date)
		oneOf(c, path+".status", m.Status, statuses...)
		oneOf(c, path+".visibility", m.Visibility, visibilities...)
		by := creator(o, m)
		if memberOf(o, by) == nil && integrationOf(o, by) == nil {
			c.mistake(path+".creator_id", "no member or integration %q", by)
		}
		each(path+".participant_ids", m.ParticipantIDs, func(path string, id *string) {
			if memberOf(o, *id) == nil {
				c.mistake(path, "no member %q", *id)
			}
		})
		each(path+".shared_with", m.SharedWith, func(path string, id *string) {
			if !shareable(o, *id) {
				c.mistake(path, "no member %q who can sign in", *id)
			}
		})
		p := projectOf(o, m.ProjectID)
		if m.ProjectID != "" && (p == nil || p.Archived) {
			c.mistake(path+".project_id", "no active project %q", m.ProjectID)
		}
		if m.Count < 0 || m.Count > maxCount {
			c.mistake(path+".count", "%d is not from 0 to %d", m.Count, maxCount)
			return
		}
		c.externalIDs(path+".external_id", o, m)
	})
}

func (c *checker) externalIDs(path string, o *world.Organisation, m *world.MeetingSpec) {
	for n := range max(m.Count, 1) {
		id := externalID(m, n)
		if longer(id, maxExternalID) {
			c.mistake(path, "at most %d characters expected", maxExternalID)
			return
		}
		c.unique(path, "external id of "+o.ID, id)
	}
}

func checkScript(sc world.Script) error {
	c := &checker{}
	targets := []string{sc.MeetingID, sc.ExternalID, sc.Title}
	given := slices.DeleteFunc(targets, func(target string) bool { return target == "" })
	if len(given) > 1 {
		c.mistake("meeting_id", "give a meeting_id, an external_id or a title, not several")
	}
	oneOf(c, "outcome", sc.Outcome, statuses[finalStatuses:]...)
	oneOf(c, "hold", sc.Hold, statuses[1:finalStatuses]...)
	last, early := lastBefore[sc.Outcome]
	if early && slices.Index(statuses, sc.Hold) > slices.Index(statuses, last) {
		c.mistake("hold", "a meeting that ends in %q never comes to %q", sc.Outcome, sc.Hold)
	}
	if sc.Stages != nil {
		c.stages("stages", *sc.Stages)
	}
	c.duration("duration", sc.Duration)
	c.duration("listed_after", sc.ListedAfter)
	c.duration("visible_after", sc.VisibleAfter)
	c.duration("noticed_after", sc.NoticedAfter)
	c.duration("clock_skew", sc.ClockSkew)
	return errors.Join(c.mistakes...)
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
