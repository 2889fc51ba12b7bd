package engine

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// written is what the minutes are made from. It is taken when they are
// finished and does not change any more (D25); the text is made from it when
// somebody asks.
type written struct {
	spoken       *spoken
	title        string
	date         string
	time         string
	seconds      int      // of the recording
	participants []string // names, in the order of the meeting's participant ids
	template     *Template
	scripted     Minutes
}

// write notes what m's minutes are made from.
func (o *organisation) write(m *meeting) *written {
	w := &written{spoken: m.job.spoken, title: m.title, date: m.date, time: m.time, seconds: m.job.seconds, template: o.templates[m.template], scripted: o.world.scripts.of(m).Minutes}
	for _, id := range m.participants {
		name := "A former member"
		if p := o.members[id]; p != nil {
			name = p.Name
		}
		w.participants = append(w.participants, name)
	}
	if w.template == nil {
		w.template = o.defaultTemplate
	}
	return w
}

// minutes renders both formats from one document.
func (w *written) minutes() Minutes {
	out := w.scripted
	if out.Markdown != "" && out.HTML != "" {
		return out
	}
	d := w.document()
	out.Markdown = cmp.Or(out.Markdown, d.markdown())
	out.HTML = cmp.Or(out.HTML, d.html())
	return out
}

// document is the structure of minutes, whatever the format.
type document struct {
	title    string
	subtitle string // the template's name
	purpose  string // the template's description
	facts    []fact
	sections []section
}

type fact struct{ name, value string }

type section struct {
	title string
	items []item
	none  string // what stands there without items
}

// item is a sentence and who said it; who may be "".
type item struct{ who, text string }

// document makes the minutes: who attended, what was said, decided and
// promised, in the words of the transcript, each with the name of its
// speaker. The template gives the minutes their subtitle and purpose, and its
// description the order of the sections.
func (w *written) document() document {
	d := document{title: w.title, subtitle: w.template.Name, purpose: w.template.Description}
	when := w.date
	if w.time != "" {
		when += ", " + w.time
	}
	d.facts = append(d.facts, fact{"Date", when}, fact{"Duration", clockTime(w.seconds)})
	if len(w.participants) > 0 {
		d.facts = append(d.facts, fact{"Participants", strings.Join(w.participants, ", ")})
	}

	summary := section{title: "Summary", none: "Nothing was said."}
	decided := section{title: "Decisions", none: "No decisions were recorded."}
	promised := section{title: "Actions", none: "No actions were recorded."}
	for _, t := range w.spoken.turns() {
		who := "Speaker " + strconv.Itoa(t.speaker+1)
		if t.speaker < len(w.participants) { // the labels count speakers in the order in which they appear
			who = w.participants[t.speaker]
		}
		for _, s := range sentences(t.text) {
			switch {
			case strings.HasSuffix(s, "?"):
			case says(s, decisionPhrases):
				decided.items = append(decided.items, item{who, s})
			case says(s, actionPhrases):
				promised.items = append(promised.items, item{who, s})
			case len(summary.items) < maxSummary:
				summary.items = append(summary.items, item{who, s})
			}
		}
	}
	d.sections = []section{summary, decided, promised}
	wish := strings.ToLower(w.template.Description)
	slices.SortStableFunc(d.sections, func(a, b section) int { return cmp.Compare(a.rank(wish), b.rank(wish)) })
	return d
}

