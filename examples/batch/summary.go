package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// tally is what a run came to.
type tally struct {
	all, there, written, copied int
	failures                    []failure
	interrupted                 bool
	took                        time.Duration
}

func (t *tally) left() int { return t.all - t.there - t.written - t.copied - len(t.failures) }

func (t *tally) print(w io.Writer, dir, quota string) {
	fmt.Fprintf(w, "\n%s in %s, minutes in %s\n", count(t.all, "recording"), t.took.Round(100*time.Millisecond), dir)
	line := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(w, "%6d %s\n", n, what)
		}
	}
	line(t.written, "written")
	line(t.copied, "copied, from another file with the same recording")
	line(t.there, "there already")
	line(len(t.failures), "failed")
	for _, f := range t.failures {
		fmt.Fprintf(w, "       - %s: %s\n         %s\n", f.name, reason(f.err), advice(f.err))
	}
	line(t.left(), "left")
	fmt.Fprintf(w, "Quota left: %s\n", quota)
	switch {
	case t.interrupted:
		fmt.Fprintln(w, "Interrupted. Run it again to go on: nothing is uploaded twice.")
	case t.left() > 0:
		fmt.Fprintln(w, "Stopped early, since the others would fail for the same reason.")
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// quotaLeft also answers after a Ctrl-C, but not for long.
func quotaLeft(ctx context.Context, client *minutes.Client) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	u, err := client.Usage.Get(ctx)
	if err != nil {
		return "unknown: " + reason(err)
	}
	text := fmt.Sprintf("%s, %s of transcription", count(u.CreditsRemaining, "credit"), u.Transcription())
	if u.NextResetAt != "" {
		text += ", until the top-up on " + u.NextResetAt
	}
	return text
}
