package minutes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// The service is in alpha, so one element of a list may not match the API reference, such as a
// foreign meeting with a duration of 61.5. It costs itself only: the others are decoded, the log
// warns, and the error names it. A number that is whole, but written like 61.0 or 1.7e9, fits an
// integer.

// salvageable is a response with lists, whose elements can be decoded one by one.
type salvageable interface {
	// salvage decodes what fits. It returns false if the response is no such object.
	salvage(s *salvaging) bool
}

// salvaging is the decoding of a list with elements that do not fit.
type salvaging struct {
	received
	unfit []unfitElement
}

// unfitElement is an element that does not match the API reference.
type unfitElement struct {
	// path is where it is, such as meetings[3].
	path string
	// id is its id, or "".
	id string
	// problem says what does not fit. It quotes nothing.
	problem string
}

func (u unfitElement) String() string {
	text := u.path
	if u.id != "" {
		text += " (" + u.id + ")"
	}
	return text + ": " + u.problem
}

// salvage decodes a response whose elements do not all fit. It returns the error that names those,
// or nil if something else is wrong with the response.
func (c *core) salvage(resp *rest.Response, out any, r received) *Error {
	l, ok := out.(salvageable)
	s := &salvaging{received: r}
	if !ok || !l.salvage(s) || len(s.unfit) == 0 {
		return nil
	}
	for _, u := range s.unfit {
		c.warnOfUnfit(resp, u)
	}
	return c.unfitError(resp, s.unfit)
}

// unfitError returns an error that names the first elements that do not fit. The log has named all.
func (c *core) unfitError(resp *rest.Response, unfit []unfitElement) *Error {
	const most = 3
	var named []string
	for _, u := range unfit[:min(most, len(unfit))] {
		named = append(named, u.String())
	}
	text := "the response does not match the API reference in some elements: " + strings.Join(named, "; ")
	if more := len(unfit) - most; more > 0 {
		text += fmt.Sprintf("; and in %d more", more)
	}
	e := c.requestError(resp, text)
	e.unfit = unfit
	return e
}

// isPartial reports whether err only says that some elements of a list do not match the API reference.
func isPartial(err error) bool { return len(unfitIn(err)) > 0 }

// unfitIn returns the elements that do not match the API reference.
func unfitIn(err error) []unfitElement {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	return e.unfit
}

// warnOfUnfit warns, once for each Client and element.
func (c *core) warnOfUnfit(resp *rest.Response, u unfitElement) {
	key := u
	if key.id != "" {
		key.path = "" // where it is in the list changes
	}
	_, warned := c.unfitElements.LoadOrStore(key, true)
	if !warned {
		c.log.Warn("minutes: an element of a list does not match the API reference, and is left out",
			slog.String("operation", resp.Request.Operation),
			slog.String("element", singleLine(c.mask.Text(u.path))),
			slog.String("id", singleLine(c.mask.Text(u.id))),
			slog.String("problem", u.problem))
	}
}

// fitting returns the elements of a list that match the API reference.
func fitting[T required](s *salvaging, name string, elements []json.RawMessage) []T {
	fit := make([]T, 0, len(elements))
	for i, element := range elements {
		var e T
		problem := decodeElement(element, &e, s.mask)
		if problem == "" {
			fit = append(fit, e)
			continue
		}
		path := fmt.Sprintf("%s[%d]", name, i)
		s.unfit = append(s.unfit, unfitElement{path: path, id: idOf(element), problem: problem})
	}
	return fit
}

// decodeElement returns what does not fit, or "".
func decodeElement[T required](element json.RawMessage, out *T, mask *rest.Mask) string {
	err := json.Unmarshal(element, out)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return describeUnfit(wrong, out, "the element")
	}
	if err != nil {
		return "it cannot be decoded"
	}
	field := (*out).missing(received{element, mask})
	if field != "" {
		return "it lacks " + field
	}
	return ""
}

// idOf returns the id of an element, or "".
func idOf(element json.RawMessage) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(element, &fields)
	var id string
	_ = json.Unmarshal(fields["id"], &id)
	const longest = 100
	if len(id) > longest {
		return ""
	}
	return id
}

