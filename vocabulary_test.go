package minutes_test

import (
	"testing"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Replace with no terms sends an empty list, never null.
func TestVocabulary_SendsNoTermsAsAnEmptyList(t *testing.T) {
	t.Parallel()
	requireSent(t, map[string]optional{
		"no terms": {"vocabulary_empty", "", `{"terms":[]}`, func(c *minutes.Client) error {
			_, err := c.Vocabulary.Replace(t.Context(), nil)
			return err
		}},
	})
}

// Absent, null and empty fields of a response decode to their Go values.
func TestVocabulary_DecodesEmptyLists(t *testing.T) {
	t.Parallel()
	requireDecoded(t, []variant{
		{"vocabulary.add", 200, "vocabulary", testkit.FullVocabulary},
		{"vocabulary.get", 200, "vocabulary_empty", &minutes.Vocabulary{Terms: []string{}, Entries: []minutes.VocabularyEntry{}, MaxTerms: 200}},
	})
}
