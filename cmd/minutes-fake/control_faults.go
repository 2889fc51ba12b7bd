package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// injected is a fault that was added, as asked for and under its own id.
type injected struct {
	id        string
	match     minutestest.Match
	faults    []json.Marshaler // as sent
	window    window
	injection *minutestest.Injection
}

// window is when a fault is applied, counted from the moment it was added.
type window struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"` // "": no window
}

// read returns the two ends.
func (w window) read() (from, to time.Duration, err error) {
	if from, err = durationOf("from", w.From); err != nil {
		return 0, 0, err
	}
	if to, err = durationOf("to", w.To); err != nil {
		return 0, 0, err
	}
	if w != (window{}) && to <= from {
		return 0, 0, bad("to", "the window ends before it begins; set to to a later time than from")
	}
	return from, to, nil
}

// durationOf returns the duration in a field, which is 0 if the field is empty.
func durationOf(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil || d < 0 {
		return 0, bad(field, "%q is not a duration such as 20s or 5m", text)
	}
	return d, nil
}

// MarshalJSON shows it with its counts as of now.
func (i *injected) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID     string            `json:"id"`
		Match  minutestest.Match `json:"match,omitzero"`
		Faults []json.Marshaler  `json:"faults"`
		window
		Seen    int `json:"seen"`    // requests that matched, until it was used up
		Applied int `json:"applied"` // requests that went wrong
	}{i.id, i.match, i.faults, i.window, i.injection.Seen(), i.injection.Applied()})
}

func (c *control) addFault(r *http.Request) (any, error) {
	var sent struct {
		Match  json.RawMessage   `json:"match"`
		Faults []json.RawMessage `json:"faults"`
		window
	}
	if err := body(r, &sent); err != nil {
		return nil, err
	}
	var match minutestest.Match
	if sent.Match != nil {
		if err := decode("match", sent.Match, &match); err != nil {
			return nil, err
		}
	}
	if err := match.Validate(); err != nil {
		return nil, badIn("match", err)
	}
	faults, shown, err := c.readFaults(match, sent.Faults)
	if err != nil {
		return nil, err
	}
	from, to, err := sent.read()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	injection := c.fake.Inject(match, faults...)
	if to > 0 {
		injection.During(from, to)
	}
	added := &injected{fmt.Sprintf("flt_%d", c.nextID), match, shown, sent.window, injection}
	c.faults = append(c.faults, added)
	return created{"/faults/" + added.id, added}, nil
}

// readFaults returns the faults, and what GET shows of them.
func (c *control) readFaults(match minutestest.Match, sent []json.RawMessage) ([]minutestest.Fault, []json.Marshaler, error) {
	if len(sent) == 0 {
		return nil, nil, bad("faults", "at least one expected")
	}
	faults, shown := make([]minutestest.Fault, len(sent)), make([]json.Marshaler, len(sent))
	for i, text := range sent {
		place := fmt.Sprintf("faults[%d]", i)
		var err error
		if isCall(text) {
			shown[i], faults[i], err = c.readCall(place, text)
		} else {
			faults[i], err = readFault(place, match, text)
			shown[i] = faults[i]
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return faults, shown, nil
}

func readFault(place string, match minutestest.Match, text []byte) (fault minutestest.Fault, err error) {
	if err := decode(place, text, &fault); err != nil {
		return fault, err
	}
	if err := match.Validate(fault); err != nil {
		return fault, badIn(place, err)
	}
	if fault.String() == "bad_certificate" {
		return fault, bad(place+".kind", "only clients in the same process can see it; point the client at another port with https")
	}
	return fault, nil
}

func (c *control) listFaults(*http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]any{"faults": some(slices.Clone(c.faults))}, nil
}

// find returns the index of the fault that r names. c is locked.
func (c *control) find(r *http.Request) (int, error) {
	at := slices.IndexFunc(c.faults, func(i *injected) bool { return i.id == r.PathValue("id") })
	if at < 0 {
		return at, notFound("there is no fault %q", r.PathValue("id"))
	}
	return at, nil
}

func (c *control) getFault(r *http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.find(r)
	if err != nil {
		return nil, err
	}
	return c.faults[at], nil
}

func (c *control) deleteFault(r *http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.find(r)
	if err != nil {
		return nil, err
	}
	c.faults[at].injection.Stop()
	c.faults = slices.Delete(c.faults, at, at+1)
	return nil, nil
}

// pageSizes says how many meetings the pages of a listing hold at most: the
// first, the second and so on, and all further ones as the last.
type pageSizes struct {
	Sizes []int `json:"sizes"`
}

func (c *control) setPageSize(r *http.Request) (any, error) {
	var sent pageSizes
	if err := body(r, &sent); err != nil {
		return nil, err
	}
	if len(sent.Sizes) == 0 {
		return nil, bad("sizes", "at least one expected")
	}
	for i, n := range sent.Sizes {
		if last := i == len(sent.Sizes)-1; n < 0 || last && n == 0 {
			return nil, bad(fmt.Sprintf("sizes[%d]", i), "%d is too small; only pages before the last of the list may be empty", n)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = sent.Sizes
	return sent, minutestest.Try(func() { c.fake.SetPageSizes(sent.Sizes...) })
}

func (c *control) getPageSize(*http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pageSizes{some(c.pages)}, nil
}

func (c *control) clearPageSize(*http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = nil
	c.fake.SetPageSizes()
	return nil, nil
}

// operationsOf checks the operations of a query.
func operationsOf(names []string) ([]minutes.Operation, error) {
	var list []minutes.Operation
	for _, name := range names {
		if err := (minutestest.Match{Operation: minutes.Operation(name)}).Validate(); name == "" || err != nil {
			return nil, bad("operation", "%q is none of the interface's", name)
		}
		list = append(list, minutes.Operation(name))
	}
	return list, nil
}

// number reads a parameter of a query; one left out is 0.
func number(field, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, bad(field, "%q is no whole number from 0", text)
	}
	return n, nil
}
