package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlay_MergesFramesWithinATick(t *testing.T) {
	t.Parallel()
	bar, line, after := "\r50% |█ |\x1b[0K", "\x1b[2K\rdone a\r\n", "\r100% |██|\x1b[0K"
	frames, err := play("$ x\n", []byte(bar+line+after), fmt.Sprintf("0.1 %d\n0.01 %d\n2 8\n0 %d\n", len(bar)-2, 2+len(line), len(after)-8))
	require.NoError(t, err)
	// Sequences and characters come in pieces, too.
	require.Equal(t, []frame{
		{0, []string{"$ x"}},
		{600 * time.Millisecond, []string{"$ x", "done a"}}, // text that lasts less than a tick is not shown
		{2610 * time.Millisecond, []string{"$ x", "done a", "100% |██|"}},
	}, frames)

	_, err = play("", []byte("\x1b[1A"), "0 4\n")
	require.ErrorContains(t, err, "ESC [ 1A is not supported")
	_, err = play("", []byte("a"), "0 2\n")
	require.ErrorContains(t, err, "timing")
}

func TestWriteTerminal_DrawsEachFrame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typescript, timing := filepath.Join(dir, "typescript"), filepath.Join(dir, "timing")
	require.NoError(t, os.WriteFile(typescript, []byte("Script started\n\r 0%\x1b[0K\x1b[2K\rFAILED  a & b\r\n1 failed\r\nScript done\n"), 0o600))
	require.NoError(t, os.WriteFile(timing, []byte("0.5 8\n0.5 18\n0.5 11\n"), 0o600))
	var svg strings.Builder
	require.NoError(t, writeTerminal("x <y>", typescript, timing, &svg))
	require.Contains(t, svg.String(), `<title id="title">x &lt;y&gt;, on a terminal</title>`)
	require.Contains(t, svg.String(), ` class="passing" style="animation-name:m0"> 0%</text>`)
	require.Contains(t, svg.String(), ` style="animation-name:m1">FAILED  a &amp; b</text>`)
	decoder := xml.NewDecoder(strings.NewReader(svg.String()))
	var err error
	for err == nil {
		_, err = decoder.Token()
	}
	require.ErrorIs(t, err, io.EOF)
	require.Error(t, writeTerminal("", typescript, "none", &svg))
}
