package minutestest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/inspector"
)

// Inspector returns the page of [Server.Report], live. It shows requests and
// changes as they happen. Serve it beside a running program:
//
//	go http.ListenAndServe("127.0.0.1:8081", srv.Inspector())
//
// It shows all meetings to everybody who can reach it, so use a loopback
// address. The program minutes-fake serves it at its control address, and
// rejects requests from pages of other sites. Sixteen browsers can watch at
// once. The seventeenth gets 503.
func (s *Server) Inspector() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", inspector.Serve)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /requests/{seq}", func(w http.ResponseWriter, r *http.Request) {
		seq, _ := strconv.ParseUint(r.PathValue("seq"), 10, 63)
		e, ok := s.journal.find(seq)
		detail(w, e.request, ok)
	})
	mux.HandleFunc("GET /meetings/{id}", func(w http.ResponseWriter, r *http.Request) {
		m, ok := s.Meeting(r.PathValue("id"))
		detail(w, func() Meeting { return m }, ok)
	})
	return mux
}

func detail[T any](w http.ResponseWriter, of func() T, ok bool) {
	if !ok {
		http.Error(w, "not kept", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(of())
}

const (
	maxStreams   = 16
	newsInterval = 50 * time.Millisecond // longer if reading the news takes much of the machine
	keepAlive    = 15 * time.Second      // longest time between two events
	stuck        = 10 * time.Second      // a reader that accepts no event for this long is dropped
)

// events serves the server-sent events that feed the page. The first one, and
// the first after a Reset, is a "state" with everything. Each later one is
// "news" with the changes. It polls the Server, so it costs nothing without
// watchers.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		http.Error(w, "too many are watching", http.StatusServiceUnavailable)
		return
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // the request is complete
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		return
	}
	var (
		reader newsreader
		sent   time.Time
	)
	for {
		began := time.Now()
		found, kind := reader.read(s)
		// A page may use a twentieth of one processor.
		next := max(newsInterval, 20*time.Since(began))
		if kind != "" || time.Since(sent) >= keepAlive {
			_ = conn.SetWriteDeadline(time.Now().Add(stuck))
			if writeEvent(w, cmp.Or(kind, "news"), found) != nil || conn.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		if !pause(r.Context(), next) {
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
