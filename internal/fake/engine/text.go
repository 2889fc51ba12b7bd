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
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// speech has the sentences of a meeting without a script. It has no names, because only minutes
// have any (section 1 of the API reference).
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
		speakers := cmp.Or(len(m.ParticipantIDs), 2)
		for i, words := range speech {
			words = strings.ReplaceAll(words, "{title}", oneLine(m.Title))
			text += fmt.Sprintf("spk_%d: %s\n", i%speakers, words)
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
	said := strings.ToLower(text)
	terms := map[string]string{}
	var variants []string
	for _, e := range vocabulary {
		for _, v := range e.Variants {
			variant := strings.ToLower(v.Text)
			if !strings.Contains(said, variant) {
				continue // most texts have none, and compiling a pattern takes long
			}
			terms[variant] = e.Term
			last := len(v.Text) - 1
			variants = append(variants, wordEdge(v.Text[0])+regexp.QuoteMeta(v.Text)+wordEdge(v.Text[last]))
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

// text is what minutes say, in any format.
type text struct {
	Title    string
	Template string
	Facts    []item
	Sections []section
}

// section is a part of the minutes.
type section struct {
	Heading string
	Items   []item
}

// item is a name, and what there is to say about it.
type item struct {
	Name string
	Text string
}

// markdown writes minutes in Markdown. This and [text.html] use no package template, because that
// makes each program half as large again: with it, the linker has to keep every exported method.
func (t text) markdown() string {
	var b strings.Builder
	write := func(i item) { fmt.Fprintf(&b, "- **%s:** %s\n", i.Name, i.Text) }
	fmt.Fprintf(&b, "# %s\n\n*%s*\n\n", t.Title, t.Template)
	for _, fact := range t.Facts {
		write(fact)
	}
	for _, s := range t.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Heading)
		for _, i := range s.Items {
			write(i)
		}
		if len(s.Items) == 0 {
			b.WriteString("None.\n")
		}
	}
	return b.String()
}

// html writes the same in HTML.
func (t text) html() string {
	var b strings.Builder
	write := func(i item) {
		fmt.Fprintf(&b, "<li><strong>%s:</strong> %s</li>\n", html.EscapeString(i.Name), html.EscapeString(i.Text))
	}
	b.WriteString("<article>\n")
	fmt.Fprintf(&b, "<h1>%s</h1>\n<p><em>%s</em></p>\n", html.EscapeString(t.Title), html.EscapeString(t.Template))
	b.WriteString("<ul>\n")
	for _, fact := range t.Facts {
		write(fact)
	}
	b.WriteString("</ul>\n")
	for _, s := range t.Sections {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<ul>\n", s.Heading)
		for _, i := range s.Items {
			write(i)
		}
		if len(s.Items) == 0 {
			b.WriteString("<li>None.</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</article>\n")
	return b.String()
}

// minutes writes m's minutes in both formats. Once written, they do not follow a later title (D25).
func (o *organisation) minutes(m *meeting) (markdown, html string) {
	sc := o.service.scripts.of(m)
	t := o.text(m)
	return cmp.Or(sc.Markdown, t.markdown()), cmp.Or(sc.HTML, t.html())
}

func (o *organisation) text(m *meeting) text {
	template := m.TemplateID
	known := templateOf(&o.Organisation, m.TemplateID)
	if known != nil {
		template = known.Name
	}
	var names []string
	for _, id := range m.ParticipantIDs {
		name := "A former member"
		p := memberOf(&o.Organisation, id)
		if p != nil {
			name = oneLine(p.Name)
		}
		names = append(names, name)
	}
	return text{
		Title:    oneLine(m.Title),
		Template: oneLine(template),
		Facts: []item{
			{"Date", oneLine(m.Date + " " + m.Time)},
			{"Duration", fmt.Sprintf("%d:%02d:%02d", m.seconds/3600, m.seconds/60%60, m.seconds%60)},
			{"Participants", cmp.Or(strings.Join(names, ", "), "not known")},
		},
		Sections: sections(m.Transcript, names),
	}
}

// labelled is a line of a transcript that says who speaks.
var labelled = regexp.MustCompile(`^spk_(\d{1,4}):(.*)`)

// spoken returns who says a line of a transcript, and what. Labels count the participants.
func spoken(words string, names []string) item {
	label := labelled.FindStringSubmatch(words)
	if label == nil {
		return item{"Somebody", words}
	}
	n, _ := strconv.Atoi(label[1])
	said := oneLine(label[2])
	if n < len(names) {
		return item{names[n], said}
	}
	return item{fmt.Sprintf("Speaker %d", n+1), said}
}

// sections sorts the transcript into the sections of the minutes, and names the speakers.
func sections(transcript string, names []string) []section {
	var summary, decisions, actions []item
	for words := range strings.Lines(transcript) {
		said := spoken(oneLine(words), names)
		switch {
		case said.Text == "":
		case strings.Contains(said.Text, "decided"), strings.Contains(said.Text, "agreed"):
			decisions = append(decisions, said)
		case strings.Contains(said.Text, " will "):
			actions = append(actions, said)
		default:
			summary = append(summary, said)
		}
	}
	return []section{{"Summary", summary}, {"Decisions", decisions}, {"Actions", actions}}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
