// Command webservice turns recordings that reach it over HTTP into minutes. Several instances can share the work
// through one database, and each of them may be killed at any time. See README.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"io"
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
	dir       = flag.String("dir", "webservice-data", "directory of the database and the recordings, for all instances")
	lease     = flag.Duration("lease", time.Minute, "take over the jobs of an instance that was silent for so long")
	limit     = flag.Float64("limit", 100, "requests per second that the service accepts from your organisation")
	instances = flag.Int("instances", 2, "number of instances that share the limit")
	keyFile   = flag.String("key-file", "", "file with the API key, which may be rotated; without it, MINUTES_API_KEY")
)

func main() {
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, stop)
	if err != nil && ctx.Err() == nil { // a signal is not an error, whatever it interrupts
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// serve works until ctx is done.
func serve(ctx context.Context, stop func()) error {
	client, err := newClient(*keyFile,
		minutes.WithRateLimit(share(*limit, *instances)), minutes.WithLogger(slog.Default()))
	if err != nil {
		return err
	}
	in, err := open(ctx, *dir, *lease, client)
	if err != nil {
		return err
	}
	defer func() { _ = in.db.Close() }() // every change has been committed
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	slog.Info("serving", "addr", listener.Addr().String())
	server := &http.Server{Handler: routes(in), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		slog.Info("no longer serving", "reason", server.Serve(listener))
		stop()
	}()
	in.run(ctx)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace) // requests in progress may finish
}

// share gives each instance its part of nine tenths of the service's limit, which all instances have in common.
func share(limit float64, instances int) (perSecond float64, burst int) {
	perSecond = 0.9 * limit / float64(instances)
	return perSecond, max(1, int(perSecond))
}

// newClient returns a Client of an in-memory fake of its own if the environment names no service. The Client reads
// keyFile before each request, and again after a 401, so a new key needs no restart.
func newClient(keyFile string, opts ...minutes.Option) (*minutes.Client, error) {
	if keyFile != "" {
		opts = append(opts, minutes.WithAPIKeyFunc(func(context.Context) (string, error) {
			key, err := os.ReadFile(keyFile)
			return string(key), err
		}))
	}
	if keyFile != "" || os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		return minutes.NewFromEnv(opts...)
	}
	return minutestest.New().Client(opts...), nil
}

func routes(in *instance) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /recordings/{name}", in.put)
	mux.HandleFunc("GET /recordings/{name}", func(w http.ResponseWriter, r *http.Request) { in.show(w, r, nil) })
	return mux
}

// put takes a recording. When it responds, the meeting and the job exist, so the job survives the instance. A name that
// is known changes nothing, unless its job has failed: then this is another try, with another meeting.
func (in *instance) put(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	var failed string
	row := in.db.QueryRowContext(r.Context(),
		`SELECT iif(state = 'failed', meeting, '') FROM jobs WHERE name = ?`, name)
	err := row.Scan(&failed)
	if failed != "" {
		err = in.client.Meetings.Delete(r.Context(), failed) // so that the next one can have its name
	}
	if failed != "" && err == nil || errors.Is(err, sql.ErrNoRows) || errors.Is(err, minutes.ErrNotFound) {
		err = in.add(r.Context(), name, r.Body)
	}
	in.show(w, r, err)
}

// add stores a recording, and creates its meeting and its job.
func (in *instance) add(ctx context.Context, name string, body io.Reader) error {
	f, err := os.CreateTemp(in.dir, "incoming-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(body, minutes.MaxRecordingSize+1)) // Resume rejects a longer one
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), in.path(name))
	}
	if err == nil {
		err = in.create(ctx, name)
	}
	_ = os.Remove(f.Name()) // which has gone unless something failed
	return err
}

// create creates the meeting of a job, and the job, unless it exists already. It can be repeated.
func (in *instance) create(ctx context.Context, name string) error {
	params := &minutes.MeetingCreateParams{Title: name, Date: minutes.DateOf(time.Now()), ExternalID: name}
	m, _, err := in.client.Meetings.Create(ctx, params)
	if err == nil {
		_, err = in.db.ExecContext(ctx, `INSERT INTO jobs (name, meeting) VALUES (?, ?)
			ON CONFLICT DO UPDATE SET meeting = excluded.meeting, state = 'queued', due = 0`, name, m.ID)
	}
	return err
}

// show responds with a job: its state, and its minutes or its last problem.
func (in *instance) show(w http.ResponseWriter, r *http.Request, err error) {
	var text []byte
	if err == nil {
		err = in.db.QueryRowContext(r.Context(), `SELECT json_object('state', state, 'text', text) FROM jobs
			WHERE name = ?`, r.PathValue("name")).Scan(&text)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // the user may have closed the connection
	}
}
