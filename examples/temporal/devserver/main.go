// Command devserver is a Temporal server in memory. It prints its address and
// namespace, and ends when it is interrupted. The first build takes minutes.
//
//	cd examples/temporal/devserver && go run .
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/server/temporaltest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := temporaltest.NewServer()
	fmt.Printf("export TEMPORAL_ADDRESS=%s TEMPORAL_NAMESPACE=%s\n",
		server.GetFrontendHostPort(), server.GetDefaultNamespace())
	<-ctx.Done() // what it holds ends with it
}
