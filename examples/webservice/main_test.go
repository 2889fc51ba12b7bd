package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// process is an instance that can be killed.
type process struct {
	*exec.Cmd
	addr  string
	tries atomic.Int64 // that ended
}

// startProcess starts an instance, and returns when it serves.
func startProcess(t *testing.T, dir string, env ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-dir", dir, "-lease", "2s")}
	p.Env = append(append(os.Environ(), asTheProgram+"=1"), env...)
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	addr := make(chan string, 1)
	go func() {
		defer close(addr)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, Addr string }
			_ = json.Unmarshal(lines.Bytes(), &line) // a panic is not JSON
			switch line.Msg {
			case "serving":
				addr <- line.Addr
			case "try ended":
				p.tries.Add(1)
			}
		}
	}()
	p.addr = <-addr
	require.NotEmpty(t, p.addr)
	return p
}

func (p *process) request(t *testing.T, method, name, body string) (job shown) {
	address := "http://" + p.addr + "/recordings/" + name
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&job))
	return job
}

// A new key in the file is used at once, so the old one can be revoked.
func TestKeyFile_Rotates(t *testing.T) {
	srv := minutestest.NewServer(t)
	address, err := srv.Listen("")
	require.NoError(t, err)
	t.Setenv("MINUTES_BASE_URL", address)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("key_ci\n"), 0o600))
	client, err := newClient(file)
	require.NoError(t, err)
	_, err = client.Usage.Get(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(file, []byte("key_ada\n"), 0o600))
	srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ci").Revoked = true })
	_, err = client.Usage.Get(t.Context())
	require.NoError(t, err)
	require.Len(t, srv.Requests(minutes.OpUsageGet), 2, "none was repeated after a 401")
}

// shown is a job as a user sees it.
type shown struct{ State, Text string }

// Two instances share the work. When one is killed, the other takes over, so each job is done once.
func TestInstances_OneKilled(t *testing.T) {
	t.Parallel()
	const recordings = 40
	world := minutestest.DefaultWorld()
	acme := &world.Organisations[0]
	second := *acme.Key("key_ci") // because the audit takes all requests with one key for one program's
	second.Secret = "key_ci_2"
	acme.Keys = append(acme.Keys, second)
	srv := minutestest.NewServer(t, minutestest.WithWorld(world))
	everyUpload := minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}
	srv.Inject(everyUpload, minutestest.Delay(500*time.Millisecond))
	service := httptest.NewServer(srv.Handler())
	defer service.Close()

	dir := t.TempDir()
	victim := startProcess(t, dir, "MINUTES_BASE_URL="+service.URL, "MINUTES_API_KEY=key_ci")
	other := startProcess(t, dir, "MINUTES_BASE_URL="+service.URL, "MINUTES_API_KEY=key_ci_2")
	for i := range recordings {
		p := []*process{victim, other}[i%2]
		p.request(t, "PUT", fmt.Sprint(i, ".mp3"), "ID3\x04 sound")
	}
	done := func() (n int) {
		for i := range recordings {
			if other.request(t, "GET", fmt.Sprint(i, ".mp3"), "").State == "done" {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool {
		return victim.tries.Load() > 3 && other.tries.Load() > 3
	}, time.Minute, 10*time.Millisecond)
	require.Less(t, victim.tries.Load()+other.tries.Load(), int64(recordings), "killed in the middle")
	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait())
	require.Eventually(t, func() bool { return done() == recordings }, time.Minute, 100*time.Millisecond)

	for _, m := range srv.Meetings() {
		arrived := 0
		for _, h := range m.History {
			if h.Status == minutes.StatusAudioUploaded {
				arrived++
			}
		}
		assert.Equal(t, 1, arrived, m.Title)
	}
	assert.Len(t, srv.Meetings(), recordings)
	require.NoError(t, other.Process.Signal(syscall.SIGTERM))
	require.NoError(t, other.Wait(), "a signal is not an error, also for an instance that has nothing to do")
}
