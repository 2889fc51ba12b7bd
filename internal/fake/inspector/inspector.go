// Package inspector is the page that shows what the service saw, live or after a test: one HTML
// document that loads nothing from elsewhere.
//
// It shows whatever a client has sent. The page makes text of it and nothing else, and its
// Content-Security-Policy leaves no other way.
package inspector

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/recent"
)

//go:embed page
var files embed.FS

// scripts in the order in which they build on each other.
var scripts = []string{
	"data.js", "axis.js", "timeline.js", "pointing.js", "lists.js", "details.js", "cause.js", "controls.js", "page.js",
}

// The page before and after the data, and its content security policy.
var head, tail, policy = assemble()

func assemble() (head, tail, policy string) {
	var script strings.Builder
	script.WriteString("\n\"use strict\";\n")
	for _, name := range scripts {
		script.WriteString(file(name))
	}
	style := file("style.css")
	// Styles and scripts are named by their hashes: nothing that gets into the page by mistake
	// runs. With trusted types, text cannot become markup.
	policy = strings.Join([]string{
		"default-src 'none'",
		"style-src '" + hash(style) + "'",
		"script-src '" + hash(script.String()) + "'",
		"connect-src 'self'",
		"img-src data:",
		"base-uri 'none'",
		"form-action 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
	replace := strings.NewReplacer("{{policy}}", policy, "{{style}}", style, "{{script}}", script.String())
	page := replace.Replace(file("page.html"))
	head, tail, _ = strings.Cut(page, "{{data}}")
	return head, tail, policy
}

func file(name string) string {
	text, err := fs.ReadFile(files, "page/"+name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// servePage responds with the live page. It asks for its data at the path "events" beside its own,
// and for details at "meetings/{id}".
func servePage(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, head+tail)
}

// write writes the page as one file that needs no server. Details are what a click on a meeting
// opens, by its path in the page.
func write(w io.Writer, state any, details iter.Seq2[string, any]) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out) // it escapes "<", which could end the element around it
	_, _ = out.WriteString(head + `<script type="application/json" id="state">`)
	err := enc.Encode(state)
	if err != nil {
		return err
	}
	// A line for each, so that the page need read one alone.
	_, _ = out.WriteString("</script>\n" + `<script type="application/json" id="details">` + "\n")
	for path, detail := range details {
		err := enc.Encode([2]any{path, detail})
		if err != nil {
			return err
		}
	}
	_, _ = out.WriteString("</script>\n" + tail)
	return out.Flush()
}

// Inspector shows what a service in this process does, live or in a report. It asks its source for
// everything but the actions, which it keeps.
type Inspector struct {
	source  Source
	actions recent.List[action]
}

// New returns an Inspector of a service.
func New(source Source) *Inspector {
	return &Inspector{source: source, actions: recent.List[action]{Max: 1000}}
}

// Report writes the page as one file that needs no server.
func (i *Inspector) Report(w io.Writer, about Test) error {
	var reader reader
	all, _ := reader.read(i)
	all.Test = about
	return write(w, all, i.details(all))
}

// details yields what a click on a meeting opens, by its path in the page.
func (i *Inspector) details(of news) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, m := range of.Meetings {
			if full, ok := i.source.Engine().Meeting(m.ID); ok && !yield("meetings/"+m.ID, full) {
				return
			}
		}
	}
}

// Handler serves the live page, the events that feed it, and what a click opens, to those who name this
// machine as the host.
func (i *Inspector) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /events", i.events)
	mux.HandleFunc("GET /meetings/{id}", func(w http.ResponseWriter, r *http.Request) {
		m, ok := i.source.Engine().Meeting(r.PathValue("id"))
		if !ok {
			http.Error(w, "not kept", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(m)
	})
	return guarded(mux)
}

const (
	// newsInterval is between two reads of the news; longer if a read takes much of the machine.
	newsInterval = 50 * time.Millisecond
	// keepAlive is the longest time between two events.
	keepAlive = 15 * time.Second
)

// events serves the server-sent events that feed the page. The first one is a "state" with
// everything. Each later one is "news" with the changes. It asks for news again and again, so that
// it costs nothing without watchers.
func (i *Inspector) events(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var (
		reader reader
		sent   time.Time
	)
	for {
		began := time.Now()
		found, kind := reader.read(i)
		next := max(newsInterval, min(20*time.Since(began), time.Second)) // so that a page costs little
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