func (p *MeetingPage) salvage(s *salvaging) bool {
	var raw struct {
		Meetings   []json.RawMessage `json:"meetings"`
		NextCursor string            `json:"next_cursor"`
	}
	err := json.Unmarshal(s.body, &raw)
	*p = MeetingPage{Meetings: fitting[*Meeting](s, "meetings", raw.Meetings), NextCursor: raw.NextCursor}
	return err == nil && raw.Meetings != nil
}

func (l *memberList) salvage(s *salvaging) bool {
	var raw struct {
		Members []json.RawMessage `json:"members"`
	}
	err := json.Unmarshal(s.body, &raw)
	l.Members = fitting[*Member](s, "members", raw.Members)
	return err == nil && raw.Members != nil
}

func (l *projectList) salvage(s *salvaging) bool {
	var raw struct {
		Projects []json.RawMessage `json:"projects"`
	}
	err := json.Unmarshal(s.body, &raw)
	l.Projects = fitting[*Project](s, "projects", raw.Projects)
	return err == nil && raw.Projects != nil
}

func (l *templateList) salvage(s *salvaging) bool {
	var raw struct {
		Templates []json.RawMessage `json:"templates"`
	}
	err := json.Unmarshal(s.body, &raw)
	l.Templates = fitting[*Template](s, "templates", raw.Templates)
	return err == nil && raw.Templates != nil
}

func (v *Vocabulary) salvage(s *salvaging) bool {
	var raw struct {
		Terms    []json.RawMessage `json:"terms"`
		Entries  []json.RawMessage `json:"entries"`
		MaxTerms int               `json:"max_terms"`
	}
	err := json.Unmarshal(s.body, &raw)
	*v = Vocabulary{Entries: fitting[VocabularyEntry](s, "entries", raw.Entries), MaxTerms: raw.MaxTerms}
	for _, t := range fitting[term](s, "terms", raw.Terms) {
		v.Terms = append(v.Terms, string(t))
	}
	return err == nil && raw.Terms != nil && raw.Entries != nil
}

// term is an element of Vocabulary.Terms.
type term string

func (term) missing(received) string { return "" }

// describeUnfit says which field of a whole a JSON value does not fit.
func describeUnfit(wrong *json.UnmarshalTypeError, out any, whole string) string {
	kind, _, _ := strings.Cut(wrong.Value, " ") // a number follows its kind
	return "a JSON " + kind + " does not fit " + cmp.Or(declaredPath(wrong.Field, out), whole)
}

// withWholeNumbers returns JSON in which numbers that are whole are written as integers: 61.0 as 61,
// and 1.7e9 as 1700000000. Texts stay as they are, and so does what is not JSON.
func withWholeNumbers(body []byte) []byte {
	var out bytes.Buffer
	for i := 0; i < len(body); {
		end := i + 1
		switch b := body[i]; {
		case b == '"':
			end = endOfText(body, i)
			out.Write(body[i:end])
		case b == '-' || b >= '0' && b <= '9':
			for end < len(body) && strings.IndexByte("0123456789+-.eE", body[end]) >= 0 {
				end++
			}
			out.WriteString(wholeNumber(string(body[i:end])))
		default:
			out.WriteByte(b)
		}
		i = end
	}
	return out.Bytes()
}

// endOfText returns the end of the text that begins at a quote.
func endOfText(body []byte, at int) int {
	for i := at + 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// wholeNumber writes a number as an integer, if it is one below 2^53, beyond which no service means
// an integer that it writes like this.
func wholeNumber(number string) string {
	const most = 1 << 53
	const longest = 40
	f, err := strconv.ParseFloat(number, 64)
	isInteger := !strings.ContainsAny(number, ".eE")
	if err != nil || isInteger || len(number) > longest || math.Abs(f) >= most || !json.Valid([]byte(number)) {
		return number
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return "0" // whatever its exponent
	}
	if math.Abs(f) < 1 {
		return number
	}
	exact, ok := new(big.Rat).SetString(number) // its exponent is small, because number is short and f is not 0
	if !ok || !exact.IsInt() {
		return number
	}
	return exact.Num().String()
}
