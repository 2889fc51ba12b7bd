package engine

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// speech is what is said in a meeting without a script. It has no names, because only minutes have
// any (section 1 of the API reference).
var speech = []string{
	"Good morning, everybody is here, so we can begin. Today's subject is {title}.",
	"Since last time the groundwork is finished, and the first results look solid.",
	"Good. We decided to keep the date and to drop the optional part.",
	"I will write the summary and send it round by Friday.",
}

// transcript returns the text of m's recording. It never holds a member's id, and the variants of
// the vocabulary have become their terms (D14).
func (o *organisation) transcript(m *meeting) string {
	text := strings.TrimSpace(o.service.scripts.of(m).Transcript)
	if text == "" {
		for i, words := range speech {
			text += fmt.Sprintf("spk_%d: %s\n", i%cmp.Or(len(m.participants), 2), strings.ReplaceAll(words, "{title}", oneLine(m.title)))
		}
	}
	return o.anonymous(correct(strings.TrimSpace(text), o.Vocabulary))
}

// anonymous replaces the ids of members, the longest first, because one may begin with another.
func (o *organisation) anonymous(text string) string {
	if !strings.Contains(text, memberPrefix) {
		return text
	}
	members := slices.Clone(o.Members)
	slices.SortFunc(members, func(a, b world.Member) int { return cmp.Compare(len(b.ID), len(a.ID)) })
	for _, m := range members {
		text = strings.ReplaceAll(text, m.ID, "a colleague")
	}
	return text
}

// correct replaces the variants in text by their terms, as whole words and in any case. If variants
// overlap, the longest counts.
func correct(text string, vocabulary []minutes.VocabularyEntry) string {
	terms, variants := map[string]string{}, []string{}
	for _, e := range vocabulary {
		for _, v := range e.Variants {
			terms[strings.ToLower(v.Text)] = e.Term
			variants = append(variants, wordEdge(v.Text[0])+regexp.QuoteMeta(v.Text)+wordEdge(v.Text[len(v.Text)-1]))
		}
	}
	if len(variants) == 0 {
		return text
	}
	spellings := regexp.MustCompile("(?i)" + strings.Join(variants, "|"))
	spellings.Longest()
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

// The minutes, one template for each format.
var (
	markdownMinutes = template.Must(template.New("markdown").Parse(`# {{.Title}}

*{{.Template}}*

- **Date:** {{.Date}}
- **Duration:** {{.Duration}}
- **Participants:** {{.Participants}}
{{range .Sections}}
## {{.Name}}

{{range .Said}}- **{{.Who}}:** {{.Words}}
{{else}}None.
{{end}}{{end}}`))

	htmlMinutes = template.Must(template.New("html").Parse(`<article>
<h1>{{html .Title}}</h1>
<p><em>{{html .Template}}</em></p>
<ul>
<li><strong>Date:</strong> {{.Date}}</li>
<li><strong>Duration:</strong> {{.Duration}}</li>
<li><strong>Participants:</strong> {{html .Participants}}</li>
</ul>
{{range .Sections}}<h2>{{.Name}}</h2>
<ul>
{{range .Said}}<li><strong>{{html .Who}}:</strong> {{html .Words}}</li>
{{else}}<li>None.</li>
{{end}}</ul>
{{end}}</article>
`))
)

// section is a part of the minutes: what was said, and by whom.
type section struct {
	Name string
	Said []struct{ Who, Words string }
}

// minutes writes m's minutes in both formats. Once written, they do not follow a later title (D25).
func (o *organisation) minutes(m *meeting) (markdown, html string) {
	shape := m.template
	if t := o.Template(m.template); t != nil {
		shape = t.Name
	}
	var names []string
	for _, id := range m.participants {
		name := "A former member"
		if p := o.Member(id); p != nil {
			name = oneLine(p.Name)
		}
		names = append(names, name)
	}
	seconds := m.job.seconds
	data := map[string]any{
		"Title": oneLine(m.title), "Template": oneLine(shape), "Date": strings.TrimSpace(m.date + " " + m.time),
		"Duration":     fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60),
		"Participants": cmp.Or(strings.Join(names, ", "), "not known"),
		"Sections":     sections(m.job.transcript, names),
	}
	var md, ht strings.Builder
	_, _ = markdownMinutes.Execute(&md, data), htmlMinutes.Execute(&ht, data) // which fit the data
	sc := o.service.scripts.of(m)
	return cmp.Or(sc.Markdown, md.String()), cmp.Or(sc.HTML, ht.String())
}

var spoken = regexp.MustCompile(`^spk_(\d{1,4}):(.*)`)

// sections sorts what was said into the sections of the minutes, and names the speakers: labels
// count the participants.
func sections(transcript string, names []string) []section {
	list := []section{{Name: "Summary"}, {Name: "Decisions"}, {Name: "Actions"}}
	for line := range strings.Lines(transcript) {
		who, words := "Somebody", oneLine(line)
		if label := spoken.FindStringSubmatch(words); label != nil {
			n, _ := strconv.Atoi(label[1])
			who, words = fmt.Sprintf("Speaker %d", n+1), oneLine(label[2])
			if n < len(names) {
				who = names[n]
			}
		}
		into := &list[0]
		switch {
		case words == "":
			continue
		case strings.Contains(words, "decided"), strings.Contains(words, "agreed"):
			into = &list[1]
		case strings.Contains(words, " will "):
			into = &list[2]
		}
		into.Said = append(into.Said, struct{ Who, Words string }{who, words})
	}
	return list
}

// oneLine returns a text with single spaces instead of any white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
