package engine

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// handler handles one operation. It returns the body of its success, nil for none,
// or an error.
type handler func(*call) (any, *apiError)

var handlers = map[route.Operation]handler{
	route.MembersList:             read((*organisation).listMembers),
	route.MembersCreate:           (*call).createMember,
	route.MeetingsList:            (*call).listMeetings,
	route.MeetingsCreate:          (*call).createMeeting,
	route.MeetingsGet:             onMeeting((*call).getMeeting),
	route.MeetingsUpdate:          (*call).updateMeeting,
	route.MeetingsDelete:          onMeeting((*call).deleteMeeting),
	route.MeetingsSetParticipants: (*call).setParticipants,
	route.MeetingsUploadURL:       (*call).uploadURL,
	route.MeetingsMinutes:         onMeeting((*call).getMinutes),
	route.MeetingsTranscript:      onMeeting((*call).getTranscript),
	route.ProjectsList:            read((*organisation).listProjects),
	route.ProjectsCreate:          (*call).createProject,
	route.TemplatesList:           read((*organisation).listTemplates),
	route.UsageGet:                read((*organisation).getUsage),
	route.VocabularyGet:           read((*organisation).getVocabulary),
	route.VocabularyReplace:       (*call).replaceVocabulary,
	route.VocabularyAdd:           (*call).addTerm,
}

// read makes a handler of an operation that only reads the organisation.
func read(operate func(*organisation) any) handler {
	return func(c *call) (any, *apiError) {
		c.org.lock(c.now)
		defer c.org.unlock()
		return operate(c.org), nil
	}
}

// endpoint is a route with its handler.
type endpoint struct {
	route.Route
	handle handler
}

// resource is a path with the methods it has.
type resource struct {
	segments []string // of the path; route.Param represents a meeting's id
	methods  []*endpoint
	allow    string
}

var resources = makeResources()

func makeResources() (list []*resource) {
	byPath := map[string]*resource{}
	for _, row := range route.Table {
		res := byPath[row.Path]
		if res == nil {
			res = &resource{segments: strings.Split(row.Path, "/")}
			byPath[row.Path] = res
			list = append(list, res)
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
	return list
}

// find returns the resource at a URL's path and the meeting named in it, or
// nil. It splits an escaped path before it decodes the segments, so that an id
// may hold anything, a slash included.
func find(u *url.URL) (res *resource, meetingID string) {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, ""
		}
		segments[i] = decoded
	}
	for _, res := range resources {
		if id, ok := res.match(segments); ok {
			return res, id
		}
	}
	return nil, ""
}

// match reports whether res is at a path, and returns the meeting named in it.
func (res *resource) match(segments []string) (meetingID string, ok bool) {
	if len(segments) != len(res.segments) {
		return "", false
	}
	for i, s := range res.segments {
		switch {
		case s == route.Param && segments[i] != "":
			meetingID = segments[i]
		case s != segments[i]:
			return "", false
		}
	}
	return meetingID, true
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
