// Package mistake is how the in-memory fake reports what its user did wrong, such as a script for a
// meeting that does not exist. It is apart from package minutestest so that minutes-fake, too, can
// distinguish a mistake from any other panic, while no user has to know about it.
package mistake

import (
	"errors"
	"fmt"
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
func (m Mistake) Error() string { return "minutestest: " + m.Method + ": " + textInGo(m.Err) }

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

// At returns an error about a field, which is named as in JSON.
func At(field, format string, args ...any) error {
	return Errorf("%s: %s", Field(field), Errorf(format, args...))
}

// Errorf returns an error like fmt.Errorf's. It has JSON's form of each [Name], and a Mistake has Go's.
// The same holds for errors of this package among args.
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

// Join returns an error with a line for each of errs, or nil if there is none.
func Join(errs ...error) error {
	if len(errs) == 0 {
		return nil
	}
	return Errorf("%s"+strings.Repeat("\n%s", len(errs)-1), anyOf(errs)...)
}

func anyOf[T any](list []T) (all []any) {
	for _, element := range list {
		all = append(all, element)
	}
	return all
}

// inBoth is an error whose text differs in JSON and in Go.
type inBoth struct{ inJSON, inGo string }

func (e *inBoth) Error() string { return e.inJSON }

// textInGo returns the text of an error with Go's names, if this package made it.
func textInGo(err error) string {
	both, ok := errors.AsType[*inBoth](err)
	if ok && both.inJSON == err.Error() {
		return both.inGo
	}
	return err.Error()
}
