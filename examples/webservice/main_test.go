package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The test binary is the program itself if this variable is set.
const asTheProgram = "WEBSERVICE_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asTheProgram) != "" {
		main()
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// webservice is the program without its socket and its signals.
type webservice struct {
	*queue
	t    *testing.T
	stop func() // as SIGTERM
}

// start starts a webservice with the jobs in dir.
func start(t *testing.T, srv *minutestest.Server, dir string, opts ...minutes.Option) *webservice {
	t.Helper()
	table, err := openTable(t.Context(), dir)
	require.NoError(t, err)
	client := srv.Client(append(opts, minutes.WithStore(states{table}), minutes.WithObserver(observe))...)
	s := &webservice{queue: &queue{table: table, client: client}, t: t}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.run(ctx)
	}()
	s.stop = func() {
		cancel()
		<-stopped
		_ = table.db.Close()
	}
	t.Cleanup(s.stop)
	return s
}

// call makes a request of a user and returns the status and the jobs in the response.
func (s *webservice) call(method, path, body string) (int, []job) {
	response := httptest.NewRecorder()
	routes(s.queue).ServeHTTP(response, httptest.NewRequest(method, path, strings.NewReader(body)))
	var jobs []job
	if response.Code/100 == 2 {
		assert.NoError(s.t, json.Unmarshal(response.Body.Bytes(), &jobs), response.Body)
	}
	return response.Code, jobs
}

// job returns the job of a name.
func (s *webservice) job(name string) job {
	s.t.Helper()
	_, jobs := s.call("GET", "/recordings/"+name, "")
	require.Len(s.t, jobs, 1)
	return jobs[0]
}

// put sends a recording that is accepted.
func (s *webservice) put(name string) {
	s.t.Helper()
	code, _ := s.call("PUT", "/recordings/"+name, "sound")
	require.Equal(s.t, 202, code)
}

// hasRecording reports whether the recording of a job is on disk.
func (s *webservice) hasRecording(name string) bool {
	j := s.job(name)
	_, err := os.Stat(s.path(&j))
	return err == nil
}
