package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The test binary is the program itself when this variable is set.
const asTheProgram = "WEBSERVICE_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asTheProgram) != "" {
		main()
		return
	}
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// call makes a request of a user's.
func call(s *service, method, name, body string) (int, string) {
	reply := httptest.NewRecorder()
	s.ServeHTTP(reply, httptest.NewRequest(method, "/recordings/"+name, strings.NewReader(body)))
	return reply.Code, strings.TrimSpace(reply.Body.String())
}

func decode(t *testing.T, text string) (j job) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &j), text)
	return j
}

// realistic has minutes take as long as they do.
func realistic() minutestest.Option {
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: time.Minute}
	return minutestest.WithWorld(world)
}

func TestJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic())
		dir := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		s, err := start(ctx, srv.Client(), dir)
		require.NoError(t, err)

		code, text := call(s, "PUT", "weekly.mp3", "sound")
		require.Equal(t, http.StatusAccepted, code, text)
		first := decode(t, text)
		assert.NotEmpty(t, first.Meeting)
		code, text = call(s, "PUT", "weekly.mp3", "sound")
		assert.Equal(t, http.StatusAccepted, code)
		assert.Equal(t, first.Meeting, decode(t, text).Meeting, "the same again")
		time.Sleep(3 * time.Minute)
		code, text = call(s, "GET", "weekly.mp3", "")
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, minutes.StatusTranscribing, decode(t, text).Status)

		// A restart on the way, soon after a look, and one when all is over.
		for range 2 {
			stop()
			s.work.Wait()
			ctx, stop = context.WithCancel(t.Context())
			s, err = start(ctx, srv.Client(), dir)
			require.NoError(t, err)
			time.Sleep(10 * time.Minute)
			_, text = call(s, "GET", "weekly.mp3", "")
			over := decode(t, text)
			assert.Equal(t, first.Meeting, over.Meeting)
			assert.Equal(t, minutes.StatusMinutesReady, over.Status)
			assert.Contains(t, over.Minutes, "# weekly.mp3")
			assert.Empty(t, over.Problem)
		}
		stop()
		s.work.Wait()
		assert.Len(t, srv.Requests(minutestest.OpUpload), 1)
		assert.Len(t, srv.Requests("meetings.minutes"), 1)
		left, err := os.ReadDir(filepath.Join(dir, "recordings"))
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

// Whatever goes wrong is told in the user's words.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, body string
		outcome    minutes.Status
		code       int
		words      string
	}{
		"bad name":   {"a%2fb.mp3", "sound", "", 400, "A name has letters"},
		"hidden":     {".mp3", "sound", "", 400, "A name has letters"},
		"empty":      {"a.mp3", "", "", 400, "is empty"},
		"no audio":   {"a.txt", "text", "", 400, "What kind of recording"},
		"rejected":   {"a.mp3", "sound", minutes.StatusAudioRejected, 202, "another format"},
		"no quota":   {"a.mp3", "sound", minutes.StatusTranscribeBlocked, 202, "next month"},
		"no minutes": {"a.mp3", "sound", minutes.StatusMinutesFailed, 202, "another format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, realistic())
				require.NoError(t, srv.Script(minutestest.Script{Outcome: test.outcome}))
				dir := t.TempDir()
				s, err := start(t.Context(), srv.Client(), dir)
				require.NoError(t, err)
				code, text := call(s, "PUT", test.file, test.body)
				assert.Equal(t, test.code, code)
				if s.work.Wait(); code == http.StatusAccepted {
					_, text = call(s, "GET", test.file, "")
					text = decode(t, text).Problem
				} else {
					assert.Empty(t, srv.Requests())
					code, _ := call(s, "GET", test.file, "")
					assert.Equal(t, http.StatusNotFound, code)
				}
				assert.Contains(t, text, test.words)
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				assert.Len(t, entries, 2, "nothing is left over")
			})
		})
	}
}

// While the service is away, or refuses the key, nothing new is taken in, and what
// was taken in is done when that is over.
func TestTroubleThatPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic())
		s, err := start(t.Context(), srv.Client(minutes.WithRetries(minutes.RetryPolicy{})), t.TempDir())
		require.NoError(t, err)
		srv.Inject(minutestest.Match{Operation: "meetings.create"}, minutestest.BadGateway())
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: 3}, minutestest.RefuseUpload(503, "SlowDown"))
		srv.Inject(minutestest.Match{Operation: "meetings.minutes"}, minutestest.Refuse(minutes.ErrOrganisationExpired))
		code, text := call(s, "PUT", "weekly.mp3", "sound")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, text, "try again later")
		code, _ = call(s, "PUT", "weekly.mp3", "sound")
		assert.Equal(t, http.StatusAccepted, code)
		s.work.Wait()
		_, text = call(s, "GET", "weekly.mp3", "")
		assert.NotEmpty(t, decode(t, text).Minutes, text)
	})
}

