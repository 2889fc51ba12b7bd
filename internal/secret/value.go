// Package secret keeps API keys and signatures out of everything that people read.
// A [Value] hides a secret of this program. A [Mask] removes secrets from texts that
// come from elsewhere.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Value hides something and shows a text instead: under fmt, slog and JSON.
// Reflection (a test's diff, a debugger's dump) does not reach it either, because it
// follows every pointer but cannot enter a closure.
type Value[T any] struct {
	shown  string
	reveal func() T
}

// Hide returns a Value that hides v and shows the given text.
func Hide[T any](v T, shown string) Value[T] { return Value[T]{shown, func() T { return v }} }

// Reveal returns what the Value hides, and the zero T for the zero Value.
func (v Value[T]) Reveal() (hidden T) {
	if v.reveal != nil {
		hidden = v.reveal()
	}
	return hidden
}

// String, Format, LogValue and MarshalText return the text that is shown, whatever
// the verb or the handler.
func (v Value[T]) String() string               { return v.shown }
func (v Value[T]) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, v.shown) }
func (v Value[T]) LogValue() slog.Value         { return slog.StringValue(v.shown) }
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(v.shown), nil }
