package engine

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	minutes "github.com/meeting-minutes/minutes-go"
)

// speech is what is said in a meeting without a script. It has no names, because only minutes have
// any (section 1 of the API reference).
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

// correct replaces the variants in text by their terms, as whole words and in any case. If variants
// overlap, the longest counts.
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

// fact is a line of minutes: a name, and what there is to say about it.
type fact struct{ name, text string }

// minutes writes m's minutes in both formats. Once written, they do not follow a later title (D25).
func (o *organisation) minutes(m *meeting) (markdown, htmlText string) {
	shape := m.template
	if t := o.Template(m.template); t != nil {
		shape = t.Name
	}
	var names []string
	for _, id := range m.participants {
		name := "A former member"
		if p := o.Member(id); p != nil {
			name = p.Name
		}
		names = append(names, name)
	}
	title, s := oneLine(m.title), m.job.seconds
	facts := []fact{
		{"Date", strings.TrimSpace(m.date + " " + m.time)},
		{"Duration", fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)},
		{"Participants", cmp.Or(strings.Join(names, ", "), "not known")},
	}
	said := map[string][]fact{}
	for line := range strings.Lines(m.job.transcript) {
		if line = strings.TrimSpace(line); line != "" {
			f := attribute(line, names)
			said[sectionOf(f.text)] = append(said[sectionOf(f.text)], f)
		}
	}
	md, ht := list(facts)
	markdown = fmt.Sprintf("# %s\n\n*%s*\n\n%s", title, oneLine(shape), md)
	htmlText = fmt.Sprintf("<article>\n<h1>%s</h1>\n<p><em>%s</em></p>\n%s", html.EscapeString(title), html.EscapeString(oneLine(shape)), ht)
	for _, section := range []string{"Summary", "Decisions", "Actions"} {
		md, ht = list(said[section])
		markdown += fmt.Sprintf("\n## %s\n\n%s", section, md)
		htmlText += fmt.Sprintf("<h2>%s</h2>\n%s", section, ht)
	}
	sc := o.state.scripts.of(m)
	return cmp.Or(sc.Markdown, markdown), cmp.Or(sc.HTML, htmlText+"</article>\n")
}

// sectionOf is the section of the minutes in which something that was said belongs.
func sectionOf(text string) string {
	switch {
	case strings.Contains(text, "decided"), strings.Contains(text, "agreed"):
		return "Decisions"
	case strings.Contains(text, " will "):
		return "Actions"
	}
	return "Summary"
}

// attribute reads a line of a transcript, and names its speaker: labels count the participants.
func attribute(line string, names []string) fact {
	label, words, _ := strings.Cut(line, ":")
	number, labelled := strings.CutPrefix(label, "spk_")
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case !labelled || err != nil:
		return fact{"Somebody", line}
	case int(n) < len(names):
		return fact{names[n], words}
	}
	return fact{fmt.Sprintf("Speaker %d", n+1), words}
}

// list writes facts in both formats.
func list(facts []fact) (markdown, htmlText string) {
	if len(facts) == 0 {
		return "None.\n", "<p>None.</p>\n"
	}
	var md, ht strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&md, "- **%s:** %s\n", oneLine(f.name), oneLine(f.text))
		fmt.Fprintf(&ht, "<li><strong>%s:</strong> %s</li>\n", html.EscapeString(oneLine(f.name)), html.EscapeString(oneLine(f.text)))
	}
	return md.String(), "<ul>\n" + ht.String() + "</ul>\n"
}

// oneLine returns a text with single spaces instead of any white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