// busy is a service that knows how many requests it works on.
type busy struct {
	*minutestest.Server
	requests atomic.Int64
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	defer b.requests.Add(-1)
	if strings.Contains(r.URL.Path, "/storage/") {
		time.Sleep(rand.N(100 * time.Millisecond)) // a recording takes a while
	}
	b.Handler().ServeHTTP(w, r)
}

// settle waits until what a process sent last has taken effect, or has not: one that
// was followed by another at once would be a second worker beside it.
func (b *busy) settle() {
	for quiet := 0; quiet < 5; quiet++ {
		if time.Sleep(10 * time.Millisecond); b.requests.Load() > 0 {
			quiet = 0
		}
	}
}

// program returns what starts the program and stops it again, and where it serves.
func program(t *testing.T, env ...string) (start func() (process *exec.Cmd, stop func()), address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	address, dir := listener.Addr().String(), t.TempDir()
	return func() (*exec.Cmd, func()) {
		var said bytes.Buffer
		process := exec.Command(os.Args[0], "-addr", address, "-dir", dir)
		process.Env = append(append(os.Environ(), asTheProgram+"=1"), env...)
		process.Stdout, process.Stderr = &said, &said
		require.NoError(t, process.Start())
		return process, func() {
			user(t, 0, address) // so that it has surely begun
			require.NoError(t, process.Process.Signal(syscall.SIGTERM))
			require.NoError(t, process.Wait(), said.String())
		}
	}, address
}

func TestOffline(t *testing.T) {
	t.Parallel()
	start, _ := program(t, "MINUTES_BASE_URL=", "MINUTES_API_KEY=")
	for range 2 {
		_, stop := start()
		stop()
	}
}

// A service that is killed a hundred times, at any point of its work, comes to one
// meeting with one audio and its minutes for each recording, and never looks at a
// meeting too soon.
func TestKilled(t *testing.T) {
	t.Parallel()
	recordings, kills, arrivals := 20, 10, 2*time.Second
	long := os.Getenv("MINUTES_LONG") != ""
	if long {
		recordings, kills, arrivals = 200, 100, time.Minute
	}
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}
	all := &busy{Server: minutestest.NewServer(t, minutestest.WithWorld(world))}
	for i := range recordings {
		if long && i%3 > 0 { // under way for long, and looked at again and again
			stages := minutestest.Stages{Prepare: rand.N(2 * time.Minute), Transcribe: rand.N(2 * time.Minute), Write: rand.N(2 * time.Minute)}
			require.NoError(t, all.Script(minutestest.Script{Title: name(i), Stages: stages}))
		}
	}
	fake := httptest.NewServer(all)
	defer fake.Close()
	live, address := program(t, "MINUTES_BASE_URL="+fake.URL, "MINUTES_API_KEY="+all.Key())
	var users sync.WaitGroup
	for i := range recordings {
		users.Go(func() {
			time.Sleep(rand.N(arrivals))
			user(t, i, address)
		})
	}
	for kill := range kills {
		process, _ := live()
		life := rand.N(500 * time.Millisecond)
		if long && kill%10 == 9 {
			life = 30*time.Second + rand.N(5*time.Second) // a second look comes now
		}
		time.Sleep(life)
		require.NoError(t, process.Process.Kill())
		_ = process.Wait()
		all.settle()
	}
	_, stop := live()
	users.Wait()
	stop()

	n := 0
	for m, err := range all.Client().Meetings.All(t.Context(), nil) {
		require.NoError(t, err)
		n++
		assert.Equal(t, minutes.StatusMinutesReady, m.Status)
		whole, _ := all.Meeting(m.ID)
		require.NotNil(t, whole.Audio)
		arrived := 0
		for _, h := range whole.History {
			if h.Status == minutes.StatusAudioUploaded {
				arrived++
			}
		}
		assert.Equal(t, 1, arrived)
	}
	assert.Equal(t, recordings, n)
	assert.Empty(t, all.Violations())
}

func name(i int) string { return fmt.Sprintf("recording-%d.mp3", i) }

// user hands a recording in, and asks until there are minutes.
func user(t *testing.T, i int, address string) {
	url := "http://" + address + "/recordings/" + name(i)
	body := strings.Repeat(name(i), 1+rand.IntN(20_000))
	for method := http.MethodPut; ; time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if !assert.NoError(t, err) {
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // it is dead
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		var j job
		switch {
		case err != nil:
		case resp.StatusCode == http.StatusAccepted:
			method = http.MethodGet
		case resp.StatusCode == http.StatusOK && json.Unmarshal(answer, &j) == nil && j.Minutes != "":
			assert.Contains(t, j.Minutes, "# "+name(i))
			return
		case resp.StatusCode != http.StatusOK || j.Problem != "":
			t.Errorf("%s: %d %s", name(i), resp.StatusCode, answer)
			return
		}
	}
}
