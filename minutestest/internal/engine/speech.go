package engine

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// spoken is the source of a transcript, as it was when transcription completed.
// The text is made from it on request.
type spoken struct {
	title    string
	speakers int
	scripted string
	terms    []Term          // as they were then
	people   map[string]bool // ids that may not be in a transcript
}

// turn is one speaker's uninterrupted speech.
type turn struct {
	speaker int
	text    string
}

// transcribe returns the source of m's transcript.
func (o *organisation) transcribe(m *meeting) *spoken {
	s := &spoken{title: m.title, speakers: len(m.participants), scripted: o.world.scripts.of(m).Transcript, terms: o.vocabulary, people: map[string]bool{}}
	o.idsIn(s.scripted, s.people)
	o.idsIn(m.title, s.people)
	for _, t := range s.terms {
		if len(t.Variants) > 0 { // it may come to be said
			o.idsIn(t.Term, s.people)
		}
	}
	return s
}

// idsIn adds the ids of members in a text to found, for a transcript never
// holds one (D14).
func (o *organisation) idsIn(text string, found map[string]bool) {
	known := func(id string) bool { return o.members[id] != nil }
	replaceIDs(text, known, func(id string) string {
		found[id] = true
		return ""
	})
}

// replaceIDs replaces the ids in a text. One in the service's own form is
// found anywhere, another if it is a word.
func replaceIDs(text string, known func(id string) bool, replace func(id string) string) string {
	var b strings.Builder
	for len(text) > 0 {
		n, isID := piece(text, known)
		if isID {
			b.WriteString(replace(text[:n]))
		} else {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// longestID bounds the search for an id that begins a longer word.
const longestID = 128

// piece returns the length of the id that text begins with, or of the text
// before the next position at which an id can begin.
func piece(text string, known func(id string) bool) (n int, isID bool) {
	between := func(r rune) bool { return !wordRune(r) && r != '-' }
	end := strings.IndexFunc(text, between)
	switch {
	case end == 0:
		if end = strings.IndexFunc(text, func(r rune) bool { return !between(r) }); end < 0 {
			end = len(text)
		}
		return end, false
	case end < 0:
		end = len(text)
	}
	word := text[:end]
	if known(word) {
		return end, true
	}
	own := strings.HasPrefix(word, memberPrefix)
	for i := min(end-1, longestID); own && i > len(memberPrefix); i-- {
		if known(word[:i]) {
			return i, true
		}
	}
	for i := 1; i < end; i++ {
		if !own && word[i] == '-' || word[i-1] == '-' || strings.HasPrefix(word[i:], memberPrefix) {
			return i, known(word[:i])
		}
	}
	return end, false
}

// transcript returns the plain text: a line for each turn, with a label that
// only distinguishes the speakers.
func (s *spoken) transcript() string {
	var b strings.Builder
	for i, t := range s.turns() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("spk_")
		b.WriteString(strconv.Itoa(t.speaker))
		b.WriteString(": ")
		b.WriteString(t.text)
	}
	return b.String()
}

// turns returns the turns, with the terms of the vocabulary corrected.
func (s *spoken) turns() []turn {
	var turns []turn
	if s.scripted != "" {
		turns = parseTurns(s.scripted)
	} else {
		turns = speech(s.title, s.speakers)
	}
	for i := range turns {
		turns[i].text = s.anonymous(correct(turns[i].text, s.terms))
	}
	return turns
}

func (s *spoken) anonymous(text string) string {
	known := func(id string) bool { return s.people[id] }
	return replaceIDs(text, known, func(string) string { return "a colleague" })
}

// parseTurns reads lines of "spk_0: words". A line without a label continues
// the turn before it, or begins the first speaker's.
func parseTurns(script string) []turn {
	var turns []turn
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		label, words, found := strings.Cut(line, ":")
		number, isLabel := strings.CutPrefix(label, "spk_")
		if n, err := strconv.ParseUint(number, 10, 64); found && isLabel && err == nil && len(number) < 5 {
			turns = append(turns, turn{int(n), strings.TrimSpace(words)})
			continue
		}
		if len(turns) == 0 {
			turns = append(turns, turn{})
		}
		last := &turns[len(turns)-1]
		last.text = strings.TrimSpace(last.text + " " + line)
	}
	return turns
}

const maxSpeakers = 8

// speech returns a short meeting about a title, the same every time. It
// contains no names: only minutes hold names (section 1 of the interface).
func speech(title string, speakers int) []turn {
	if speakers == 0 {
		speakers = 2
	}
	speakers = min(speakers, maxSpeakers)
	h := fnv.New64a()
	h.Write([]byte(title))
	n := h.Sum64() ^ uint64(speakers)
	pick := func(from []string) string {
		s := from[n%uint64(len(from))]
		n = n*6364136223846793005 + 1442695040888963407
		return s
	}
	who := 0
	var turns []turn
	say := func(text string) {
		turns = append(turns, turn{who % speakers, text})
		who++
	}
	about := strings.Join(strings.Fields(title), " ")
	say(pick(openings) + " Today's subject is " + about + ". " + pick(aims))
	say(pick(reports))
	say(pick(questions))
	say(pick(answers))
	say(pick(decisions))
	for range min(speakers, 3) {
		say(pick(actions))
	}
	say(pick(closings))
	return turns
}

var (
	openings = []string{
		"Good morning, everybody is here, so we can begin.",
		"Hello and thanks for making the time.",
		"Welcome back, I have started the recording.",
	}
	aims = []string{
		"We have half an hour and I would like to leave with a plan.",
		"First a look at where we stand, then the open points.",
		"The aim is to settle the open questions and share out the work.",
	}
	reports = []string{
		"Since last time the groundwork is finished and the first results look solid.",
		"We are two days behind the plan, mostly because the review took longer than expected.",
		"The numbers of last week are in, and they are a little better than we had hoped.",
	}
	questions = []string{
		"What is the largest risk that is left?",
		"Is there anything that stands in the way of the date we promised?",
		"Do we know what it will cost us in the end?",
	}
	answers = []string{
		"The budget holds, but only if we keep the scope as it is.",
		"The one thing that worries me is the hand-over, nobody has written it down yet.",
		"As far as I can see the date is safe, with one week to spare.",
	}
	decisions = []string{
		"Then it is settled. We decided to keep the date and drop the optional part.",
		"Good. We agreed to start with a small group and widen it after a week.",
		"So we have decided to put quality first and move the review to Thursday.",
	}
	actions = []string{
		"I will write the summary and send it round by Friday.",
		"I'll prepare the figures for the next meeting.",
		"I will talk to the other team and clear up the open question.",
		"I'll book the room and invite everybody for next week.",
		"Let's check the plan again on Monday, I will put it on the agenda.",
	}
	closings = []string{
		"Thank you all, that was quick. See you next week.",
		"That is all from my side, thanks for the good discussion.",
		"Very good, then we are done for today.",
	}
)
