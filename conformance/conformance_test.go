package conformance

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// checks are all checks. Checks that create come before checks that only read,
// so that an empty account has something to read.
var checks = slices.Concat(recordingChecks, readingChecks, writingChecks, disposableChecks)

var cleanup = flag.Bool("cleanup", false, "delete the meetings that earlier runs have left in the account, and do nothing else")

// TestConformance runs the checks that the target allows. See the package's
// documentation for what to set.
func TestConformance(t *testing.T) {
	if *cleanup {
		t.Skip("-cleanup does nothing else")
	}
	tg := targetOf(t)
	ctx := untilInterrupted(t, tg)
	found := &report{}
	defer tg.leaveNothing(t)
	require.NoError(t, tg.ask(ctx))
	if len(tg.lacks) > 0 {
		t.Logf("the key lacks %s: what needs them is skipped", strings.Join(tg.lacks, ", "))
	}
	tg.conform(ctx, found, func(c *check, do func() string) {
		t.Run(c.name, func(t *testing.T) {
			skipped := do()
			for _, d := range found.of(c.name) {
				if d.decision == 0 || tg.memory != nil {
					t.Error(d)
				} else {
					t.Log(d)
				}
			}
			if skipped != "" {
				require.Nil(t, tg.memory, "nothing is missing in memory, but: %s", skipped)
				t.Skip(skipped)
			}
		})
	})
	t.Log(found.summary())
	if tg.memory != nil {
		for _, row := range route.Table {
			assert.NotEmpty(t, tg.memory.Requests(minutes.Operation(row.Operation)), "no check requests %s", row.Operation)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the run was cut short: %v", context.Cause(ctx))
	}
}

// TestCleanup deletes meetings that earlier runs left, if -cleanup is set.
func TestCleanup(t *testing.T) {
	if !*cleanup {
		t.Skip("needs -cleanup")
	}
	tg := targetOf(t)
	require.Nil(t, tg.memory, "MINUTES_CONFORMANCE_BASE_URL is not set")
	n, err := tg.cleanUp(untilInterrupted(t, tg))
	t.Logf("%d meetings of earlier runs are deleted", n)
	require.NoError(t, err)
}

// conform hands over the checks, one after the other, each with what does it
// and says why it was skipped, if it was.
func (tg *target) conform(ctx context.Context, found *report, each func(c *check, do func() string)) {
	setUp := tg.furnish(ctx, found)
	for i := range checks {
		c := &checks[i]
		each(c, func() string {
			switch lack := tg.missing(c.needs); {
			case ctx.Err() != nil:
				return "the run was cut short"
			case lack != "":
				return lack
			}
			why := tg.perform(ctx, c, found)
			if why != "" && setUp != "" && c.needs == reading {
				why += "; " + setUp
			}
			return why
		})
	}
}

// furnish creates meetings for the checks that only read, if the key allows it.
// Otherwise it returns why not.
func (tg *target) furnish(ctx context.Context, found *report) string {
	if lack := tg.missing(writing); lack != "" {
		return "no meeting was created: " + lack
	}
	return tg.perform(ctx, &check{name: "furnish", section: "4.2", do: func(r *run) {
		_, done := r.create("") // whether a meeting can be deleted is found out on one
		done()
		for range 3 {
			r.create("")
		}
	}}, found)
}

// untilInterrupted returns the test's context, which also ends at an interrupt,
// or shortly before -timeout: then there is time left to delete the meetings
// that were created. A second interrupt ends the process at once.
func untilInterrupted(t *testing.T, tg *target) context.Context {
	ctx := t.Context()
	if tg.memory != nil {
		return ctx
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	t.Cleanup(stop)
	if end, has := t.Deadline(); has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(time.Minute, time.Until(end)/5)))
		t.Cleanup(cancel)
	}
	return ctx
}

// leaveNothing deletes the rest of the run.
func (tg *target) leaveNothing(t *testing.T) {
	if left := tg.sweep(context.WithoutCancel(t.Context())); len(left) > 0 {
		t.Errorf("meetings that are left, which go test -run Cleanup ./conformance -cleanup deletes:\n%s", strings.Join(left, "\n"))
	}
}
