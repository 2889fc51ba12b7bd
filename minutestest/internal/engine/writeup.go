package engine

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"
)

// written is the source of minutes, as it was when they were finished (D25).
// The text is made from it on request.
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

// write returns the source of m's minutes.
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
	out.Markdown = cmp.Or(out.Markdown, d.render(markdownTemplate))
	out.HTML = cmp.Or(out.HTML, d.render(htmlTemplate))
	return out
}

// document is the structure of minutes, for all formats.
type document struct {
	Title    string
	Subtitle string // the template's name
	Purpose  string // the template's description
	Facts    []fact
	Sections []section
}

type fact struct{ Name, Value string }

type section struct {
	Title string
	Items []item
	None  string // instead of items
}

// item is a sentence and its speaker.
type item struct{ Who, Text string }

// document returns the minutes: the participants, a summary, the decisions and
// the actions, in the words of the transcript, each with the name of its
// speaker. The template sets their subtitle and purpose, and its description
// the order of the sections.
func (w *written) document() document {
	d := document{Title: w.title, Subtitle: w.template.Name, Purpose: w.template.Description}
	when := w.date
	if w.time != "" {
		when += ", " + w.time
	}
	d.Facts = append(d.Facts, fact{"Date", when}, fact{"Duration", clockTime(w.seconds)})
	if len(w.participants) > 0 {
		d.Facts = append(d.Facts, fact{"Participants", strings.Join(w.participants, ", ")})
	}

	summary := section{Title: "Summary", None: "Nothing was said."}
	decided := section{Title: "Decisions", None: "No decisions were recorded."}
	promised := section{Title: "Actions", None: "No actions were recorded."}
	for _, t := range w.spoken.turns() {
		who := "Speaker " + strconv.Itoa(t.speaker+1)
		if t.speaker < len(w.participants) { // the labels count speakers in the order in which they appear
			who = w.participants[t.speaker]
		}
		for _, s := range sentences(t.text) {
			switch {
			case strings.HasSuffix(s, "?"):
			case contains(s, decisionPhrases):
				decided.Items = append(decided.Items, item{who, s})
			case contains(s, actionPhrases):
				promised.Items = append(promised.Items, item{who, s})
			case len(summary.Items) < maxSummary:
				summary.Items = append(summary.Items, item{who, s})
			}
		}
	}
	d.Sections = []section{summary, decided, promised}
	wish := strings.ToLower(w.template.Description)
	slices.SortStableFunc(d.Sections, func(a, b section) int { return cmp.Compare(a.rank(wish), b.rank(wish)) })
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

// rank returns the position at which a template's description first names the
// section. Sections that it does not name come last, in their usual order.
func (s section) rank(wish string) int {
	stem := strings.ToLower(strings.TrimSuffix(s.Title, "s"))
	if i := strings.Index(wish, stem); i >= 0 {
		return i
	}
	return len(wish)
}

var (
	decisionPhrases = []string{"decided", "agreed", "the decision is"}
	actionPhrases   = []string{"i will", "i'll", "we will", "we'll", "i am going to", "i'm going to", "action:", "to do:"}
)

// contains reports whether a sentence has one of the phrases as whole words.
func contains(sentence string, phrases []string) bool {
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

// sentences splits a text after ".", "!" and "?" before white space.
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

var markdownTemplate = template.Must(template.New("").Funcs(template.FuncMap{"text": escapeMarkdown}).Parse(
	`# {{text .Title}}

*{{text .Subtitle}}*

{{with .Purpose}}> {{text .}}

{{end}}{{range .Facts}}- **{{.Name}}:** {{text .Value}}
{{end}}{{range .Sections}}
## {{.Title}}

{{range .Items}}- **{{text .Who}}:** {{text .Text}}
{{else}}{{.None}}
{{end}}{{end}}`))

var htmlTemplate = template.Must(template.New("").Funcs(template.FuncMap{"text": escapeHTML}).Parse(
	`<article>
<h1>{{text .Title}}</h1>
<p><em>{{text .Subtitle}}</em></p>
{{with .Purpose}}<blockquote><p>{{text .}}</p></blockquote>
{{end}}<ul>
{{range .Facts}}<li><strong>{{.Name}}:</strong> {{text .Value}}</li>
{{end}}</ul>
{{range .Sections}}<h2>{{.Title}}</h2>
{{if .Items}}<ul>
{{range .Items}}<li><strong>{{text .Who}}:</strong> {{text .Text}}</li>
{{end}}</ul>
{{else}}<p>{{.None}}</p>
{{end}}{{end}}</article>
`))

// render fills a template, whose faults a test finds.
func (d document) render(t *template.Template) string {
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		panic(err)
	}
	return b.String()
}

// oneLine returns a text that fits in a line: with single spaces, and without
// control characters or others that XML cannot hold.
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

// escapeMarkdown escapes only characters that CommonMark would take for markup,
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
