package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// check is one piece of behaviour.
type check struct {
	name    string
	section string // of the interface
	needs   need
	do      func(*run)
}

// need is what a check may do to the service.
type need int

const (
	reading    need = iota
	writing         // changes that can be undone
	recording       // a whole job, from audio to minutes
	disposable      // what cannot be undone: in memory alone
)

// run is a check in progress. It reports differences from the interface
// document or, in the run that [run.as] returns, from an assumption.
type run struct {
	*target
	ctx      context.Context
	check    *check
	report   *report
	decision int  // 0: documented
	asking   bool // for scopes, so that the lack of one is no end
}

// as is r where what differs is assumption n.
func (r *run) as(n int) *run {
	other := *r
	other.decision = n
	return &other
}

// that notes a difference unless ok.
func (r *run) that(ok bool, format string, args ...any) bool {
	if !ok {
		r.report.add(difference{r.check.name, r.check.section, r.decision, fmt.Sprintf(format, args...)})
	}
	return ok
}

// stopped ends a check that cannot go on.
type stopped struct{ why string }

// stop notes that the check cannot go on, and why.
func (r *run) stop(format string, args ...any) {
	r.that(false, format, args...)
	panic(stopped{})
}

// skip ends a check that has nothing to check.
func (r *run) skip(format string, args ...any) { panic(stopped{fmt.Sprintf(format, args...)}) }

// perform does a check, and says why it was skipped, if it was.
func (tg *target) perform(ctx context.Context, c *check, to *report) (skipped string) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case stopped:
			skipped = fault.why
		default:
			panic(fault)
		}
	}()
	c.do(&run{target: tg, ctx: ctx, check: c, report: to})
	return ""
}

// is demands a status and an object of section 2.
func (r *run) is(rep response, status int, form string) bool {
	if !r.that(rep.status == status, "%s: status %d where %d was expected: %.300s", rep.what, rep.status, status, rep.raw) {
		return false
	}
	if form == "" {
		return true
	}
	r.as(21).that(strings.HasPrefix(rep.header.Get("Content-Type"), "application/json"), "%s: Content-Type %q", rep.what, rep.header.Get("Content-Type"))
	if !r.that(rep.object != nil, "%s: no JSON object: %.300s", rep.what, rep.raw) {
		return false
	}
	faults := misfits(form, "", rep.object)
	return r.that(len(faults) == 0, "%s: %s", rep.what, strings.Join(faults, "; "))
}

// rejects requires an error: its status, its envelope and one of these codes.
func (r *run) rejects(rep response, status int, codes ...string) bool {
	ok := r.that(rep.status == status && slices.Contains(codes, rep.code()), "%s: %d %s where %d %s was expected", rep.what, rep.status, rep.code(), status, strings.Join(codes, " or "))
	if rep.status >= 400 {
		faults := misfits("Envelope", "", rep.object)
		documented := *r
		documented.decision = 0
		documented.that(len(faults) == 0, "%s: envelope: %s", rep.what, strings.Join(faults, "; "))
	}
	return ok
}

// difference is something that is not as expected.
type difference struct {
	check, section string
	decision       int
	text           string
}

func (d difference) String() string {
	if d.decision != 0 {
		return fmt.Sprintf("differs from assumption D%d (section %s): %s", d.decision, d.section, d.text)
	}
	return fmt.Sprintf("differs from section %s of the interface: %s", d.section, d.text)
}

// report is what a whole suite has found.
type report struct {
	mu   sync.Mutex
	list []difference
}

func (r *report) add(d difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, d)
}

// of returns the differences that a check has found.
func (r *report) of(name string) (list []difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.list {
		if d.check == name {
			list = append(list, d)
		}
	}
	return list
}

// summary says which assumptions turned out differently, and where.
func (r *report) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	where := map[int][]string{}
	documented := 0
	for _, d := range r.list {
		if d.decision == 0 {
			documented++
		} else if !slices.Contains(where[d.decision], d.check) {
			where[d.decision] = append(where[d.decision], d.check)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d differences from the interface document", documented)
	if len(where) == 0 {
		b.WriteString("; no assumption was found to differ")
	}
	for _, n := range slices.Sorted(maps.Keys(where)) {
		fmt.Fprintf(&b, "\nassumption D%d differs in: %s", n, strings.Join(where[n], ", "))
	}
	return b.String()
}
