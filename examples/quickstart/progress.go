package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// bar shows how far an upload is: a bar on a terminal, plain lines elsewhere.
type bar struct {
	out      io.Writer
	terminal bool
	quarter  int64 // the last one that a line was printed for
}

func newBar(out io.Writer) *bar {
	b := &bar{out: out, quarter: -1}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

func (b *bar) show(sent, total int64) {
	if b.terminal {
		const width = 40
		done := int(sent * width / total)
		bar := strings.Repeat("#", done) + strings.Repeat(".", width-done)
		fmt.Fprintf(b.out, "\rUploading [%s] %3d %%", bar, sent*100/total)
		return
	}
	if q := sent * 4 / total; q != b.quarter {
		b.quarter = q
		fmt.Fprintf(b.out, "Uploading: %d of %d bytes\n", sent, total)
	}
}

func (b *bar) finish() {
	if b.terminal {
		fmt.Fprintln(b.out)
	}
}
