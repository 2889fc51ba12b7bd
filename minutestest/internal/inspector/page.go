// Package inspector is the page that shows what the service saw, live or after a test: one HTML
// document that loads nothing from elsewhere.
//
// What it shows is whatever a client has sent. The page makes text of it and nothing else, and its
// Content-Security-Policy leaves no other way.
package inspector

import (
	"bufio"
	"bytes"
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
)

//go:embed page
var files embed.FS

// scripts in the order in which they build on each other.
var scripts = []string{"data.js", "axis.js", "timeline.js", "pointing.js", "lists.js", "details.js", "cause.js", "controls.js", "page.js"}

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
	policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		hash(style), hash(script.String()))
	page := strings.NewReplacer("{{policy}}", policy, "{{style}}", style, "{{script}}", script.String()).Replace(file("page.html"))
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
// and for details at "events?request={seq}" and "meetings/{id}".
func servePage(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, head+tail)
}

// write writes the page as one file that needs no server. Details are what a click opens, by its
// path in the page.
func write(w io.Writer, state any, details iter.Seq2[string, any]) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(head)
	if err := data(out, "state", state); err != nil {
		return err
	}
	// A line for each, so that the page need read one alone.
	_, _ = out.WriteString("<script type=\"application/json\" id=\"details\">")
	for path, detail := range details {
		_ = out.WriteByte('\n')
		if err := encode(out, [2]any{path, detail}); err != nil {
			return err
		}
	}
	_, _ = out.WriteString("</script>\n" + tail)
	return out.Flush()
}

func data(out *bufio.Writer, id string, value any) error {
	fmt.Fprintf(out, "<script type=\"application/json\" id=%q>", id)
	if err := encode(out, value); err != nil {
		return err
	}
	_, _ = out.WriteString("</script>\n")
	return nil
}

// encode writes JSON without a "<", which could end the element around it.
func encode(out *bufio.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if bytes.IndexByte(text, '<') >= 0 {
		return fmt.Errorf("inspector: %T as JSON holds a %q", value, "<")
	}
	_, err = out.Write(text)
	return err
}
