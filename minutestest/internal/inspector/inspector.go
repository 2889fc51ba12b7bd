package inspector

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/recent"
)

// Inspector shows what a service in this process does, live or in a report. It asks its source for
// everything but the actions, which it keeps.
type Inspector struct {
	source  Source
	actions recent.List[action]
	count   atomic.Int64 // of actions
}

// New returns an Inspector of a service.
func New(source Source) *Inspector {
	return &Inspector{source: source, actions: recent.List[action]{Max: 1000}}
}

// Report writes the page as one file that needs no server. Name and failed are those of the test.
func (i *Inspector) Report(w io.Writer, name string, failed bool) error {
	var reader reader
	all, _ := reader.read(i)
	all.Name, all.Failed = name, failed
	return write(w, all, i.details(all))
}

// details yields what a click opens, by the path that the live page would ask for.
func (i *Inspector) details(of news) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for seq, full := range i.source.Requests() {
			if !yield(fmt.Sprintf("requests/%d", seq), full) {
				return
			}
		}
		for _, m := range of.Meetings {
			if full, ok := i.source.Engine().Meeting(m.ID); ok && !yield("meetings/"+m.ID, full) {
				return
			}
		}
	}
}

// Handler serves the live page, the events that feed it, and what a click opens.
func (i *Inspector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /events", i.events)
	mux.HandleFunc("GET /requests/{seq}", func(w http.ResponseWriter, r *http.Request) {
		for seq, full := range i.source.Requests() {
			if strconv.Itoa(seq) == r.PathValue("seq") {
				detail(w, full, true)
				return
			}
		}
		detail(w, nil, false)
	})
	mux.HandleFunc("GET /meetings/{id}", func(w http.ResponseWriter, r *http.Request) {
		full, ok := i.source.Engine().Meeting(r.PathValue("id"))
		detail(w, full, ok)
	})
	return mux
}

func detail(w http.ResponseWriter, value any, ok bool) {
	if !ok {
		http.Error(w, "not kept", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(value)
}

const (
	newsInterval = 50 * time.Millisecond // longer if reading the news takes much of the machine
	keepAlive    = 15 * time.Second      // longest time between two events
)

// events serves the server-sent events that feed the page. The first one is a "state" with
// everything. Each later one is "news" with the changes. It asks for news again and again, so that
// it costs nothing without watchers.
func (i *Inspector) events(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // the request is complete
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		return
	}
	var (
		reader reader
		sent   time.Time
	)
	for {
		began := time.Now()
		found, kind := reader.read(i)
		next := max(newsInterval, min(20*time.Since(began), time.Second)) // so that a page takes little of a processor
		if kind != "" || time.Since(sent) >= keepAlive {
			if writeEvent(w, cmp.Or(kind, "news"), found) != nil || conn.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-time.After(next):
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w io.Writer, kind string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	return err
}
