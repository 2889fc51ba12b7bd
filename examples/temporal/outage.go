package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.temporal.io/sdk/client"
)

// checkInterval is the time between two health checks of the Temporal server, and
// the time limit of each.
const checkInterval = 10 * time.Second

// reportOutages prints a line when the Temporal server stops answering, and one when
// it answers again, until ctx is done. The SDK itself retries without a word.
func reportOutages(ctx context.Context, out io.Writer, c client.Client, address string) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		check, cancel := context.WithTimeout(ctx, checkInterval)
		_, err := c.CheckHealth(check, &client.CheckHealthRequest{})
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			fmt.Fprintf(out, "The Temporal server at %s does not answer (%v). Waiting for it; Ctrl-C stops the waiting, not the workflows.\n", address, err)
		case err == nil && away:
			fmt.Fprintf(out, "The Temporal server at %s answers again.\n", address)
		}
		away = err != nil
	}
}
