package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// prefix begins the external_id of every meeting that this package creates,
// and of none that anybody else does.
const prefix = "minutes-go-conformance-"

// A ledger lists everything that was created and is not deleted yet. It has a reference
// before the meeting is requested, so a lost response leaves nothing behind.
type ledger struct {
	mu   sync.Mutex
	ids  map[string]string // by external_id, or by id if there is none; "" is not known yet
	fail string            // why a delete did not work
}

// expect notes a reference, and reports whether it is a new one.
func (l *ledger) expect(ref string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.ids[ref]; there {
		return false
	}
	if l.ids == nil {
		l.ids = map[string]string{}
	}
	l.ids[ref] = ""
	return true
}

// is notes the id of a meeting.
func (l *ledger) is(ref, id string) {
	l.expect(ref)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[ref] = id
}

// gone removes a reference, or a meeting.
func (l *ledger) gone(refOrID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.ids, func(ref, id string) bool { return ref == refOrID || id == refOrID })
}

// failed notes that a delete did not work.
func (l *ledger) failed(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = why
}

func (l *ledger) stuck() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail
}

func (l *ledger) all() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.ids)
}

// post creates a meeting. It sets a reference of this package unless the body
// has one, or is no object. The meeting stays in the ledger until it is
// deleted.
func (r *run) post(body string) response {
	if lack := r.missing(writing); lack != "" {
		r.skip("%s", lack)
	}
	var fields map[string]json.RawMessage
	ref := ""
	if json.Unmarshal([]byte(body), &fields) == nil && fields != nil {
		if _, own := fields["external_id"]; !own {
			ref = fresh()
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"external_id":%q}`, ref)
		} else {
			_ = json.Unmarshal(fields["external_id"], &ref)
		}
	}
	added := ref != "" && r.made.expect(ref)
	rep := r.send("POST /v1/meetings", body)
	switch id := rep.text("id"); {
	case rep.status/100 == 2 && id != "" && ref != "":
		r.made.is(ref, id)
	case rep.status/100 == 2 && id != "":
		r.made.is(id, id)
	case added && rep.status/100 == 4:
		r.made.gone(ref)
	}
	return rep
}

// remove deletes a meeting. If the run has been interrupted it is left to
// the sweep.
func (r *run) remove(id string) {
	r.is(r.send("DELETE /v1/meetings/"+id, ""), http.StatusNoContent, "")
}

// deleted keeps the ledger when a meeting was to be deleted.
func (r *run) deleted(path string, rep response) {
	id := strings.TrimPrefix(path, "/v1/meetings/")
	switch rep.status {
	case http.StatusNoContent, http.StatusNotFound:
		r.made.gone(id)
	default:
		r.made.failed(fmt.Sprintf("DELETE %s returned %d %s", path, rep.status, rep.code()))
	}
}

// sweep deletes what the ledger still has, and lists what cannot be deleted.
func (tg *target) sweep(ctx context.Context) (left []string) {
	for _, ref := range slices.Sorted(maps.Keys(tg.made.all())) {
		id := tg.made.all()[ref]
		swept := &report{}
		why := tg.perform(ctx, &check{name: "sweep", do: func(r *run) {
			if id == "" {
				found := r.send("GET /v1/meetings?external_id="+url.QueryEscape(ref), "")
				list, ok := found.object["meetings"].([]any)
				if !ok {
					r.skip("it cannot be looked for: %d %s", found.status, found.code())
				}
				if len(list) == 0 {
					r.made.gone(ref)
					return
				}
				m, _ := list[0].(map[string]any)
				id, _ = m["id"].(string)
				r.made.is(ref, id)
			}
			r.remove(id)
		}}, swept)
		for _, d := range swept.list {
			why = d.text
		}
		if _, there := tg.made.all()[ref]; there {
			left = append(left, fmt.Sprintf("%s (%s): %s", ref, id, why))
		}
	}
	return left
}

// cleanUp deletes what earlier runs have left in the account.
func (tg *target) cleanUp(ctx context.Context) (deleted int, err error) {
	if err := tg.ask(ctx); err != nil {
		return 0, err
	}
	for _, scope := range []string{"meetings:read", "meetings:delete"} {
		if slices.Contains(tg.lacks, scope) {
			return 0, fmt.Errorf("the key lacks %s", scope)
		}
	}
	found := &report{}
	why := tg.perform(ctx, &check{name: "cleanup", do: func(r *run) {
		for cursor := ""; ; {
			page := r.send("GET /v1/meetings?limit=50"+cursor, "")
			if !r.is(page, http.StatusOK, "MeetingPage") {
				return
			}
			for _, e := range page.object["meetings"].([]any) {
				m := e.(map[string]any)
				if ref, _ := m["external_id"].(string); strings.HasPrefix(ref, prefix) {
					r.made.is(ref, m["id"].(string))
				}
			}
			next := page.text("next_cursor")
			if next == "" {
				return
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
	}}, found)
	if why != "" {
		return 0, fmt.Errorf("the meetings cannot be listed: %s", why)
	}
	for _, d := range found.list {
		return 0, fmt.Errorf("the meetings cannot be listed: %s", d.text)
	}
	deleted = len(tg.made.all())
	if left := tg.sweep(ctx); len(left) > 0 {
		return deleted - len(left), fmt.Errorf("meetings that are left:\n%s", strings.Join(left, "\n"))
	}
	return deleted, nil
}
