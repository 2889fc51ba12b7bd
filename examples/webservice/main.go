// Command webservice turns recordings that reach it over HTTP into minutes. Several instances can share the work through
// one database, and each of them may be killed at any time. See README.md.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var (
	addr      = flag.String("addr", "127.0.0.1:8090", "serve on this address")
	dir       = flag.String("dir", "webservice-data", "directory of the database and the recordings, shared by all instances")
	lease     = flag.Duration("lease", time.Minute, "take over the jobs of an instance that was silent for so long")
	limit     = flag.Float64("limit", 100, "requests per second that the service accepts from your organisation")
	instances = flag.Int("instances", 2, "number of instances that share the limit")
)

func main() {
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := serve(ctx, stop); err != nil && ctx.Err() == nil { // a signal is no error, whatever it interrupts
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// serve works until ctx is done.
func serve(ctx context.Context, stop func()) error {
	t, err := openTable(ctx, *dir, *lease)
	if err != nil {
		return err
	}
	defer func() { _ = t.db.Close() }() // every change has been committed
	client, err := newClient(minutes.WithRateLimit(share(*limit, *instances)), minutes.WithLogger(slog.Default()))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	slog.Info("serving", "addr", listener.Addr().String())
	w := &worker{table: t, client: client}
	server := &http.Server{Handler: routes(w), ReadHeaderTimeout: 10 * time.Second}
	go func() { slog.Info("no longer serving", "reason", server.Serve(listener)); stop() }()
	w.run(ctx)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace) // requests in progress may finish
}

// share gives each instance its part of nine tenths of the service's limit, because the service limits the organisation
// and not the instance. Below the limit, a call that a user waits for takes some 0.3 s, because the Client sends it before
// its polls. At the limit it takes some 7.5 s, because each 429 makes the Client pause all its API requests.
func share(limit float64, instances int) (perSecond float64, burst int) {
	perSecond = 0.9 * limit / float64(instances)
	return perSecond, max(1, int(perSecond))
}

// newClient returns a Client of an in-memory fake of its own if the environment names no service.
func newClient(opts ...minutes.Option) (*minutes.Client, error) {
	if os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		return minutes.NewFromEnv(opts...)
	}
	srv := minutestest.New()
	srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // the first poll finds the minutes
	return srv.Client(opts...), nil
}
