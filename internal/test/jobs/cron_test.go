package jobs_test

import (
	"context"
	"testing"

	"github.com/robfig/cron/v3"
)

// cronWorker makes an attempt each second, unless one is running, until one succeeds.
func cronWorker(ctx context.Context) error {
	c := cron.New(cron.WithChain(cron.Recover(cron.DiscardLogger), cron.SkipIfStillRunning(cron.DiscardLogger)))
	attempt := 0
	_, err := c.AddFunc("@every 1s", func() {
		ctx, cancel := context.WithTimeout(ctx, limit())
		defer cancel()
		attempt++
		_ = process(ctx, attempt) // the next tick tries again, whatever the error is
	})
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // Stop alone leaves the job running
	return nil
}

func cronEngine(*testing.T) engine {
	return engine{enqueue: func() {}, state: func() string { return "–" }}
}
