package minutes

import (
	"cmp"
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// VocabularyService reads and changes the organisation's vocabulary ([section 4]).
//
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
type VocabularyService struct{ service }

// Vocabulary is the complete list of terms that transcripts should spell right ([section 2.10]).
//
// [section 2.10]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Vocabulary struct {
	Terms    []string          `json:"terms"`
	Entries  []VocabularyEntry `json:"entries"`   // the same terms, with known wrong spellings
	MaxTerms int               `json:"max_terms"` // maximum number of terms
}

// VocabularyEntry is a term with its known wrong spellings ([section 2.10]).
//
// [section 2.10]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type VocabularyEntry struct {
	Term     string              `json:"term"` // the intended spelling
	Variants []VocabularyVariant `json:"variants"`
}

// VocabularyVariant is a known wrong spelling of a term, and where it comes from.
type VocabularyVariant struct {
	Text   string        `json:"text"`
	Source VariantSource `json:"source"`
}

// VariantSource says where a known wrong spelling comes from ([section 2.10]). The service may add
// sources.
//
// [section 2.10]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type VariantSource string

// The sources that the API reference names.
const (
	VariantSourceAuto   VariantSource = "auto"   // learned from a confirmed correction
	VariantSourceManual VariantSource = "manual" // typed in
)

func (v *Vocabulary) missing(r received) string {
	return cmp.Or(lacks("terms", v.Terms == nil && !r.has("terms", true)), missingList("entries", v.Entries, r))
}

func (e VocabularyEntry) missing(received) string { return lacks("term", e.Term == "") }

// Get returns all terms with their variants. Method, path and the scope meetings:read are assumed,
// so you may need [WithRoute].
func (s *VocabularyService) Get(ctx context.Context) (*Vocabulary, error) {
	v, _, err := call[Vocabulary](ctx, s.core, OpVocabularyGet, rest.Request{})
	return v, err
}

// Replace replaces the whole vocabulary with terms, so an empty list clears it. A nil list is a
// *[ParamError], because a list that someone forgot to read would clear it, too. Method, path and
// the scope meetings:write are assumed (see [WithRoute]). Terms that were there before keep
// their variants (assumed).
//
// Errors: [ErrInvalidRequest], also for more than Vocabulary.MaxTerms terms (assumed).
func (s *VocabularyService) Replace(ctx context.Context, terms []string) (*Vocabulary, error) {
	err := cmp.Or(checkGiven("terms", terms != nil), checkUTF8("terms", terms...))
	if err != nil {
		return nil, err
	}
	var body struct {
		Terms []string `json:"terms"`
	}
	body.Terms = terms
	v, _, err := call[Vocabulary](ctx, s.core, OpVocabularyReplace, rest.Request{Body: &body})
	return v, err
}

// Add adds one term; for many, [VocabularyService.Replace] is quicker, because it needs only one
// request. Adding an existing term changes nothing (assumed), so you may repeat an Add; the Client
// does not retry one that may have taken effect. Method, path and the scope meetings:write are
// assumed (see [WithRoute]).
//
// Errors: [ErrInvalidRequest], also if the vocabulary is full (assumed).
func (s *VocabularyService) Add(ctx context.Context, term string) (*Vocabulary, error) {
	err := checkUTF8("term", term)
	if err != nil {
		return nil, err
	}
	var body struct {
		Term string `json:"term"`
	}
	body.Term = term
	v, _, err := call[Vocabulary](ctx, s.core, OpVocabularyAdd, rest.Request{Body: &body})
	return v, err
}
