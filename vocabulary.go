package minutes

import (
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// VocabularyService reads and changes the organisation's vocabulary, the terms
// that transcripts should spell right (section 4.3).
type VocabularyService struct{ service }

// Vocabulary is the organisation's complete list of terms (section 2.10).
type Vocabulary struct {
	Terms    []string          `json:"terms"`
	Entries  []VocabularyEntry `json:"entries"`   // the same terms with their known wrong spellings
	MaxTerms int               `json:"max_terms"` // how many terms the list may hold
}

// VocabularyEntry is one term.
type VocabularyEntry struct {
	Term     string              `json:"term"` // the intended spelling
	Variants []VocabularyVariant `json:"variants"`
}

// VocabularyVariant is a known wrong spelling of a term.
type VocabularyVariant struct {
	Text   string `json:"text"`
	Source string `json:"source"` // "auto": learned from a confirmed correction; "manual": typed in
}

// Get returns the vocabulary. Method, path and scope (meetings:read) are
// assumed; see [WithRoute].
func (s *VocabularyService) Get(ctx context.Context) (*Vocabulary, error) {
	return do[Vocabulary](ctx, s.core(), rest.Request{Operation: route.VocabularyGet})
}

// Replace makes the given terms the whole vocabulary; none, or nil, clears it.
// Terms that stay keep their variants (assumed). The body is documented;
// method, path and scope (meetings:write) are assumed; see [WithRoute].
//
// Errors: ErrInvalidRequest, also for more than Vocabulary.MaxTerms terms.
func (s *VocabularyService) Replace(ctx context.Context, terms []string) (*Vocabulary, error) {
	return do[Vocabulary](ctx, s.core(), rest.Request{Operation: route.VocabularyReplace, Body: &struct {
		Terms []string `json:"terms"` // never null
	}{append([]string{}, terms...)}})
}

// Add puts one term into the vocabulary. A term that is there already changes
// nothing and is no error (assumed). The body is documented; method, path and
// scope (meetings:write) are assumed; see [WithRoute]. The Client does not
// retry an Add that may have taken effect; you may. It takes a request per term:
// for many terms, use [VocabularyService.Replace].
//
// Errors: ErrInvalidRequest, also if the vocabulary is full.
func (s *VocabularyService) Add(ctx context.Context, term string) (*Vocabulary, error) {
	return do[Vocabulary](ctx, s.core(), rest.Request{Operation: route.VocabularyAdd, Body: &struct {
		Term string `json:"term"`
	}{term}})
}
