// Command webservice takes recordings, answers at once with the id of the meeting,
// and has the minutes written in the background, whatever kills it meanwhile. It is
// offline, unless MINUTES_BASE_URL and MINUTES_API_KEY are set.
//
//	curl -T weekly.mp3 http://127.0.0.1:8090/recordings/weekly.mp3  # 202; again does no harm
//	curl http://127.0.0.1:8090/recordings/weekly.mp3                # how far it is, what came of it
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	addr := flag.String("addr", "127.0.0.1:8090", "serve on this address")
	dir := flag.String("dir", filepath.Join(os.TempDir(), "webservice"), "keep jobs in this directory")
	flag.Parse()
	client, err := minutes.NewFromEnv(minutes.WithUserAgent("webservice/1.0"), minutes.WithUploadConcurrency(4))
	if os.Getenv("MINUTES_BASE_URL") == "" && os.Getenv("MINUTES_API_KEY") == "" {
		world := minutestest.DefaultWorld()
		world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1} // the first look finds the minutes
		client, err = minutestest.New(minutestest.WithWorld(world)).Client(), nil
	}
	if err != nil {
		log.Fatal(err)
	}
	working, cancel := context.WithCancel(context.Background())
	s, err := start(working, client, *dir)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *addr, Handler: s, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { // requests end first; jobs stop where they are
		patience, stop := context.WithTimeout(working, 10*time.Second)
		defer stop()
		_ = server.Shutdown(patience)
		cancel()
	})
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-working.Done()
	s.work.Wait()
}

// job is a recording on its way to minutes. It is kept when it is over; until then
// its recording is, which is all that a restart needs.
type job struct {
	Name    string         `json:"name"`              // the user's
	Meeting string         `json:"meeting,omitempty"` // its id
	Status  minutes.Status `json:"status,omitempty"`  // as last seen
	Minutes string         `json:"minutes,omitempty"`
	Problem string         `json:"problem,omitempty"` // why there are none
}

type service struct {
	http.ServeMux
	client *minutes.Client
	dir    string
	ctx    context.Context // of the work in the background
	work   sync.WaitGroup
	mu     sync.Mutex
	jobs   map[string]*job // by name
}

// start goes on with what an earlier process has left in dir.
func start(ctx context.Context, client *minutes.Client, dir string) (*service, error) {
	s := &service{client: client, dir: dir, ctx: ctx, jobs: make(map[string]*job)}
	s.HandleFunc("PUT /recordings/{name}", s.put)
	s.HandleFunc("GET /recordings/{name}", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, http.StatusOK) })
	err := errors.Join(os.MkdirAll(s.path("over", ""), 0o700), os.MkdirAll(s.path("recordings", ""), 0o700))
	over, overErr := os.ReadDir(s.path("over", ""))
	left, leftErr := os.ReadDir(s.path("recordings", ""))
	for _, file := range over {
		var j job
		if data, err := os.ReadFile(s.path("over", file.Name())); err == nil && json.Unmarshal(data, &j) == nil {
			s.jobs[j.Name] = &j
		} // else it was being written, and its recording is there
	}
	for _, file := range left {
		if s.jobs[file.Name()] == nil {
			s.begin(&job{Name: file.Name()})
		}
	}
	return s, errors.Join(err, overErr, leftErr)
}

func (s *service) path(kind, name string) string { return filepath.Join(s.dir, kind, name) }

var goodName = regexp.MustCompile(`^\w[\w.-]{0,99}$`)

func (s *service) put(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !goodName.MatchString(name) {
		http.Error(w, "A name has letters, digits, dots, hyphens and underscores.", http.StatusBadRequest)
		return
	}
	switch err := s.accept(r.Context(), name, r.Body); {
	case err == nil:
		s.show(w, r, http.StatusAccepted)
	case minutes.Retryable(err) || minutes.KeyRejected(err):
		log.Print(err)
		http.Error(w, explain(err), http.StatusServiceUnavailable)
	default:
		http.Error(w, explain(err), http.StatusBadRequest)
	}
}

