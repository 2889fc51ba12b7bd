package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// process is the program as a process.
type process struct {
	*exec.Cmd
	opens chan struct{} // closed before it opens its database
	addr  chan string   // once it serves
	said  bytes.Buffer
	ended chan struct{}
}

func startProcess(t *testing.T, dir string, env ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-dir", dir), opens: make(chan struct{}), addr: make(chan string, 1), ended: make(chan struct{})}
	p.Env = append(append(os.Environ(), asTheProgram+"=1"), env...)
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	go func() {
		defer close(p.ended)
		defer close(p.addr)
		for lines := bufio.NewScanner(io.TeeReader(stderr, &p.said)); lines.Scan(); {
			var line struct{ Msg, Addr string }
			_ = json.Unmarshal(lines.Bytes(), &line) // a panic is no JSON
			switch line.Msg {
			case "opening the database":
				close(p.opens)
			case "serving":
				p.addr <- line.Addr
			}
		}
	}()
	return p
}

// end waits for the end of a process that was sent a signal.
func (p *process) end() error {
	<-p.ended
	return p.Wait()
}

// A process that gets a SIGTERM ends soon and without an error.
func TestProcess_StopsAtSIGTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		p := startProcess(t, dir, "MINUTES_BASE_URL=", "MINUTES_API_KEY=")
		assert.NotEmpty(t, <-p.addr)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NoError(t, p.end(), p.said.String())
	}
}

// So does one that waits for the database of another.
func TestProcess_StandbyStopsAtSIGTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startProcess(t, dir, "MINUTES_BASE_URL=", "MINUTES_API_KEY=")
	assert.NotEmpty(t, <-first.addr)
	standby := startProcess(t, dir, "MINUTES_BASE_URL=", "MINUTES_API_KEY=")
	<-standby.opens
	for _, p := range []*process{standby, first} {
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NoError(t, p.end(), p.said.String())
	}
	assert.Empty(t, <-standby.addr)
}

// killer is the service behind a connection that kills the process at a request.
type killer struct {
	*minutestest.Server
	mu   sync.Mutex
	left int // requests until then
	kill func()
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	k.left--
	now, kill, when := k.left == 0, k.kill, rand.IntN(3)
	k.mu.Unlock()
	if now && when == 0 {
		kill() // before the request takes effect
	}
	if now && when == 1 {
		r.Body = &dying{r.Body, kill}
	}
	k.Handler().ServeHTTP(w, r)
	if now && when == 2 {
		kill() // after it has taken effect, and before its response
	}
}

// dying is a body whose sender is killed while it is read.
type dying struct {
	io.ReadCloser
	kill func()
}

func (d *dying) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p[:min(len(p), 100)])
	d.kill()
	return n, err
}

