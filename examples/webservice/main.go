// Command webservice turns recordings into minutes, even if it is killed meanwhile. See README.md.
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

func main() {
	addr := flag.String("addr", "127.0.0.1:8090", "serve on this address")
	dir := flag.String("dir", "webservice-data", "keep the database and the recordings in this directory")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err := serve(*addr, *dir); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// serve works until a signal stops it. The directory has all that the next process needs.
func serve(addr, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	slog.Info("opening the database", "dir", dir)
	t, err := openTable(ctx, dir)
	if err != nil && ctx.Err() != nil {
		return nil // stopped while another process had the database
	}
	if err != nil {
		return err
	}
	defer func() { _ = t.db.Close() }() // every change has been committed
	client, err := newClient(minutes.WithStore(states{t}), minutes.WithLogger(slog.Default()), minutes.WithObserver(observe))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("serving", "addr", listener.Addr().String())
	q := &queue{table: t, client: client}
	server := &http.Server{Handler: routes(q), ReadHeaderTimeout: 10 * time.Second}
	go func() { slog.Info("no longer serving", "reason", server.Serve(listener)); stop() }()
	q.run(ctx)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace) // requests in progress may finish
}

// newClient returns a Client of the service in memory if the environment names no other.
func newClient(opts ...minutes.Option) (*minutes.Client, error) {
	if os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		return minutes.NewFromEnv(opts...)
	}
	srv := minutestest.New()
	srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}) // at once
	return srv.Client(opts...), nil
}
