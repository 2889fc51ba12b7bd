// Package mistake is how the in-memory fake reports what its user did wrong, such as a script for a
// meeting that does not exist. It is apart from package minutestest so that minutes-fake, too, can
// distinguish a mistake from any other panic, while no user has to know about it.
package mistake

import (
	"regexp"
	"strings"
)

// Mistake is what a Server without a test panics with.
type Mistake struct {
	// Method is the method of the Server, or the function, that was called.
	Method string
	// Err is the reason. It has JSON's names for things, because worlds, scripts and faults are
	// mostly sent as JSON where nobody reads Go.
	Err error
}

// Error returns the text for people who call the method, so with Go's names.
func (m Mistake) Error() string { return "minutestest: " + m.Method + ": " + InGo(m.Err.Error()) }

// Unwrap returns the reason, with JSON's names.
func (m Mistake) Unwrap() error { return m.Err }

// Catch calls f, and returns the reason if f panics with a Mistake.
func Catch(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case Mistake:
			err = v.Err
		default:
			panic(v)
		}
	}()
	f()
	return nil
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	path      = regexp.MustCompile(`^(([a-z_]+(\[\d+\])?\.)*[a-z_]+(\[\d+\])?: )+`)
	word      = regexp.MustCompile(`[a-z]+`)
	operation = regexp.MustCompile(`\b(meetings|members|projects|templates|usage|vocabulary)\.[a-z_]+\b`)
	// name is a field with an id, or a kind of fault.
	name = regexp.MustCompile(`\b([a-z]+_ids?|(reset|slow|refuse)_upload|rate_limit|show_status|` +
		`bad_certificate|connection_refused|no_such_host)\b`)
)

// InGo replaces JSON's names for things by those of Go: the path that each line begins with,
// operations such as meetings.get, fields such as member_id, and kinds of faults. It leaves values
// alone, which are in quotes.
func InGo(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		begins := path.FindString(line)
		lines[i] = camel(begins) + outsideQuotes(line[len(begins):])
	}
	return strings.Join(lines, "\n")
}

func outsideQuotes(text string) string {
	var b strings.Builder
	rest := 0
	for _, at := range quoted.FindAllStringIndex(text, -1) {
		b.WriteString(namesInGo(text[rest:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		rest = at[1]
	}
	b.WriteString(namesInGo(text[rest:]))
	return b.String()
}

func namesInGo(text string) string {
	text = strings.ReplaceAll(text, "storage.put", "minutes.OpUpload")
	text = operation.ReplaceAllStringFunc(text, func(name string) string {
		return "minutes.Op" + camel(strings.ReplaceAll(name, ".", "_"))
	})
	return name.ReplaceAllStringFunc(text, camel)
}

// initialisms are the words of names that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "ip": "IP", "api": "API", "url": "URL", "html": "HTML"}

// camel joins the words of names as Go does.
func camel(text string) string {
	text = word.ReplaceAllStringFunc(text, func(w string) string {
		if short, ok := initialisms[w]; ok {
			return short
		}
		return strings.ToUpper(w[:1]) + w[1:]
	})
	return strings.ReplaceAll(text, "_", "")
}
