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
var handlers = map[minutes.Operation]func(*request) (any, *apiError){
	minutes.OpMembersList:             (*request).listMembers,
	minutes.OpMembersCreate:           (*request).createMember,
	minutes.OpMeetingsList:            (*request).listMeetings,
	minutes.OpMeetingsCreate:          (*request).createMeeting,
	minutes.OpMeetingsGet:             (*request).getMeeting,
	minutes.OpMeetingsUpdate:          (*request).updateMeeting,
	minutes.OpMeetingsDelete:          (*request).deleteMeeting,
	minutes.OpMeetingsSetParticipants: (*request).setParticipants,
	minutes.OpMeetingsUploadURL:       (*request).uploadURL,
	minutes.OpMeetingsMinutes:         (*request).getMinutes,
	minutes.OpMeetingsTranscript:      (*request).getTranscript,
	minutes.OpProjectsList:            (*request).listProjects,
	minutes.OpProjectsCreate:          (*request).createProject,
	minutes.OpTemplatesList:           (*request).listTemplates,
	minutes.OpUsageGet:                (*request).getUsage,
	minutes.OpVocabularyGet:           (*request).getVocabulary,
	minutes.OpVocabularyReplace:       (*request).replaceVocabulary,
	minutes.OpVocabularyAdd:           (*request).addTerm,
}

func (r *request) listMembers() (any, *apiError) {
	list := []any{}
	for i := range r.org.Members {
		list = append(list, memberJSON(&r.org.Members[i]))
	}
	return map[string]any{"members": list}, nil
}

func (r *request) createMember() (any, *apiError) {
	f := r.form
	o := r.org
	m := world.Member{Status: minutes.MemberStatusNoAccount}
	m.Name, _ = f.trimmed("name", maxMemberName, true)
	m.Email, _ = f.text("email")
	if m.Email != "" && !validEmail(m.Email) {
		f.fault("email", errEmail)
	}
	m.Role, _ = f.trimmed("role", maxMemberRole, false)
	m.Description, _ = f.trimmed("description", maxDescription, false)
	err := f.err()
	if err != nil {
		return nil, err
	}
	holder := o.byEmail(m.Email)
	if holder != nil { // before the limit (D18)
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

func (r *request) listProjects() (any, *apiError) {
	list := []minutes.Project{}
	for _, p := range r.org.Projects {
		if !p.Archived {
			list = append(list, minutes.Project{ID: p.ID, Name: p.Name})
		}
	}
	return map[string]any{"projects": list}, nil
}

func (r *request) createProject() (any, *apiError) {
	name, _ := r.form.trimmed("name", maxProjectName, true)
	err := r.form.err()
	if err != nil {
		return nil, err
	}
	p := world.Project{ID: r.service.ids.next(projectPrefix), Name: name}
	r.org.Projects = append(r.org.Projects, p)
	return minutes.Project{ID: p.ID, Name: p.Name}, nil
}

func (r *request) listTemplates() (any, *apiError) {
	list := []templateJSON{}
	usual := r.org.defaultTemplate()
	for i := range r.org.Templates {
		t := &r.org.Templates[i]
		list = append(list, templateJSON{
			ID:          t.ID,
			Name:        t.Name,
			Source:      t.Source,
			Description: optional(t.Description),
			IsDefault:   t == usual,
			Version:     t.Version,
		})
	}
	return map[string]any{"templates": list}, nil
}

func (r *request) getUsage() (any, *apiError) {
	return map[string]any{
		"credits_remaining":            *r.org.Credits,
		"transcribe_seconds_remaining": *r.org.TranscribeSeconds,
		"next_reset_at":                optional(r.org.NextResetAt),
	}, nil
}

// getVocabulary returns the vocabulary, with [] for a list of nothing.
func (r *request) getVocabulary() (any, *apiError) {
	o := r.org
	v := minutes.Vocabulary{
		Terms:    []string{},
		Entries:  append([]minutes.VocabularyEntry{}, o.Vocabulary...),
		MaxTerms: *o.MaxTerms,
	}
	for _, e := range o.Vocabulary {
		v.Terms = append(v.Terms, e.Term)
	}
	return v, nil
}

// replaceVocabulary keeps the variants of terms that are in the new list, too (D20).
func (r *request) replaceVocabulary() (any, *apiError) {
	f := r.form
	o := r.org
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
		entry := newTerm(t)
		known := termIndex(o.Vocabulary, t)
		if known >= 0 {
			entry = o.Vocabulary[known]
		}
		terms = append(terms, entry)
		if len(terms) > *o.MaxTerms {
			f.fault("terms", nil)
			break
		}
	}
	err := f.err()
	if err != nil {
		return nil, err
	}
	o.Vocabulary = terms
	return r.getVocabulary()
}

func (r *request) addTerm() (any, *apiError) {
	f := r.form
	o := r.org
	term, _ := f.text("term")
	term = strings.TrimSpace(term)
	if term == "" {
		f.fault("term", nil)
	}
	known := termIndex(o.Vocabulary, term) >= 0
	if !known && len(o.Vocabulary) >= *o.MaxTerms {
		f.fault("term", nil)
	}
	err := f.err()
	if err != nil {
		return nil, err
	}
	if known { // D15
		r.Status = http.StatusOK
	} else {
		o.Vocabulary = append(o.Vocabulary, newTerm(term))
	}
	return r.getVocabulary()
}

func newTerm(term string) minutes.VocabularyEntry {
	return minutes.VocabularyEntry{Term: term, Variants: []minutes.VocabularyVariant{}}
}

func termIndex(list []minutes.VocabularyEntry, term string) int {
	return slices.IndexFunc(list, func(e minutes.VocabularyEntry) bool { return e.Term == term })
}
