package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

var (
	ofTheBar = regexp.MustCompile(`\|([█ ]*)\|`)
	escapes  = regexp.MustCompile("\x1b\\[[0-9]*[A-Z]")
)

// The bar is never empty, and no line is so long that a "^C" would wrap it:
// only its last part could be cleared then.
func TestDisplay_FitsTerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 50, 60, 70, 80, 100, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			d := &display{out: &out, recordings: 100}
			d.startBar(func() int { return columns })
			for range 20 {
				d.begin()
				d.beginUpload(recording{})
				d.sent(123_456_789)
			}
			for range 99 {
				d.end("")
			}
			frames := 0
			for frame := range strings.SplitSeq(out.String(), "\r") {
				frame = strings.TrimRight(escapes.ReplaceAllString(frame, ""), " ")
				if frame == "" {
					continue
				}
				frames++
				assert.LessOrEqual(t, utf8.RuneCountInString(frame)+len("^C"), columns-1, frame)
				if bar := ofTheBar.FindStringSubmatch(frame); assert.NotNil(t, bar, frame) {
					assert.GreaterOrEqual(t, utf8.RuneCountInString(bar[1]), minBar, frame)
				}
			}
			assert.Greater(t, frames, 99)
			out.Reset()
			d.close()
			d.end("")
			assert.Equal(t, "\x1b[2K\r", out.String(), "the bar is cleared, and stays so")
		})
	}
}
