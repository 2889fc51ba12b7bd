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
			text += fmt.Sprintf("spk_%d: %s\n", i%cmp.Or(len(m.ParticipantIDs), 2), strings.ReplaceAll(words, "{title}", oneLine(m.Title)))
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

// template is how minutes are written in a format.
type template struct {
	title, item, heading, none, end string
	escape                          func(string) string
}

var (
	markdownMinutes = template{"# %s\n\n*%s*\n\n", "- **%s:** %s\n", "\n## %s\n\n", "None.\n", "", oneLine}
	htmlMinutes     = template{
		"<article>\n<h1>%s</h1>\n<p><em>%s</em></p>\n<ul>\n", "<li><strong>%s:</strong> %s</li>\n", "</ul>\n<h2>%s</h2>\n<ul>\n", "<li>None.</li>\n",
		"</ul>\n</article>\n", func(s string) string { return html.EscapeString(oneLine(s)) },
	}
)

// section is a part of the minutes. The first one has no heading.
type section struct {
	heading string
	items   []item
}

// item is a line of minutes: a name, and what there is to say about it.
type item struct{ name, text string }

func (t template) write(title, shape string, sections []section) string {
	var b strings.Builder
	fmt.Fprintf(&b, t.title, t.escape(title), t.escape(shape))
	for _, s := range sections {
		if s.heading != "" {
			fmt.Fprintf(&b, t.heading, s.heading)
		}
		for _, i := range s.items {
			fmt.Fprintf(&b, t.item, t.escape(i.name), t.escape(i.text))
		}
		if s.items == nil {
			b.WriteString(t.none)
		}
	}
	return b.String() + t.end
}

// minutes writes m's minutes in both formats. Once written, they do not follow a later title (D25).
func (o *organisation) minutes(m *meeting) (markdown, page string) {
	shape := m.TemplateID
	if t := templateOf(&o.Organisation, m.TemplateID); t != nil {
		shape = t.Name
	}
	var names []string
	for _, id := range m.ParticipantIDs {
		name := "A former member"
		if p := memberOf(&o.Organisation, id); p != nil {
			name = p.Name
		}
		names = append(names, name)
	}
	facts := []item{
		{"Date", m.Date + " " + m.Time},
		{"Duration", fmt.Sprintf("%d:%02d:%02d", m.seconds/3600, m.seconds/60%60, m.seconds%60)},
		{"Participants", cmp.Or(strings.Join(names, ", "), "not known")},
	}
	all, sc := append([]section{{"", facts}}, sections(m.Transcript, names)...), o.service.scripts.of(m)
	return cmp.Or(sc.Markdown, markdownMinutes.write(m.Title, shape, all)), cmp.Or(sc.HTML, htmlMinutes.write(m.Title, shape, all))
}

var spoken = regexp.MustCompile(`^spk_(\d{1,4}):(.*)`)

// sections sorts what was said into the sections of the minutes, and names the speakers: labels
// count the participants.
func sections(transcript string, names []string) []section {
	var summary, decisions, actions []item
	for line := range strings.Lines(transcript) {
		who, words := "Somebody", oneLine(line)
		if label := spoken.FindStringSubmatch(words); label != nil {
			n, _ := strconv.Atoi(label[1])
			who, words = fmt.Sprintf("Speaker %d", n+1), label[2]
			if n < len(names) {
				who = names[n]
			}
		}
		switch {
		case words == "":
		case strings.Contains(words, "decided"), strings.Contains(words, "agreed"):
			decisions = append(decisions, item{who, words})
		case strings.Contains(words, " will "):
			actions = append(actions, item{who, words})
		default:
			summary = append(summary, item{who, words})
		}
	}
	return []section{{"Summary", summary}, {"Decisions", decisions}, {"Actions", actions}}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
