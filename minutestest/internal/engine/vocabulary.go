package engine

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// getVocabulary returns the vocabulary, with [] for a list of nothing.
func (o *organisation) getVocabulary() any {
	v := vocabularyJSON{Terms: []string{}, Entries: []entryJSON{}, MaxTerms: o.maxTerms}
	for _, t := range o.vocabulary {
		v.Terms = append(v.Terms, t.Term)
		v.Entries = append(v.Entries, entryJSON{t.Term, append([]Variant{}, t.Variants...)})
	}
	return v
}

// replaceVocabulary keeps the variants of terms that stay (D20).
func (c *call) replaceVocabulary() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	given, found := f.list("terms")
	if !found {
		f.fault("terms", nil)
	}
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	variants := map[string][]Variant{}
	for _, t := range o.vocabulary {
		variants[t.Term] = t.Variants
	}
	terms, seen := []Term{}, map[string]bool{}
	for _, t := range given {
		t = strings.TrimSpace(t)
		if t == "" {
			f.fault("terms", nil)
		}
		if !seen[t] {
			seen[t] = true
			terms = append(terms, Term{t, variants[t]})
		}
	}
	if len(terms) > o.maxTerms {
		f.fault("terms", nil)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	o.vocabulary = terms
	return o.getVocabulary(), nil
}

func (c *call) addTerm() (any, *apiError) {
	f, err := c.body()
	if err != nil {
		return nil, err
	}
	term, _ := f.text("term")
	if term = strings.TrimSpace(term); term == "" {
		f.fault("term", nil)
	}
	o := c.org
	o.lock(c.now)
	defer o.unlock()
	known := slices.ContainsFunc(o.vocabulary, func(t Term) bool { return t.Term == term })
	if !known && len(o.vocabulary) >= o.maxTerms {
		f.fault("term", nil)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	if known { // D15
		c.status = http.StatusOK
	} else {
		// Transcripts keep the list as it was: append to a copy.
		o.vocabulary = append(slices.Clip(o.vocabulary), Term{Term: term})
	}
	return o.getVocabulary(), nil
}

// correct replaces the variants in text by their terms, as whole words and in
// any case (D14). If variants overlap, the longest counts.
func correct(text string, terms []Term) string {
	type spelling struct{ variant, term string }
	byFirst := map[rune][]spelling{}
	for _, t := range terms {
		for _, v := range t.Variants {
			if v.Text != "" {
				r, _ := utf8.DecodeRuneInString(v.Text)
				r = fold(r)
				byFirst[r] = append(byFirst[r], spelling{v.Text, t.Term})
			}
		}
	}
	if len(byFirst) == 0 {
		return text
	}
	var b strings.Builder
	before := ' '
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		best, length := spelling{}, 0
		for _, s := range byFirst[fold(r)] {
			first, _ := utf8.DecodeRuneInString(s.variant)
			if wordRune(before) && wordRune(first) {
				continue
			}
			if n := prefixFold(text[i:], s.variant); n > length {
				best, length = s, n
			}
		}
		if length > 0 {
			b.WriteString(best.term)
			before, _ = utf8.DecodeLastRuneInString(text[i : i+length])
			i += length
			continue
		}
		b.WriteString(text[i : i+size])
		before = r
		i += size
	}
	return b.String()
}

// prefixFold returns the number of bytes of text that the variant covers, or 0
// if text does not begin with it or continues its last word.
func prefixFold(text, variant string) int {
	i := 0
	var last rune
	for _, v := range variant {
		r, size := utf8.DecodeRuneInString(text[i:])
		if size == 0 || fold(r) != fold(v) {
			return 0
		}
		i += size
		last = r
	}
	if next, _ := utf8.DecodeRuneInString(text[i:]); i < len(text) && wordRune(last) && wordRune(next) {
		return 0
	}
	return i
}

func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
