// Command temporal turns thousands of recordings into minutes with Temporal
// workflows, which survive the machines that they run on. See README.md.
//
//	go run .                     # a workflow in Temporal's test environment, offline
//	TEMPORAL_ADDRESS=… go run .  # a worker, until it is interrupted
//	TEMPORAL_ADDRESS=… go run . weekly.mp3 board.mp3  # starts a workflow for each, and waits
//
// With TEMPORAL_ADDRESS, a worker needs MINUTES_BASE_URL and MINUTES_API_KEY.
// TEMPORAL_NAMESPACE is "default" unless set. MINUTES_DIR is the directory for the
// minutes.
//
// For your own program, copy ingest.go.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if address := os.Getenv("TEMPORAL_ADDRESS"); address == "" {
		err = offline(os.Stdout)
	} else {
		err = online(ctx, os.Stdout, os.Stderr, address, os.Args[1:])
	}
	if err != nil {
		stop()
		log.Fatal("temporal: ", err)
	}
}

// offline runs one workflow, with nothing but this process.
func offline(out io.Writer) error {
	dir, err := os.MkdirTemp("", "temporal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	recording := filepath.Join(dir, "weekly.mp3")
	err = os.WriteFile(recording, []byte("ID3\x04, and then: good morning."), 0o600)
	if err != nil {
		return err
	}
	server := minutestest.New()
	defer server.Close()

	env := environment(&activities{client: server.Client(), dir: dir}, "weekly-2026-11-20")
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		fmt.Fprintf(out, "%-6s on %s, attempt %d\n", info.ActivityType.Name, info.TaskQueue, info.Attempt)
	})
	env.ExecuteWorkflow(ingest, job{Path: recording, Title: "Weekly", Date: "2026-11-20"})
	var path string
	err = errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&path))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	fmt.Fprintf(out, "\n%s:\n\n%s\n", filepath.Base(path), text)
	return err
}

// environment is Temporal's for tests, which has one workflow.
func environment(activities any, id string) *testsuite.TestWorkflowEnvironment {
	env := quiet().NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: waitQueue})
	env.RegisterWorkflow(ingest)
	env.RegisterActivity(activities)
	return env
}

func quiet() *testsuite.WorkflowTestSuite {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return &suite
}

// online runs a worker. Given recordings, it starts their workflows instead.
func online(ctx context.Context, out, status io.Writer, address string, recordings []string) error {
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: os.Getenv("TEMPORAL_NAMESPACE"),
		Logger: temporallog.NewStructuredLogger(slog.New(
			slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))),
	})
	if err != nil {
		return fmt.Errorf("no Temporal server at TEMPORAL_ADDRESS %s: %w", address, err)
	}
	defer c.Close()
	if len(recordings) > 0 {
		return start(ctx, out, status, c, recordings)
	}
	return work(ctx, out, c)
}

// work runs the workers of this process until ctx is done.
func work(ctx context.Context, out io.Writer, c client.Client) error {
	dir, err := filepath.Abs(cmp.Or(os.Getenv("MINUTES_DIR"), "minutes"))
	err = errors.Join(err, os.MkdirAll(dir, 0o700))
	if err != nil {
		return err
	}
	m, err := minutes.NewFromEnv(minutes.WithUserAgent("temporal/1.0"), minutes.WithUploadConcurrency(maxUploads))
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	all := workers(c, &activities{client: m, dir: dir}, func(err error) { ended <- err })
	for _, w := range all {
		err := w.Start()
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Processes recordings, and writes minutes to", dir)
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	for _, w := range all {
		w.Stop()
	}
	return err
}

// start starts a workflow for each recording, and waits for all of them. If you run
// it again, it finds those that still run.
func start(ctx context.Context, out, status io.Writer, c client.Client, recordings []string) error {
	type started struct {
		recording string
		client.WorkflowRun
	}
	var runs []started
	for _, recording := range recordings {
		path, err := filepath.Abs(recording)
		if err != nil {
			return err
		}
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: idOf(path), TaskQueue: waitQueue},
			ingest, job{Path: path, Title: filepath.Base(path), Date: minutes.DateOf(time.Now())})
		if err != nil {
			return err
		}
		runs = append(runs, started{recording, run})
	}
	fmt.Fprintf(status, "Started or found %s. Waiting for the minutes.\n", count(len(runs), "workflow"))
	var failed error
	for _, run := range runs {
		var path string
		err := run.Get(ctx, &path)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", run.recording, path)
	}
	return failed
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// idOf makes an id from a recording's path, in the characters that an id may
// have. The name is for people.
func idOf(path string) string {
	name := unfit.ReplaceAllString(filepath.Base(path), "-")
	return fmt.Sprintf("%.80s-%.6x", name, sha256.Sum256([]byte(path)))
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
