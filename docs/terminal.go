package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// writeTerminal writes the SVG of one recording: its output and its timing.
func writeTerminal(command, typescript, timing string, out io.Writer) error {
	shown, err := os.ReadFile(typescript)
	if err != nil {
		return err
	}
	times, err := os.ReadFile(timing)
	if err != nil {
		return err
	}
	_, shown, _ = bytes.Cut(shown, []byte("\n")) // script's own line
	frames, err := play("$ "+command+"\n", shown, string(times))
	if err == nil {
		_, err = io.WriteString(out, draw(frames))
	}
	return err
}

// frame is the terminal's content from a point in time.
type frame struct {
	at   time.Duration
	rows []string
}

const (
	begin = 500 * time.Millisecond // the command alone
	tick  = 80 * time.Millisecond  // between frames
)

// play returns the frames of the output. Each line of times has a delay in seconds
// and the number of bytes that follow it.
func play(prompt string, shown []byte, times string) ([]frame, error) {
	s := &screen{}
	if err := s.write(prompt); err != nil {
		return nil, err
	}
	frames := []frame{{0, s.rows()}}
	now := begin
	for line := range strings.Lines(times) {
		var seconds float64
		var n int
		if _, err := fmt.Sscan(line, &seconds, &n); err != nil || n > len(shown) {
			return nil, fmt.Errorf("timing: %q", line)
		}
		now += time.Duration(seconds * float64(time.Second))
		if err := s.write(string(shown[:n])); err != nil {
			return nil, err
		}
		shown = shown[n:]
		if last := &frames[len(frames)-1]; now-last.at < tick {
			last.rows = s.rows()
		} else {
			frames = append(frames, frame{now, s.rows()})
		}
	}
	return frames, nil
}

// screen is a terminal with the few features that a progress bar needs.
type screen struct {
	lines    [][]rune
	row, col int
	begun    string // an incomplete character or escape sequence
}

func (s *screen) write(text string) error {
	text, s.begun = s.begun+text, ""
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				s.begun = text
				return nil
			}
			switch rest[:end+1] {
			case "K", "0K":
				s.line(s.col)
				s.lines[s.row] = s.lines[s.row][:s.col]
			case "2K":
				s.line(0)
				s.lines[s.row] = nil
			default:
				return fmt.Errorf("ESC [ %s is not supported", rest[:end+1])
			}
			text = rest[end+1:]
			continue
		}
		if text == "\x1b" || !utf8.FullRuneInString(text) {
			s.begun = text
			return nil
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.line(0)
			s.row, s.col = s.row+1, 0
		default:
			s.line(s.col + 1)
			s.lines[s.row][s.col] = r
			s.col++
		}
	}
	return nil
}

// line makes the current line at least this long.
func (s *screen) line(length int) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	for len(s.lines[s.row]) < length {
		s.lines[s.row] = append(s.lines[s.row], ' ')
	}
}

func (s *screen) rows() []string {
	rows := make([]string, 0, len(s.lines))
	for _, line := range s.lines {
		rows = append(rows, strings.TrimRight(string(line), " "))
	}
	return rows
}

const (
	fontSize, charWidth, rowHeight = 13, 7.83, 18
	margin, bar                    = 16, 34          // bar: that of the window
	pause                          = 5 * time.Second // after the last frame
)

const terminalHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%[3]d">
<title id="title">%[4]s</title>
<style>
.window { fill: #f6f8fa; stroke: #d1d9e0 } text { fill: #24292f; white-space: pre } .dot { fill: #d1d9e0 }
@media (prefers-color-scheme: dark) { .window { fill: #161b22; stroke: #3d444d } text { fill: #e6edf3 } .dot { fill: #3d444d } }
.passing { opacity: 0 } text { animation: steps(1, end) infinite %[5]s }
@media (prefers-reduced-motion: reduce) { text { animation: none !important } }
%[6]s</style>
<rect class="window" x="0.5" y="0.5" width="%[7]d" height="%[8]d" rx="8"/><g class="dot"><circle cx="20" cy="18" r="5.5"/><circle cx="38" cy="18" r="5.5"/><circle cx="56" cy="18" r="5.5"/></g>
`

// draw animates the rows of the frames: each is visible while the terminal showed
// it. Without animation, the picture shows the last frame.
func draw(frames []frame) string {
	last := frames[len(frames)-1]
	total := last.at + pause
	longest, most := 0, 0
	for _, f := range frames {
		most = max(most, len(f.rows))
		for _, row := range f.rows {
			longest = max(longest, len([]rune(row)))
		}
	}
	var motions []string // a name for each part of the time
	var texts strings.Builder
	for row := range most {
		for i := 0; i < len(frames); {
			text, from := frames[i].row(row), i
			for i < len(frames) && frames[i].row(row) == text {
				i++
			}
			if text == "" {
				continue
			}
			until := 100.0
			if i < len(frames) {
				until = percent(frames[i].at, total)
			}
			fmt.Fprintf(&texts, `<text x="%d" y="%d"`, margin, bar+margin+row*rowHeight)
			if i < len(frames) {
				texts.WriteString(` class="passing"`)
			}
			if from > 0 || i < len(frames) {
				motion := keyframes(percent(frames[from].at, total), until)
				n := slices.Index(motions, motion)
				if n < 0 {
					n = len(motions)
					motions = append(motions, motion)
				}
				fmt.Fprintf(&texts, ` style="animation-name:m%d"`, n)
			}
			fmt.Fprintf(&texts, ">%s</text>\n", html.EscapeString(text))
		}
	}
	var styles strings.Builder
	for n, motion := range motions {
		fmt.Fprintf(&styles, "@keyframes m%d %s\n", n, motion)
	}
	width := 2*margin + int(float64(longest)*charWidth+1)
	height := bar + margin + most*rowHeight
	seconds := strconv.FormatFloat(total.Seconds(), 'f', 2, 64) + "s"
	return fmt.Sprintf(terminalHead, width, height, fontSize, html.EscapeString(strings.TrimPrefix(last.row(0), "$ ")+", on a terminal"), seconds, styles.String(), width-1, height-1) +
		texts.String() + "</svg>\n"
}

func (f frame) row(n int) string {
	if n < len(f.rows) {
		return f.rows[n]
	}
	return ""
}

func percent(at, total time.Duration) float64 { return 100 * float64(at) / float64(total) }

// keyframes returns the CSS that shows an element between two times, in percent.
func keyframes(from, until float64) string {
	var b strings.Builder
	b.WriteString("{ ")
	if from > 0 {
		b.WriteString("0% { opacity: 0 } ")
	}
	fmt.Fprintf(&b, "%.2f%% { opacity: 1 } ", from)
	if until < 100 {
		fmt.Fprintf(&b, "%.2f%%, 100%% { opacity: 0 } ", until)
	} else {
		b.WriteString("100% { opacity: 1 } ")
	}
	return b.String() + "}"
}
