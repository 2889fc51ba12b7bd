package engine

import (
	"net/http"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
)

// getVocabulary returns the vocabulary, with [] for a list of nothing.
func (c *call) getVocabulary() (any, *apiError) {
	o := c.org
	v := minutes.Vocabulary{Terms: []string{}, Entries: append([]minutes.VocabularyEntry{}, o.Vocabulary...), MaxTerms: *o.MaxTerms}
	for _, e := range o.Vocabulary {
		v.Terms = append(v.Terms, e.Term)
	}
	return v, nil
}

// replaceVocabulary keeps the variants of terms that stay (D20).
func (c *call) replaceVocabulary() (any, *apiError) {
	f, o := c.form, c.org
	given, found := f.list("terms")
	if !found {
		f.fault("terms", nil)
	}
	terms := []minutes.VocabularyEntry{}
	for _, t := range given {
		t = strings.TrimSpace(t)
		if t == "" {
			f.fault("terms", nil)
		}
		if termIndex(terms, t) >= 0 {
			continue
		}
		entry := minutes.VocabularyEntry{Term: t, Variants: []minutes.VocabularyVariant{}}
		if i := termIndex(o.Vocabulary, t); i >= 0 {
			entry = o.Vocabulary[i]
		}
		if terms = append(terms, entry); len(terms) > *o.MaxTerms {
			f.fault("terms", nil)
			break
		}
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	o.Vocabulary = terms
	return c.getVocabulary()
}

func (c *call) addTerm() (any, *apiError) {
	f, o := c.form, c.org
	term, _ := f.text("term")
	if term = strings.TrimSpace(term); term == "" {
		f.fault("term", nil)
	}
	known := termIndex(o.Vocabulary, term) >= 0
	if !known && len(o.Vocabulary) >= *o.MaxTerms {
		f.fault("term", nil)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	if known { // D15
		c.status = http.StatusOK
	} else {
		o.Vocabulary = append(o.Vocabulary, minutes.VocabularyEntry{Term: term, Variants: []minutes.VocabularyVariant{}})
	}
	return c.getVocabulary()
}

// termIndex returns the position of a term, or -1. Terms are compared exactly (D15).
func termIndex(list []minutes.VocabularyEntry, term string) int {
	return slices.IndexFunc(list, func(e minutes.VocabularyEntry) bool { return e.Term == term })
}
