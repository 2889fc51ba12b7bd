package engine

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// handler answers one operation: with the body of its success, nil for none,
// or with an error.
type handler func(*call) (any, *apiError)

var handlers = map[route.Operation]handler{
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

// endpoint is a route with its handler.
type endpoint struct {
	route.Route
	handle handler
}

// resource is a path with the methods it has.
type resource struct {
	methods []*endpoint
	allow   string
}

const meetingsPath = "/v1/meetings/"

// resources holds the routing by path, with route.Param for a meeting's id.
var resources = func() map[string]*resource {
	found := map[string]*resource{}
	for _, row := range route.Table {
		if before, _, ok := strings.Cut(row.Path, route.Param); ok && before != meetingsPath {
			panic("engine: the path of " + string(row.Operation) + " has a meeting elsewhere than below " + meetingsPath)
		}
		res := found[row.Path]
		if res == nil {
			res = &resource{}
			found[row.Path] = res
		}
		res.methods = append(res.methods, &endpoint{row, handlers[row.Operation]})
		if res.allow != "" {
			res.allow += ", "
		}
		res.allow += row.Method
		if row.Method == http.MethodGet {
			res.allow += ", " + http.MethodHead
		}
	}
	return found
}()

// find returns the resource at a URL's path and the meeting named in it, or
// nil. It splits an escaped path before it decodes the segments, so that an id
// may hold anything, a slash included.
func find(u *url.URL) (res *resource, meetingID string) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/")
	if !ok {
		return nil, ""
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, ""
		}
		segments[i] = decoded
	}
	if len(segments) >= 3 && segments[0] == "v1" && segments[1] == "meetings" {
		if meetingID = segments[2]; meetingID == "" {
			return nil, ""
		}
		segments[2] = route.Param
	}
	for _, s := range segments {
		if strings.Contains(s, "/") {
			return nil, ""
		}
	}
	res = resources["/"+strings.Join(segments, "/")]
	if res == nil {
		return nil, ""
	}
	return res, meetingID
}

// method returns the endpoint of a method, with HEAD as GET, or nil.
func (res *resource) method(method string) *endpoint {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, e := range res.methods {
		if e.Method == method {
			return e
		}
	}
	return nil
}

// Identify returns the operation that r asks for and the meeting in its path,
// without doing anything. The operation is "" if the interface has none.
func Identify(r *http.Request) (op route.Operation, meetingID string) {
	if isStorage(r.URL) {
		_, meetingID = storedIn(r.URL)
		return StoragePut, meetingID
	}
	res, meetingID := find(r.URL)
	if res == nil {
		return "", ""
	}
	if e := res.method(r.Method); e != nil {
		return e.Operation, meetingID
	}
	return "", meetingID
}