// A webservice that is killed at any instant, and started again at once, has one meeting with
// one audio and its minutes for each recording. It never polls too soon and loses no recording.
func TestProcess_Killed(t *testing.T) {
	t.Parallel()
	recordings, kills := 12, 6
	long := os.Getenv("MINUTES_LONG") != ""
	if long {
		recordings, kills = 200, 100
	}
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}
	srv := &killer{Server: minutestest.NewServer(t, minutestest.WithWorld(world))}
	for i := range recordings {
		if i%3 == 0 { // its minutes are not ready before the last kill
			srv.Script(minutestest.Script{Title: name(i), Hold: minutes.StatusTranscribing})
		}
	}
	fake := httptest.NewServer(srv)
	defer fake.Close()
	dir, env := t.TempDir(), []string{"MINUTES_BASE_URL=" + fake.URL, "MINUTES_API_KEY=" + srv.Key()}
	accepted, began := map[int]bool{}, time.Now()
	for life := range kills {
		p := startProcess(t, dir, env...)
		dead, kill := context.WithCancel(t.Context())
		context.AfterFunc(dead, func() { _ = p.Process.Kill() })
		if life%10 == 5 { // while it starts
			time.AfterFunc(rand.N(100*time.Millisecond), kill)
		} else {
			srv.killAt(1+rand.IntN(40), kill)
		}
		if addr, ok := <-p.addr; ok {
			time.AfterFunc(300*time.Millisecond, kill) // if there is less to do
			send(dead, t, addr, accepted, recordings*(life+1)/kills)
		}
		_ = p.end()
		kill()
		if life%10 == 9 || !long {
			checkNothingLost(t, dir, accepted)
		}
	}
	t.Log(kills, "kills took", time.Since(began))
	if !long {
		return // an interrupted job takes another thirty seconds
	}
	for i := range recordings {
		srv.Script(minutestest.Script{Title: name(i), Stages: world.Stages})
	}
	for _, m := range srv.Meetings() {
		srv.Release(m.ID)
	}
	srv.killAt(-1, nil) // no longer
	p := startProcess(t, dir, env...)
	addr := <-p.addr
	send(t.Context(), t, addr, accepted, recordings)
	require.Eventually(t, func() bool { return done(t, addr) == recordings }, 2*time.Minute, 200*time.Millisecond)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.end(), p.said.String())
	checkNothingLost(t, dir, accepted)
	for _, m := range srv.Meetings() {
		assert.Equal(t, minutes.StatusMinutesReady, m.Status)
		arrived := 0
		for _, h := range m.History {
			if h.Status == minutes.StatusAudioUploaded {
				arrived++
			}
		}
		assert.Equal(t, 1, arrived)
	}
	assert.Len(t, srv.Meetings(), recordings)
}

// killAt has the nth request from now kill the process.
func (k *killer) killAt(n int, kill func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left, k.kill = n, kill
}

// done returns how many jobs are done.
func done(t *testing.T, addr string) (n int) {
	resp, err := http.Get("http://" + addr + "/recordings/")
	if !assert.NoError(t, err) {
		return 0
	}
	defer resp.Body.Close()
	var jobs []job
	assert.NoError(t, json.NewDecoder(resp.Body).Decode(&jobs))
	for _, j := range jobs {
		if j.State == "done" {
			n++
		}
	}
	return n
}

// checkNothingLost checks what a process that is dead has left: each accepted recording has
// its minutes, or is still there.
func checkNothingLost(t *testing.T, dir string, accepted map[int]bool) {
	t.Helper()
	table, err := openTable(t.Context(), dir)
	require.NoError(t, err)
	defer table.db.Close()
	states := map[string]int{}
	for i := range accepted {
		text, err := table.do(t.Context(), `SELECT job FROM jobs WHERE name = ?`, name(i))
		require.NoError(t, err)
		var j job
		require.NoError(t, json.Unmarshal(text, &j), "%s is lost", name(i))
		states[j.State]++
		audio, err := os.ReadFile(table.path(&j))
		switch {
		case j.State == "done":
			assert.Contains(t, j.Minutes, "# "+name(i))
			assert.ErrorIs(t, err, os.ErrNotExist)
		case j.Minutes == "":
			assert.Equal(t, "queued", j.State, j.Problem)
			assert.Empty(t, strings.ReplaceAll(string(audio), name(i), ""))
			assert.NotEmpty(t, audio)
		}
	}
	t.Log(states)
}

// send sends the first n recordings that are not accepted yet.
func send(ctx context.Context, t *testing.T, addr string, accepted map[int]bool, n int) {
	t.Helper()
	var users sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		if accepted[i] {
			continue
		}
		users.Go(func() {
			body := strings.NewReader(strings.Repeat(name(i), 1+rand.IntN(20_000)))
			req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+addr+"/recordings/"+name(i), body)
			if !assert.NoError(t, err) {
				return
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return // it is dead
			}
			defer resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if assert.Equal(t, 2, resp.StatusCode/100, resp.Status) {
				accepted[i] = true
			}
		})
	}
	users.Wait()
}

func name(i int) string { return fmt.Sprintf("recording-%d.mp3", i) }
