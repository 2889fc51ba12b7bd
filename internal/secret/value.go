// Package secret keeps API keys and signatures out of logs, errors and printed values.
// A [Value] hides a secret of this program. A [Mask] removes secrets from foreign texts.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Value hides a value. fmt, slog and JSON show a text instead. A closure holds the value, so
// reflection (a test's diff, a debugger's dump) does not find it either.
type Value[T any] struct {
	shown  string
	reveal func() T
}

// Hide returns a Value that hides v and shows a text instead.
func Hide[T any](v T, shown string) Value[T] { return Value[T]{shown, func() T { return v }} }

// Reveal returns the hidden value. For the zero Value, it returns the zero T.
func (v Value[T]) Reveal() (hidden T) {
	if v.reveal != nil {
		hidden = v.reveal()
	}
	return hidden
}

// String, Format, LogValue and MarshalText show the text for every verb and handler.
func (v Value[T]) String() string               { return v.shown }
func (v Value[T]) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, v.shown) }
func (v Value[T]) LogValue() slog.Value         { return slog.StringValue(v.shown) }
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(v.shown), nil }
