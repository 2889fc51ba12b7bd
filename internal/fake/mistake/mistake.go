// Package mistake is how the in-memory fake reports what its user did wrong, such as a script for a
// meeting that does not exist. It is apart from package minutestest so that minutes-fake, too, can
// distinguish a mistake from any other panic, while no user has to know about it.
package mistake

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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
func (m Mistake) Error() string { return "minutestest: " + m.Method + ": " + InGo(textInGo(m.Err)) }

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

// Name is what JSON and Go call the same thing, such as a kind of fault.
type Name struct{ JSON, Go string }

// Errorf returns an error like fmt.Errorf's. It has JSON's form of each [Name], and a Mistake has Go's.
// The same holds for errors of Errorf among args.
func Errorf(format string, args ...any) error {
	inGo := slices.Clone(args)
	inJSON := slices.Clone(args)
	for i, arg := range args {
		switch arg := arg.(type) {
		case Name:
			inGo[i] = arg.Go
			inJSON[i] = arg.JSON
		case error:
			inGo[i] = textInGo(arg)
		}
	}
	return &inBoth{fmt.Sprintf(format, inJSON...), fmt.Sprintf(format, inGo...)}
}

// inBoth is an error whose text differs in JSON and in Go.
type inBoth struct{ inJSON, inGo string }

func (e *inBoth) Error() string { return e.inJSON }

func textInGo(err error) string {
	if both, ok := errors.AsType[*inBoth](err); ok && both.inJSON == err.Error() {
		return both.inGo
	}
	return err.Error()
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	path      = regexp.MustCompile(`^([A-Z]\w*: )?(([a-z_]+(\[\d+\])?\.)*[a-z_]+(\[\d+\])?: )*`)
	word      = regexp.MustCompile(`\b[a-z]+|_[a-z]+`)
	operation = regexp.MustCompile(`\b(meetings|members|projects|templates|usage|vocabulary)\.[a-z_]+\b`)
	// field is one with an id.
	field = regexp.MustCompile(`\b[a-z]+_ids?\b`)
)

// InGo replaces JSON's names of fields and operations by those of Go, which follow from them: the path
// that each line begins with, operations such as meetings.get, and fields such as member_id. It leaves
// values alone, which are in quotes. What has a name of its own in Go, such as a kind of fault, is a
// [Name].
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
	return field.ReplaceAllStringFunc(text, camel)
}

// initialisms are the words of names that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "ip": "IP", "api": "API", "url": "URL", "html": "HTML"}

// camel joins the words of names as Go does.
func camel(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		w = strings.TrimPrefix(w, "_")
		if short, ok := initialisms[w]; ok {
			return short
		}
		return strings.ToUpper(w[:1]) + w[1:]
	})
}
