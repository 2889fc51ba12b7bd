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

// Bodies of the control API may have 16 MiB, but not many of them at a time.
func TestMemory_LongControlBodies(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "none")
	const frame = `{"description":"","name":""}`
	body := []byte(`{"description":"` + strings.Repeat("x", maxBody-len(frame)) + `","name":""}`)
	require.Len(t, body, maxBody)
	var senders sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	all := testbase.Many(60, 4)
	for range all {
		senders.Go(func() {
			resp, err := http.Post(p.control()+"/scripts", "application/json", bytes.NewReader(body))
			if !assert.NoError(t, err) {
				return
			}
			defer resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			got[resp.StatusCode]++
		})
	}
	senders.Wait()
	t.Log(got)
	assert.Equal(t, map[int]int{http.StatusBadRequest: all}, got, "no such field")
	peak := resident(t, cmd.Process.Pid)
	t.Logf("%d MiB", peak)
	assert.LessOrEqual(t, peak, maxResident)
}

func TestControl_TakesBodiesOf16MiB(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for size, want := range map[int]int{maxBody: http.StatusOK, maxBody + 1: http.StatusRequestEntityTooLarge} {
		const frame = `{"credits":7}`
		status, text := p.send(t, "PATCH", p.control()+"/organisations/org_acme", strings.Repeat(" ", size-len(frame))+frame, "")
		assert.Equal(t, want, status, "%.200s", text)
	}
	status, _ := p.send(t, "PATCH", p.control()+"/organisations/org_acme", `{"members":[`+strings.Repeat("0,", maxValues)+`0]}`, "")
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
}