func (s *service) show(w http.ResponseWriter, r *http.Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[r.PathValue("name")]
	if j == nil {
		http.Error(w, "There is no recording of this name.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(j) // the user may have gone
}

// accept takes a recording in, once. After that, the job survives the process.
func (s *service) accept(ctx context.Context, name string, body io.Reader) error {
	f, err := os.CreateTemp(s.dir, "*-"+name)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // unless it has been moved
	_, err = io.Copy(f, io.LimitReader(body, minutes.MaxRecordingSize+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	recording, err := minutes.FromFile(f.Name())(ctx) // refuses what is none
	if err != nil {
		return err
	}
	_ = recording.Close() // it was only read
	j := &job{Name: name}
	if err := s.create(ctx, j); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[name] != nil {
		return nil // it was sent before
	}
	if err = os.Rename(f.Name(), s.path("recordings", name)); err == nil {
		s.begin(j)
	}
	return err
}

// create makes the meeting of a job, or finds it again. What it shows then is no
// look: it may come soon after the last look of a process that has died.
func (s *service) create(ctx context.Context, j *job) error {
	m, _, err := s.client.Meetings.Create(ctx, &minutes.MeetingCreateParams{
		Title: j.Name, Date: minutes.DateOf(time.Now()), ExternalID: "webservice-" + j.Name,
	})
	if err == nil {
		s.change(func() { j.Meeting, j.Status = m.ID, m.Status })
	}
	return err
}

func (s *service) change(shown func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown()
}

func (s *service) begin(j *job) {
	s.jobs[j.Name] = j
	s.work.Go(func() { s.finish(j) })
}

// finish does what is left of a job.
func (s *service) finish(j *job) {
	err := s.try(j)
	for minutes.Retryable(err) || minutes.KeyRejected(err) { // until that is mended
		log.Printf("%s: %v", j.Name, err)
		pause, stop := context.WithTimeout(s.ctx, time.Minute)
		<-pause.Done()
		stop()
		err = s.try(j)
	}
	if s.ctx.Err() != nil {
		return
	}
	if err != nil {
		log.Printf("%s: %v", j.Name, err)
		s.change(func() { j.Problem = explain(err) })
	}
	data, _ := json.Marshal(j)                                    // texts alone
	if os.WriteFile(s.path("over", j.Name), data, 0o600) == nil { // or the next start goes on from here
		_ = os.Remove(s.path("recordings", j.Name))
	}
}

func (s *service) try(j *job) error {
	if j.Meeting == "" { // an earlier process began it
		if err := s.create(s.ctx, j); err != nil {
			return err
		}
	}
	open := minutes.FromFile(s.path("recordings", j.Name))
	result, err := s.client.Meetings.Resume(s.ctx, j.Meeting, open, &minutes.ProcessOptions{
		Format:   minutes.FormatMarkdown,
		OnStatus: func(m *minutes.Meeting) { s.change(func() { j.Status = m.Status }) },
	})
	if err == nil {
		s.change(func() { j.Minutes = result.Minutes.Content })
	}
	return err
}

// explain tells a user in plain words why there are no minutes.
func explain(err error) string {
	failed, _ := errors.AsType[*minutes.MeetingFailedError](err)
	switch {
	case errors.Is(err, minutes.ErrRecordingEmpty):
		return "The recording is empty."
	case errors.Is(err, minutes.ErrRecordingTooLarge):
		return "The recording is over one gigabyte."
	case errors.Is(err, minutes.ErrRecordingFormat):
		return "What kind of recording is this? MP3, M4A and WAV are welcome."
	case failed != nil && failed.Status == minutes.StatusTranscribeBlocked:
		return "Our quota is used up. Please send the recording next month, by another name."
	case failed != nil:
		return "The recording cannot be read. Please send it in another format, by another name."
	}
	return "Something is wrong on our side. Please try again later."
}
