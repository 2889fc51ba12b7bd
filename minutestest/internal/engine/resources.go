package engine

import (
	"net/http"
	"net/mail"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// handlers handle the operations, with the organisation locked. They return the body of a success,
// nil for none, or an error.
var handlers = map[minutes.Operation]func(*call) (any, *apiError){
	minutes.OpMembersList:             (*call).listMembers,
	minutes.OpMembersCreate:           (*call).createMember,
	minutes.OpMeetingsList:            (*call).listMeetings,
	minutes.OpMeetingsCreate:          (*call).createMeeting,
	minutes.OpMeetingsGet:             (*call).getMeeting,
	minutes.OpMeetingsUpdate:          (*call).updateMeeting,
	minutes.OpMeetingsDelete:          (*call).deleteMeeting,
	minutes.OpMeetingsSetParticipants: (*call).setParticipants,
	minutes.OpMeetingsUploadURL:       (*call).uploadURL,
	minutes.OpMeetingsMinutes:         (*call).getMinutes,
	minutes.OpMeetingsTranscript:      (*call).getTranscript,
	minutes.OpProjectsList:            (*call).listProjects,
	minutes.OpProjectsCreate:          (*call).createProject,
	minutes.OpTemplatesList:           (*call).listTemplates,
	minutes.OpUsageGet:                (*call).getUsage,
	minutes.OpVocabularyGet:           (*call).getVocabulary,
	minutes.OpVocabularyReplace:       (*call).replaceVocabulary,
	minutes.OpVocabularyAdd:           (*call).addTerm,
}

func (c *call) listMembers() (any, *apiError) {
	list := []any{}
	for i := range c.org.Members {
		list = append(list, memberJSON(&c.org.Members[i]))
	}
	return map[string]any{"members": list}, nil
}

func (c *call) createMember() (any, *apiError) {
	f, o := c.form, c.org
	m := world.Member{Status: minutes.MemberStatusNoAccount}
	m.Name, _ = f.trimmed("name", maxMemberName, true)
	if m.Email, _ = f.text("email"); m.Email != "" && !validEmail(m.Email) {
		f.fault("email", errEmail)
	}
	m.Role, _ = f.trimmed("role", maxMemberRole, false)
	m.Description, _ = f.trimmed("description", maxDescription, false)
	if err := f.err(); err != nil {
		return nil, err
	}
	if holder := o.byEmail(m.Email); holder != nil { // before the limit (D18)
		return nil, errEmailTaken.with(map[string]any{"member_id": holder.ID, "name": holder.Name})
	}
	if len(o.Members) >= *o.MaxMembers {
		return nil, errMemberLimit
	}
	m.ID = o.service.ids.next(memberPrefix)
	o.Members = append(o.Members, m)
	return memberJSON(&m), nil
}

// validEmail accepts a bare address. net/mail alone would also accept a display name.
func validEmail(s string) bool {
	addr, err := mail.ParseAddress(s)
	return err == nil && addr.Address == s
}

func (c *call) listProjects() (any, *apiError) {
	list := []minutes.Project{}
	for _, p := range c.org.Projects {
		if !p.Archived {
			list = append(list, minutes.Project{ID: p.ID, Name: p.Name})
		}
	}
	return map[string]any{"projects": list}, nil
}

func (c *call) createProject() (any, *apiError) {
	name, _ := c.form.trimmed("name", maxProjectName, true)
	if err := c.form.err(); err != nil {
		return nil, err
	}
	p := world.Project{ID: c.service.ids.next(projectPrefix), Name: name}
	c.org.Projects = append(c.org.Projects, p)
	return minutes.Project{ID: p.ID, Name: p.Name}, nil
}

func (c *call) listTemplates() (any, *apiError) {
	list, usual := []templateJSON{}, c.org.defaultTemplate()
	for i := range c.org.Templates {
		t := &c.org.Templates[i]
		list = append(list, templateJSON{t.ID, t.Name, t.Source, optional(t.Description), t == usual, t.Version})
	}
	return map[string]any{"templates": list}, nil
}

func (c *call) getUsage() (any, *apiError) {
	return map[string]any{"credits_remaining": *c.org.Credits, "transcribe_seconds_remaining": *c.org.TranscribeSeconds, "next_reset_at": optional(c.org.NextResetAt)}, nil
}

// getVocabulary returns the vocabulary, with [] for a list of nothing.
func (c *call) getVocabulary() (any, *apiError) {
	o := c.org
	v := minutes.Vocabulary{Terms: []string{}, Entries: append([]minutes.VocabularyEntry{}, o.Vocabulary...), MaxTerms: *o.MaxTerms}
	for _, e := range o.Vocabulary {
		v.Terms = append(v.Terms, e.Term)
	}
	return v, nil
}

// replaceVocabulary keeps the variants of terms that stay (D20).
func (c *call) replaceVocabulary() (any, *apiError) {
	f, o := c.form, c.org
	given, found := f.list("terms")
	if !found {
		f.fault("terms", nil)
	}
	terms := []minutes.VocabularyEntry{}
	for _, t := range given {
		t = strings.TrimSpace(t)
		if t == "" {
			f.fault("terms", nil)
		}
		if termIndex(terms, t) >= 0 {
			continue
		}
		entry := minutes.VocabularyEntry{Term: t, Variants: []minutes.VocabularyVariant{}}
		if i := termIndex(o.Vocabulary, t); i >= 0 {
			entry = o.Vocabulary[i]
		}
		if terms = append(terms, entry); len(terms) > *o.MaxTerms {
			f.fault("terms", nil)
			break
		}
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	o.Vocabulary = terms
	return c.getVocabulary()
}

func (c *call) addTerm() (any, *apiError) {
	f, o := c.form, c.org
	term, _ := f.text("term")
	if term = strings.TrimSpace(term); term == "" {
		f.fault("term", nil)
	}
	known := termIndex(o.Vocabulary, term) >= 0
	if !known && len(o.Vocabulary) >= *o.MaxTerms {
		f.fault("term", nil)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	if known { // D15
		c.Status = http.StatusOK
	} else {
		o.Vocabulary = append(o.Vocabulary, minutes.VocabularyEntry{Term: term, Variants: []minutes.VocabularyVariant{}})
	}
	return c.getVocabulary()
}

func termIndex(list []minutes.VocabularyEntry, term string) int {
	return slices.IndexFunc(list, func(e minutes.VocabularyEntry) bool { return e.Term == term })
}
