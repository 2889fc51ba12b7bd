package jobs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// engine is a job engine with a queue of its own.
type engine struct {
	server  string // where workers find it
	enqueue func()
	state   func() string // what the engine says of the job in the end
	races   bool          // whether a worker that was frozen first learns so, or has the minutes, is chance
}

var engines = []struct {
	name  string
	start func(*testing.T) engine
}{
	{"River", riverEngine},
	{"asynq", asynqEngine},
	{"NATS JetStream", natsEngine},
	{"cron", cronEngine},
	{"Temporal", temporalEngine},
}

// What happens in the middle of a job.
const (
	killed  = "worker killed"
	stops   = "worker stopped"
	frozen  = "worker frozen"
	tooLong = "attempt too long"
	failed  = "meeting failed"
	expired = "key rejected"
)

// limits are how long an attempt may take. River rescues a killed worker's job only after that.
var limits = map[string]string{
	killed: "10s", stops: "60s", frozen: "3m", tooLong: "3s", failed: "60s", expired: "60s",
}

func limitOf(t *testing.T) string {
	t.Helper()
	for what, d := range limits {
		if strings.HasSuffix(t.Name(), strings.ReplaceAll(what, " ", "_")) {
			return d
		}
	}
	require.Fail(t, "no limit")
	return ""
}

// Whatever happens to a worker, the job is done in the end, with one meeting and one recording. A
// failed meeting ends the job, and a rejected key does not.
// runs.txt has a row for each run.
func TestEngines_LoseNothing(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		for what := range limits {
			if e.name == "River" && what == frozen {
				continue // a frozen worker is like a killed one, because River gives no leases
			}
			t.Run(e.name+"/"+what, func(t *testing.T) {
				t.Parallel()
				if !testbase.Long() {
					t.Skip("uses real time: set MINUTES_LONG=1")
				}
				run(t, e.name, what, e.start(t))
			})
		}
	}
}

func run(t *testing.T, name, what string, e engine) {
	t.Helper()
	fake := minutestest.NewServer(t)
	switch what {
	case failed:
		fake.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusTranscriptionFailed})
	case expired:
		refuse := minutestest.Refuse(minutes.ErrOrganisationExpired)
		fake.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, refuse)
	default:
		fake.Script(minutestest.Script{Title: "Weekly", Hold: minutes.StatusTranscribing})
	}
	url, err := fake.Listen("")
	require.NoError(t, err)
	env := append(os.Environ(), "JOBS_WORKER="+name, "JOBS_SERVER="+e.server,
		"JOBS_LIMIT="+limits[what], "MINUTES_BASE_URL="+url, "MINUTES_API_KEY="+fake.Key())
	e.enqueue()
	first := startWorker(t, env)
	var end report
	if what == failed || what == expired {
		end = first.ended()
	} else {
		end = survive(t, fake, what, env, first)
		assert.Len(t, fake.Meetings(), 1)
		assert.Len(t, fake.Requests(minutes.OpUpload), 1)
	}
	if e.races && what == frozen {
		end = report{Ctx: "–", Error: "–"}
	}
	time.Sleep(time.Second) // the engine stores the result
	testkit.RequireRow(t, "../internal/test/jobs/runs.txt", name, what, end.Ctx, outcome(end), e.state())
}

// survive does something to the first worker, until a worker has the minutes. It returns how the
// attempt ended to which it was done.
func survive(t *testing.T, fake *minutestest.Server, what string, env []string, first *workerProcess) report {
	t.Helper()
	id := uploaded(t, fake)
	second := first
	end := report{Ctx: "–", Error: "–"}
	switch what {
	case killed:
		first.signal(syscall.SIGKILL)
		second = startWorker(t, env)
	case stops:
		first.signal(syscall.SIGTERM)
		end = first.ended()
		<-first.exited
		second = startWorker(t, env)
	case frozen:
		first.signal(syscall.SIGSTOP)
		second = startWorker(t, env)
	case tooLong:
		end = first.ended()
	}
	require.True(t, fake.Release(id))
	last := second.ended()
	for !last.Done { // an attempt that was under way before the release
		last = second.ended()
	}
	if what == frozen {
		first.signal(syscall.SIGCONT)
		end = first.ended()
	}
	return end
}

func outcome(r report) string {
	switch {
	case r.Done:
		return "the minutes"
	case r.Retryable:
		return r.Error + ", `Retryable`"
	}
	return r.Error
}

// uploaded waits until the meeting has its recording, and returns its id.
func uploaded(t *testing.T, fake *minutestest.Server) string {
	t.Helper()
	for range 600 {
		for _, m := range fake.Meetings() {
			if m.Status == minutes.StatusTranscribing {
				return m.ID
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.Fail(t, "no upload")
	return ""
}

// workerProcess is a child process that runs jobs.
type workerProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	reports chan report
	exited  chan struct{}
}

func startWorker(t *testing.T, env []string) *workerProcess {
	t.Helper()
	w := &workerProcess{t: t, cmd: exec.Command(os.Args[0])}
	w.reports = make(chan report, 100)
	w.exited = make(chan struct{})
	w.cmd.Env = env
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			text, found := strings.CutPrefix(lines.Text(), "report ")
			var r report
			if found && json.Unmarshal([]byte(text), &r) == nil {
				w.reports <- r
				continue
			}
			fmt.Println(t.Name(), lines.Text())
		}
		_ = w.cmd.Wait()
		close(w.exited)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.exited
	})
	return w
}

func (w *workerProcess) signal(s syscall.Signal) {
	w.t.Helper()
	require.NoError(w.t, w.cmd.Process.Signal(s))
}

// ended waits for the end of an attempt.
func (w *workerProcess) ended() report {
	w.t.Helper()
	patience := time.After(4 * time.Minute)
	for {
		select {
		case r := <-w.reports:
			w.t.Logf("worker %d: %+v", w.cmd.Process.Pid, r)
			if r.Ended {
				return r
			}
		case <-patience:
			require.Fail(w.t, "no attempt has ended")
		}
	}
}
