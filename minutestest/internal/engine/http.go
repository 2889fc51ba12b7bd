package engine

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// call is one request to the API on its way through the engine.
type call struct {
	world *world
	w     http.ResponseWriter
	r     *http.Request
	now   instant
	key   *key
	org   *organisation

	status   int
	out      []byte // the reply's body
	pollable bool   // the reply says how often to ask again
	x        Exchange
}

var calls = sync.Pool{New: func() any { return &call{out: make([]byte, 0, 1024)} }}

// maxPooled keeps one huge reply from being kept for ever.
const maxPooled = 1 << 18

// endpoint is a route with what answers it.
type endpoint struct {
	route.Route
	handle func(*call) *refusal
}

// resource is a path with the methods it has.
type resource struct {
	methods []*endpoint
	allow   string
}

var handlers = map[route.Operation]func(*call) *refusal{
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

// The routing, made from the one route table: paths without a meeting as they
// stand, paths with one by what follows the meeting's id.
var (
	fixed     = map[string]*resource{}
	ofMeeting = map[string]*resource{}
)

const meetingsPath = "/v1/meetings/"

func init() {
	for _, row := range route.Table {
		table, path := fixed, row.Path
		if before, after, ok := strings.Cut(row.Path, route.Param); ok {
			if before != meetingsPath {
				panic("engine: a meeting stands elsewhere than below " + meetingsPath)
			}
			table, path = ofMeeting, after
		}
		res := table[path]
		if res == nil {
			res = &resource{}
			table[path] = res
		}
		handle := handlers[row.Operation]
		if handle == nil {
			panic("engine: nothing answers " + string(row.Operation))
		}
		res.methods = append(res.methods, &endpoint{row, handle})
		if res.allow != "" {
			res.allow += ", "
		}
		res.allow += row.Method
		if row.Method == http.MethodGet {
			res.allow += ", " + http.MethodHead
		}
	}
}

// find returns the resource at a URL's path and the meeting named in it. A
// percent-encoded path is taken apart before it is decoded, so that an id may
// hold anything.
func find(u *url.URL) (res *resource, meetingID string) {
	path := u.Path
	if u.RawPath != "" && strings.HasPrefix(path, "/v1/") {
		pieces := strings.Split(u.EscapedPath(), "/")
		for i, p := range pieces {
			decoded, err := url.PathUnescape(p)
			if err != nil {
				return nil, ""
			}
			pieces[i] = decoded
		}
		if len(pieces) > 3 && pieces[1] == "v1" && pieces[2] == "meetings" {
			return meetingResource(pieces[3], strings.Join(append([]string{""}, pieces[4:]...), "/"))
		}
		for _, p := range pieces {
			if strings.Contains(p, "/") {
				return nil, ""
			}
		}
	}
	if res := fixed[path]; res != nil {
		return res, ""
	}
	rest, ok := strings.CutPrefix(path, meetingsPath)
	if !ok {
		return nil, ""
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return meetingResource(rest[:i], rest[i:])
	}
	return meetingResource(rest, "")
}

func meetingResource(id, suffix string) (*resource, string) {
	res := ofMeeting[suffix]
	if id == "" || res == nil {
		return nil, ""
	}
	return res, id
}

// method returns what answers a method, HEAD as GET, or nil.
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

// Identify says which operation r asks for, and of which meeting, without
// doing anything. The operation is "" where the interface has none.
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

// Serve answers one request to the API or to storage, and says what became of
// it.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) Exchange {
	if isStorage(r.URL) {
		return s.world.Load().storage(w, r)
	}
	c := calls.Get().(*call)
	c.world, c.w, c.r, c.now = s.world.Load(), w, r, instantOf(time.Now())
	c.status, c.out, c.pollable, c.x = 0, c.out[:0], false, Exchange{}
	if no := c.guarded(); no != nil {
		c.refuse(no)
	}
	c.reply()
	x := c.x
	c.world, c.w, c.r, c.key, c.org, c.x = nil, nil, nil, nil, nil, Exchange{}
	if cap(c.out) <= maxPooled {
		calls.Put(c)
	}
	return x
}

// guarded answers the call. Nothing is written before it returns, so that a
// fault of the engine's own is an INTERNAL_ERROR and never half a reply.
func (c *call) guarded() (no *refusal) {
	defer func() {
		if fault := recover(); fault != nil {
			if fault == http.ErrAbortHandler {
				panic(fault)
			}
			no = errInternal
		}
	}()
	return c.answer()
}

// answer keeps the order of refusals of D6, D18 and D25: the key first, then
// the path, then what the operation itself has to say.
func (c *call) answer() *refusal {
	var e *endpoint
	res, id := find(c.r.URL)
	if res != nil {
		c.x.MeetingID = id
		if e = res.method(c.r.Method); e != nil {
			c.x.Operation = e.Operation
		}
	}
	if no := c.authenticate(); no != nil {
		return no
	}
	switch {
	case res == nil:
		return errNoRoute
	case e == nil:
		no := *errMethod
		no.allow = res.allow
		return &no
	case !c.key.allows(e.Scope):
		return errScope
	}
	c.status = e.Success
	return e.handle(c)
}

// refuse makes no the reply.
func (c *call) refuse(no *refusal) {
	c.pollable = false
	c.x.Code, c.x.RequestID = no.code, c.world.ids.next(requestPrefix)
	c.status, c.out = no.status, no.append(c.out[:0], c.x.RequestID)
	h := c.w.Header()
	if no.allow != "" {
		h["Allow"] = []string{no.allow}
	}
	if no == errUnauthenticated {
		h["Www-Authenticate"] = bearerChallenge
	}
}

// Header values that are the same in every reply.
var (
	jsonType        = []string{"application/json; charset=utf-8"}
	pollingPace     = []string{meetingCacheControl}
	bearerChallenge = []string{"Bearer"}
)

func (c *call) reply() {
	c.x.Status = c.status
	h := c.w.Header()
	if c.status == http.StatusNoContent {
		c.w.WriteHeader(c.status)
		return
	}
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(c.out))}
	if c.pollable {
		h["Cache-Control"] = c.world.pace
	}
	c.w.WriteHeader(c.status)
	if c.r.Method != http.MethodHead {
		c.w.Write(c.out)
	}
}

// refreshNow takes the time anew, after something that may have lasted.
func (c *call) refreshNow() { c.now = instantOf(time.Now()) }
