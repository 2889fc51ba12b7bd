package engine

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// handlers handle the operations, with the organisation locked. They return the body of a success,
// nil for none, or an error.
var handlers = map[route.Operation]func(*call) (any, *apiError){
	route.MembersList:             (*call).listMembers,
	route.MembersCreate:           (*call).createMember,
	route.MeetingsList:            (*call).listMeetings,
	route.MeetingsCreate:          (*call).createMeeting,
	route.MeetingsGet:             (*call).getMeeting,
	route.MeetingsUpdate:          (*call).updateMeeting,
	route.MeetingsDelete:          (*call).deleteMeeting,
	route.MeetingsSetParticipants: (*call).setParticipants,
	route.MeetingsUploadURL:       (*call).uploadURL,
	route.MeetingsMinutes:         (*call).getMinutes,
	route.MeetingsTranscript:      (*call).getTranscript,
	route.ProjectsList:            (*call).listProjects,
	route.ProjectsCreate:          (*call).createProject,
	route.TemplatesList:           (*call).listTemplates,
	route.UsageGet:                (*call).getUsage,
	route.VocabularyGet:           (*call).getVocabulary,
	route.VocabularyReplace:       (*call).replaceVocabulary,
	route.VocabularyAdd:           (*call).addTerm,
}

// lookUp returns the route of a request, and the meeting in its path. If there is none, allow has
// the methods of its path, if it exists.
func lookUp(r *http.Request) (found *route.Route, meetingID string, allow []string) {
	method, path := r.Method, r.URL.EscapedPath()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range route.Table {
		row := &route.Table[i]
		id, ok := match(row.Path, path)
		if !ok {
			continue
		}
		meetingID = id
		if row.Method == method {
			return row, meetingID, nil
		}
		allow = append(allow, row.Method)
		if row.Method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	return nil, meetingID, allow
}

// match reports whether an escaped path is that of a route, and returns the meeting named in it. An
// id may hold anything, an escaped slash included.
func match(pattern, path string) (meetingID string, ok bool) {
	before, after, hasID := strings.Cut(pattern, route.Param)
	if !hasID {
		return "", path == pattern
	}
	escaped, ok := strings.CutPrefix(path, before)
	if !ok || !strings.HasSuffix(escaped, after) {
		return "", false
	}
	escaped = strings.TrimSuffix(escaped, after)
	id, err := url.PathUnescape(escaped)
	return id, err == nil && id != "" && !strings.Contains(escaped, "/")
}

// Identify returns the operation that r asks for and the meeting in its path, without doing
// anything. The operation is "" if the API has none.
func Identify(r *http.Request) (op route.Operation, meetingID string) {
	if isStorage(r.URL) {
		return StoragePut, storedIn(r.URL)
	}
	found, meetingID, _ := lookUp(r)
	if found == nil {
		return "", meetingID
	}
	return found.Operation, meetingID
}
