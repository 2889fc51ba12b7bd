package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// Inspector shows what a service in this process does, live or in a report. It asks its source for
// everything but the actions, which it keeps.
type Inspector struct {
	source  Source
	actions actions
}

// New returns an Inspector of a service.
func New(source Source) *Inspector { return &Inspector{source: source} }

// Reset forgets the actions.
func (i *Inspector) Reset() { i.actions.reset() }

// Report writes the page as one file that needs no server. Name and failed are those of the test.
func (i *Inspector) Report(w io.Writer, name string, failed bool) error {
	var reader reader
	all, _ := reader.read(i)
	all.Name, all.Failed = name, failed
	return write(w, all, i.details(all))
}

// maxDetails is the size limit of the meetings in a report, in bytes.
const maxDetails = 32 << 20

// details yields what a click opens, by its path in the page.
func (i *Inspector) details(of news) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, r := range of.Requests {
			if full, ok := i.source.Request(r.Seq); ok && !yield(fmt.Sprintf("requests/%d", r.Seq), full) {
				return
			}
		}
		room := maxDetails
		for _, m := range of.Meetings {
			full, ok := i.source.Engine().Meeting(m.ID)
			if !ok {
				continue
			}
			text, err := json.Marshal(full)
			if room -= len(text); err != nil || room < 0 || !yield("meetings/"+m.ID, json.RawMessage(text)) {
				return
			}
		}
	}
}

// Handler serves the live page, the events that feed it, and what a click opens.
func (i *Inspector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("request") {
			i.events(w, r)
			return
		}
		seq, _ := strconv.Atoi(r.URL.Query().Get("request"))
		full, ok := i.source.Request(seq)
		detail(w, full, ok)
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

// events serves the server-sent events that feed the page. The first one, and the first after a
// reset, is a "state" with everything. Each later one is "news" with the changes. It asks for news
// again and again, so that it costs nothing without watchers.
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
		if !wait(r.Context(), next) {
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) (stayed bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
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