// clockTime is a duration as 1:02:03, or as 2:03 below an hour.
func clockTime(seconds int) string {
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// maxSummary keeps the summary of a long meeting short.
const maxSummary = 6

// rank is where a template's description first speaks of a section; those it
// does not speak of come last, in their usual order.
func (s section) rank(wish string) int {
	stem := strings.ToLower(strings.TrimSuffix(s.title, "s"))
	if i := strings.Index(wish, stem); i >= 0 {
		return i
	}
	return len(wish)
}

var (
	decisionPhrases = []string{"decided", "agreed", "the decision is"}
	actionPhrases   = []string{"i will", "i'll", "we will", "we'll", "i am going to", "i'm going to", "action:", "to do:"}
)

// says reports whether a sentence holds one of the phrases as whole words.
func says(sentence string, phrases []string) bool {
	s := " " + strings.ReplaceAll(strings.ToLower(sentence), "’", "'") + " "
	for _, p := range phrases {
		for i := 0; ; {
			at := strings.Index(s[i:], p)
			if at < 0 {
				break
			}
			i += at
			before, after := rune(s[i-1]), rune(s[i+len(p)])
			if !wordRune(before) && (!wordRune(after) || strings.HasSuffix(p, ":")) {
				return true
			}
			i++
		}
	}
	return false
}

// sentences cuts a text behind ".", "!" and "?" where white space follows.
func sentences(text string) []string {
	var list []string
	start := 0
	for i := range len(text) {
		if strings.IndexByte(".!?", text[i]) >= 0 && (i+1 == len(text) || text[i+1] == ' ') {
			list = append(list, strings.TrimSpace(text[start:i+1]))
			start = i + 1
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		list = append(list, rest)
	}
	return list
}

func (d document) markdown() string {
	var b strings.Builder
	b.WriteString("# " + escapeMarkdown(d.title) + "\n\n*" + escapeMarkdown(d.subtitle) + "*\n\n")
	if d.purpose != "" {
		b.WriteString("> " + escapeMarkdown(d.purpose) + "\n\n")
	}
	for _, f := range d.facts {
		b.WriteString("- **" + f.name + ":** " + escapeMarkdown(f.value) + "\n")
	}
	for _, s := range d.sections {
		b.WriteString("\n## " + s.title + "\n\n")
		if len(s.items) == 0 {
			b.WriteString(s.none + "\n")
		}
		for _, i := range s.items {
			b.WriteString("- **" + escapeMarkdown(i.who) + ":** " + escapeMarkdown(i.text) + "\n")
		}
	}
	return b.String()
}

func (d document) html() string {
	var b strings.Builder
	b.WriteString("<article>\n<h1>" + escapeHTML(d.title) + "</h1>\n<p><em>" + escapeHTML(d.subtitle) + "</em></p>\n")
	if d.purpose != "" {
		b.WriteString("<blockquote><p>" + escapeHTML(d.purpose) + "</p></blockquote>\n")
	}
	b.WriteString("<ul>\n")
	for _, f := range d.facts {
		b.WriteString("<li><strong>" + f.name + ":</strong> " + escapeHTML(f.value) + "</li>\n")
	}
	b.WriteString("</ul>\n")
	for _, s := range d.sections {
		b.WriteString("<h2>" + s.title + "</h2>\n")
		if len(s.items) == 0 {
			b.WriteString("<p>" + s.none + "</p>\n")
			continue
		}
		b.WriteString("<ul>\n")
		for _, i := range s.items {
			b.WriteString("<li><strong>" + escapeHTML(i.who) + ":</strong> " + escapeHTML(i.text) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</article>\n")
	return b.String()
}

// oneLine makes a text safe to stand within a line: white space is single,
// control characters and what no XML can hold are gone.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == 0xfffe, r == 0xffff:
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func escapeHTML(s string) string { return html.EscapeString(oneLine(s)) }

// escapeMarkdown escapes what CommonMark would take for markup, and no more,
// so that plain text stays readable.
func escapeMarkdown(s string) string {
	s = oneLine(s)
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch c {
		case '\\', '`', '*', '[', ']', '<', '~', '|':
			b.WriteByte('\\')
		case '_': // within a word it is plain
			if i == 0 || i+1 == len(s) || !wordRune(rune(s[i-1])) || !wordRune(rune(s[i+1])) {
				b.WriteByte('\\')
			}
		case '&': // may begin an entity
			if i+1 < len(s) && s[i+1] != ' ' && strings.IndexByte(s[i:], ';') > 0 {
				b.WriteByte('\\')
			}
		case '#', '>', '+', '-', '=': // at the beginning of a line
			if i == 0 {
				b.WriteByte('\\')
			}
		case '.', ')': // "1." begins a list
			if i > 0 && strings.Trim(s[:i], "0123456789") == "" {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
