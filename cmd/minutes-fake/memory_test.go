package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// maxResident is how much memory the program may take under hostile clients, in
// MiB.
const maxResident = 256

// resident is the most memory that a process has taken, in MiB.
func resident(t *testing.T, pid int) (peak int) {
	t.Helper()
	if testbase.UnderRace {
		t.Skip("the race detector takes several times the memory")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("this system does not say how much memory a process takes")
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	require.True(t, ok)
	_, err = fmt.Sscan(rest, &peak)
	require.NoError(t, err)
	return peak >> 10
}

// Clients that stop in the middle of their bodies hold a bounded amount of
// memory, and others are served meanwhile.
func TestMemory_StalledBodies(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "none")
	for range testbase.Many(1000, 100) {
		stall(t, p.baseURL(), "POST /v1/projects", 1<<20)
	}
	status, _ := p.call(t, "POST /v1/projects", `{"name":"Vostok"}`)
	assert.Equal(t, http.StatusCreated, status)
	peak := resident(t, cmd.Process.Pid)
	t.Logf("%d MiB", peak)
	assert.LessOrEqual(t, peak, maxResident)
}

// stall sends all of a request but the last byte of its body, as far as the
// server takes it.
func stall(t *testing.T, base, what string, size int) {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetWriteDeadline(time.Now().Add(2*time.Second)))
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key_ci\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, size)
	_, _ = conn.Write(bytes.Repeat([]byte(" "), size-1))
}

// Clients that do not read what they asked for hold a bounded amount, too.
func TestMemory_SlowReaders(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "none")
	long := `{"name":"` + strings.Repeat("x", 60<<10) + `"}`
	for range testbase.Many(600, 60) { // many are more than the journal holds
		p.call(t, "POST /v1/projects", long)
	}
	for _, path := range []string{"/requests", "/report"} {
		for range 20 {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.control(), "http://"))
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, 1000))
			require.NoError(t, err)
		}
	}
	_, health := p.ask(t, "GET /health", "")
	assert.Equal(t, "ok", health["status"])
	peak := resident(t, cmd.Process.Pid)
	t.Logf("%d MiB", peak)
	assert.LessOrEqual(t, peak, maxResident)
}

// longRequest is a request to the control API that takes much memory.
type longRequest struct{ method, path, body string }

func longRequests() []longRequest {
	text := func(first, last string) string {
		return first + strings.Repeat("x", maxBody-len(first)-len(last)) + last
	}
	list := func(field, value string, n int) string {
		return `{"` + field + `":[` + strings.Repeat(value+",", n-1) + value + `]}`
	}
	return []longRequest{
		{"POST", "/scripts", text(`{"description":"`, `","name":""}`)},
		{"POST", "/scripts", strings.Repeat(" ", 4*maxBody) + "{}"},
		{"POST", "/faults", text(`{"match":{},"faults":[{"kind":"respond","body":"`, `","status":0}]}`)},
		{"PATCH", "/organisations/org_acme", text(`{"description":"`, `"}`)},
		{"PATCH", "/organisations/org_acme", list("keys", `{"secret":"x","scopes":["a"]}`, maxValues/3-9)},
		{"PATCH", "/organisations/org_acme", list("members", `{}`, maxValues/2-9)},
	}
}

// A body of the control API may have 4 MiB, and decoded it takes much more.
func TestMemory_LongControlBodies(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "none")
	var senders sync.WaitGroup
	for _, r := range longRequests() {
		for range testbase.Many(10, 1) {
			senders.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), r.method, p.control()+r.path, strings.NewReader(r.body))
				if !assert.NoError(t, err) {
					return
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if assert.NoError(t, err) {
					assert.Contains(t, []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, resp.StatusCode, "%s %s %.30s", r.method, r.path, r.body)
					assert.NoError(t, resp.Body.Close())
				}
			})
		}
	}
	senders.Wait()
	peak := resident(t, cmd.Process.Pid)
	t.Logf("%d MiB", peak)
	assert.LessOrEqual(t, peak, maxResident)
}

func TestControl_LimitsBodies(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for size, want := range map[int]int{maxBody: http.StatusOK, maxBody + 1: http.StatusRequestEntityTooLarge, 4 * maxBody: http.StatusRequestEntityTooLarge} {
		const frame = `{"credits":7}`
		status, text := p.send(t, "PATCH", p.control()+"/organisations/org_acme", strings.Repeat(" ", size-len(frame))+frame, "")
		assert.Equal(t, want, status, "%.200s", text)
	}
	status, _ := p.send(t, "PATCH", p.control()+"/organisations/org_acme", `{"members":[`+strings.Repeat("0,", maxValues)+`0]}`, "")
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
}
