package engine

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// speech is what is said in a meeting without a script. It has no names, because only minutes
// have any (section 1 of the API reference).
var speech = []string{
	"Good morning, everybody is here, so we can begin. Today's subject is %s.",
	"Since last time the groundwork is finished, and the first results look solid.",
	"Good. We decided to keep the date and to drop the optional part.",
	"I will write the summary and send it round by Friday.",
}

// transcript returns the text of m's recording. It never holds a member's id, and the variants of
// the vocabulary have become their terms (D14).
func (o *organisation) transcript(m *meeting) string {
	text := strings.TrimSpace(o.state.scripts.of(m).Transcript)
	if text == "" {
		speakers := cmp.Or(len(m.participants), 2)
		var lines []string
		for i, words := range speech {
			if strings.Contains(words, "%s") {
				words = fmt.Sprintf(words, oneLine(m.title))
			}
			lines = append(lines, fmt.Sprintf("spk_%d: %s", i%speakers, words))
		}
		text = strings.Join(lines, "\n")
	}
	return o.anonymous(correct(text, o.Vocabulary))
}

// anonymous replaces the ids of members, the longest first, because one may begin with another.
func (o *organisation) anonymous(text string) string {
	var found []string
	for i := range o.Members {
		if id := o.Members[i].ID; strings.Contains(text, id) {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, id := range found {
		text = strings.ReplaceAll(text, id, "a colleague")
	}
	return text
}

// correct replaces the variants in text by their terms, as whole words and in any case. If
// variants overlap, the longest counts.
func correct(text string, vocabulary []minutes.VocabularyEntry) string {
	terms, variants := map[string]string{}, []string{}
	for _, e := range vocabulary {
		for _, v := range e.Variants {
			terms[strings.ToLower(v.Text)] = e.Term
			variants = append(variants, v.Text)
		}
	}
	if len(variants) == 0 {
		return text
	}
	slices.SortStableFunc(variants, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for i, v := range variants {
		variants[i] = wordEdge(v[0]) + regexp.QuoteMeta(v) + wordEdge(v[len(v)-1])
	}
	spellings := regexp.MustCompile("(?i)" + strings.Join(variants, "|"))
	return spellings.ReplaceAllStringFunc(text, func(found string) string {
		return cmp.Or(terms[strings.ToLower(found)], found)
	})
}

// wordEdge is the pattern for the edge of a word that begins or ends with c. Package regexp knows
// ASCII words only.
func wordEdge(c byte) string {
	if c == '_' || c < 0x80 && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))) {
		return `\b`
	}
	return ""
}

// document is what minutes hold, in all formats.
type document struct {
	Title, Template, Date, Duration, Participants string
	Turns                                         []turn
}

// turn is what one speaker says at a time.
type turn struct{ Who, Text string }

// minutes writes m's minutes in both formats. Once written, they do not follow a later title
// (D25).
func (o *organisation) minutes(m *meeting) (markdown, html string) {
	sc := o.state.scripts.of(m)
	d := document{Title: oneLine(m.title), Template: oneLine(cmp.Or(o.Template(m.template), &world.Template{Name: m.template}).Name)}
	d.Date = strings.TrimSpace(m.date + " " + m.time)
	d.Duration = fmt.Sprintf("%d:%02d:%02d", m.job.seconds/3600, m.job.seconds/60%60, m.job.seconds%60)
	var names []string
	for _, id := range m.participants {
		name := "A former member"
		if p := o.Member(id); p != nil {
			name = p.Name
		}
		names = append(names, oneLine(name))
	}
	d.Participants = cmp.Or(strings.Join(names, ", "), "not known")
	for line := range strings.Lines(m.job.transcript) {
		if line = strings.TrimSpace(line); line != "" {
			d.Turns = append(d.Turns, turnOf(line, names))
		}
	}
	return cmp.Or(sc.Markdown, render(markdownTemplate, d)), cmp.Or(sc.HTML, render(htmlTemplate, d))
}

// turnOf reads a line of a transcript, and names its speaker: the labels count the participants.
func turnOf(line string, names []string) turn {
	label, words, _ := strings.Cut(line, ":")
	number, labelled := strings.CutPrefix(label, "spk_")
	n, err := strconv.Atoi(number)
	switch {
	case !labelled || err != nil || n < 0:
		return turn{"Somebody", line}
	case n < len(names):
		return turn{names[n], strings.TrimSpace(words)}
	}
	return turn{fmt.Sprintf("Speaker %d", n+1), strings.TrimSpace(words)}
}

var markdownTemplate = template.Must(template.New("").Parse(
	`# {{.Title}}

*{{.Template}}*

- **Date:** {{.Date}}
- **Duration:** {{.Duration}}
- **Participants:** {{.Participants}}

## Summary

{{range .Turns}}- **{{.Who}}:** {{.Text}}
{{end}}`))

var htmlTemplate = template.Must(template.New("").Funcs(template.FuncMap{"text": html.EscapeString}).Parse(
	`<article>
<h1>{{text .Title}}</h1>
<p><em>{{text .Template}}</em></p>
<ul>
<li><strong>Date:</strong> {{.Date}}</li>
<li><strong>Duration:</strong> {{.Duration}}</li>
<li><strong>Participants:</strong> {{text .Participants}}</li>
</ul>
<h2>Summary</h2>
<ul>
{{range .Turns}}<li><strong>{{text .Who}}:</strong> {{text .Text}}</li>
{{end}}</ul>
</article>
`))

// render fills a template, whose faults a test finds.
func render(t *template.Template, d document) string {
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		panic(err)
	}
	return b.String()
}

// oneLine returns a text with single spaces instead of any white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
