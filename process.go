package minutes

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// ProcessOptions tune the whole job; the zero value, or nil, is fine.
type ProcessOptions struct {
	Format     Format // of the minutes; empty is the service's default, HTML
	Transcript bool   // fetch the transcript, too
	// Restart deletes a meeting that an earlier run left in a failure state,
	// found by its ExternalID, and starts over. The deletion cannot be undone.
	Restart  bool
	OnStatus func(*Meeting)          // as in WaitOptions
	Progress func(sent, total int64) // as in UploadOptions
	// Uploads is how many jobs of a ProcessAll create and upload at a time; 0
	// means 4. What only waits does not count.
	Uploads int
}

// defaultUploads is how many uploads of a ProcessAll run at a time.
const defaultUploads = 4

func (o *ProcessOptions) orDefault() (ProcessOptions, error) {
	var opts ProcessOptions
	if o != nil {
		opts = *o
	}
	if opts.Uploads == 0 {
		opts.Uploads = defaultUploads
	}
	if opts.Uploads < 0 {
		return opts, &ParamError{"opts.Uploads", "must not be negative"}
	}
	return opts, checkTexts(text{"opts.Format", string(opts.Format)})
}

// Result is what a job came to. Where it failed, it holds what there is: the
// Meeting as soon as that exists.
type Result struct {
	Params     *MeetingCreateParams // the job's own
	Meeting    *Meeting             // as last seen
	Created    bool                 // this run made the meeting; see Create
	Minutes    *Minutes
	Transcript string // only with ProcessOptions.Transcript
}

// Process does the whole job: it creates the meeting, uploads the recording,
// waits and fetches the minutes. It does not close rec.
//
// With params.ExternalID it can be run again after a crash at any point, or by
// two workers at once: it goes on from whatever state the meeting is in, and
// there will be one meeting, one audio and one set of minutes. Without one, each
// run creates a meeting. (Of two workers at once, one may ask for an upload URL
// that it no longer needs, which the audit of package minutestest points out.)
//
// Outside a testing/synctest bubble it takes half a minute at the least where
// the first look finds the meeting unfinished, however fast the service is.
//
// Where the meeting is there already, being shown it by the create counts as the
// first look, so that a worker that is restarted does not look again at once.
//
// It costs one request each to create the meeting, to ask for the upload URL, to
// upload and to fetch the minutes (and the transcript), besides the looks of
// [MeetingsService.Wait].
//
// A job whose recording is no longer at hand can be finished by
// [MeetingsService.FindByExternalID] and [MeetingsService.WaitForMinutes].
//
// The Result is nil only where nothing was begun. Errors: those of Create,
// Upload, WaitForMinutes and Transcript. A meeting that an earlier run left in a
// failure state is a *MeetingFailedError at once: the interface allows no other
// try under its ExternalID until it is deleted, which ProcessOptions.Restart
// does.
func (s *MeetingsService) Process(ctx context.Context, params *MeetingCreateParams, rec Recording, opts *ProcessOptions) (*Result, error) {
	o, err := opts.orDefault()
	if err != nil {
		return nil, err
	}
	if err := params.check(); err != nil {
		return nil, err
	}
	if err := rec.check(); err != nil {
		return nil, err
	}
	r := &Result{Params: params}
	for starts := 1; ; starts++ {
		err = s.begin(ctx, r, func() (Recording, error) { return rec, nil }, o)
		if err == nil {
			err = s.conclude(ctx, r, o)
		}
		if !startsOver(r, o, err, starts) {
			return r, err
		}
	}
}

// startsOver reports whether a job whose meeting is gone begins again: another
// worker has found it failed, and made another in its place.
func startsOver(r *Result, o ProcessOptions, err error, starts int) bool {
	const most = 3
	gone := errors.Is(err, ErrNotFound) && r.Minutes == nil // or it is the transcript that is not found
	return o.Restart && r.Params.ExternalID != "" && r.Meeting != nil && gone && starts < most
}

// begin brings a job to where the meeting has its audio.
func (s *MeetingsService) begin(ctx context.Context, r *Result, open func() (Recording, error), o ProcessOptions) error {
	m, created, err := s.Create(ctx, r.Params)
	if err == nil && o.Restart && m.Status.Failed() {
		// Another worker may have deleted it first.
		if err := s.Delete(ctx, m.ID); err != nil && !errors.Is(err, ErrNotFound) {
			r.Meeting = m
			return err
		}
		m, created, err = s.Create(ctx, r.Params)
	}
	if err != nil {
		return err
	}
	r.Meeting, r.Created = m, created
	switch {
	case m.Status.Failed():
		return &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status != StatusCreated:
		return nil
	}
	rec, err := open()
	if err != nil {
		return err
	}
	err = s.Upload(ctx, m.ID, rec, &UploadOptions{Progress: o.Progress})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*ParamError](err); ok {
		return err
	}
	if errors.Is(err, ErrPartialAudio) && r.Params.ExternalID == "" {
		return err // no other worker knows the meeting
	}
	// Another worker's upload may have come first, which refuses this one.
	there, lookErr := s.core().poller.hasAudio(ctx, m.ID)
	switch {
	case lookErr != nil:
		return fmt.Errorf("%w; whether the meeting has audio all the same is not known: %w", err, lookErr)
	case there:
		return nil
	}
	return err
}

// lastSeen takes in how a wait that failed saw the meeting last.
func (r *Result) lastSeen(err error) {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		r.Meeting = failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok && wait.Meeting != nil {
		seen := wait.Meeting
		if seen.CreatedAt == 0 { // among very many waits, no more is kept than the status
			seen = r.Meeting.clone()
			seen.Status = wait.Meeting.Status
		}
		r.Meeting = seen
	}
}

// conclude waits for a job whose audio is there and fetches what it was for.
func (s *MeetingsService) conclude(ctx context.Context, r *Result, o ProcessOptions) error {
	if r.Meeting.Status != StatusMinutesReady {
		m, err := s.Wait(ctx, r.Meeting.ID, &WaitOptions{OnStatus: o.OnStatus})
		if err != nil {
			r.lastSeen(err)
			return err
		}
		r.Meeting = m
	} else if o.OnStatus != nil {
		o.OnStatus(r.Meeting)
	}
	minutes, err := s.finishedMinutes(ctx, r.Meeting, o.Format)
	if err != nil {
		return err
	}
	r.Minutes = minutes
	if o.Transcript {
		r.Transcript, err = s.finishedTranscript(ctx, r.Meeting)
	}
	return err
}

// Job is one recording for [MeetingsService.ProcessAll].
type Job struct {
	Params *MeetingCreateParams // with an ExternalID, so that the job can be run again
	// Open opens the recording, when it comes to be uploaded and only then; it
	// is closed after that. See OpenRecording. Its meeting exists by then, and
	// stays without audio where Open fails.
	Open func() (Recording, error)
	// Progress is of this job's upload, as in UploadOptions; nil leaves it to
	// ProcessOptions.Progress.
	Progress func(sent, total int64)
}

// ProcessAll does many jobs, each as [MeetingsService.Process] does one, and
// yields each as it ends: the Result, whose Params are the job's own, and the
// error where it failed. One job's failure does not stop the others. The next
// job is asked for when there is room for its upload; ProcessOptions.Uploads
// bounds uploads, not waits. Where jobs or opts cannot be used, one *ParamError
// is yielded, with a nil Result.
//
// jobs is read on a goroutine of its own: while it blocks, what has ended is
// yielded all the same, and ctx is obeyed. What it shares with the loop needs a
// lock, therefore. Open, OnStatus and Progress are called from many goroutines.
//
// When ctx ends, no job is taken any more, and those that had begun are yielded
// with their errors. When the loop is left, they are cancelled; with an
// ExternalID, a later run goes on where they were. In both cases jobs is told so
// at the next job that it gives, which is not begun, or at once where it is not
// being asked for one.
//
// A panic in Open, OnStatus or Progress goes on where the loop is, after the
// other jobs were cancelled and have ended, and so does a panic in jobs. A job of
// which one of the three ends its goroutine, as [runtime.Goexit] and a test's
// FailNow do, is yielded with an error that says so.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.orDefault()
		if err = checkInput(ctx, "jobs", jobs == nil, err); err != nil {
			yield(nil, err)
			return
		}
		all := processAll{meetings: s, options: o, room: make(chan struct{}, o.Uploads), ended: make(chan jobEnd)}
		if panicked := all.run(ctx, jobs, yield); panicked != nil {
			panic(panicked)
		}
	}
}

// processAll is one ProcessAll at work.
type processAll struct {
	meetings *MeetingsService
	options  ProcessOptions
	room     chan struct{} // holds an element for each upload
	running  int           // jobs that have begun and were not heard of in ended
	ended    chan jobEnd
}

// jobEnd is what a job came to.
type jobEnd struct {
	result   *Result
	err      error
	panicked any // by one of its callbacks
}

// run returns with what a job's callback panicked, when no job runs any more.
func (a *processAll) run(ctx context.Context, jobs iter.Seq[Job], yield func(*Result, error) bool) (panicked any) {
	ctx, cancel := context.WithCancel(ctx)
	in := background(a.withRoom(ctx, jobs))
	defer in.stop()
	defer func() {
		cancel()
		for ; a.running > 0; a.running-- {
			if end := <-a.ended; panicked == nil {
				panicked = end.panicked
			}
		}
	}()
	next, done := in.next, ctx.Done()
	for next != nil || a.running > 0 {
		select {
		case <-done:
			next, done = nil, nil
		case job, more := <-next:
			if !more {
				next = nil
				in.end()
			} else if ctx.Err() == nil {
				a.running++
				go a.work(ctx, job)
			}
		case end := <-a.ended:
			a.running--
			if end.panicked != nil || !yield(end.result, end.err) {
				return end.panicked
			}
		}
	}
	return nil
}

// withRoom gives each job with room for its upload, and asks for the next when
// there is room again. It holds no room while jobs blocks: a job that starts over
// may need it.
func (a *processAll) withRoom(ctx context.Context, jobs iter.Seq[Job]) iter.Seq[Job] {
	return func(give func(Job) bool) {
		for job := range jobs {
			if !a.enter(ctx) || !give(job) || !a.enter(ctx) {
				return
			}
			a.exit()
		}
	}
}

// enter waits for room for an upload. It reports false where ctx has ended.
func (a *processAll) enter(ctx context.Context) bool {
	select {
	case a.room <- struct{}{}:
		return ctx.Err() == nil // after that, nobody needs room
	case <-ctx.Done():
		return false
	}
}

func (a *processAll) exit() { <-a.room }

var errGoexit = errors.New("minutes: a callback of the job ended its goroutine (runtime.Goexit)")

// work does a job and tells how it ended, also where a callback panics or ends
// the goroutine.
func (a *processAll) work(ctx context.Context, job Job) {
	end := jobEnd{result: &Result{Params: job.Params}, err: errGoexit}
	defer func() {
		end.panicked = recover()
		a.ended <- end
	}()
	end.err = a.do(ctx, end.result, job)
}

// do does a job for which there is room.
func (a *processAll) do(ctx context.Context, r *Result, job Job) error {
	for starts := 1; ; starts++ {
		closeErr, err := a.begin(ctx, r, job)
		if err == nil {
			err = a.meetings.conclude(ctx, r, a.options)
		}
		if !startsOver(r, a.options, err, starts) || !a.enter(ctx) {
			if closeErr != nil {
				err = errors.Join(err, closeErr)
			}
			return err
		}
	}
}

// begin is that of MeetingsService for a job, whose recording it opens and closes;
// then there is room again. A recording that was uploaded and cannot be closed
// does not keep the job from going on.
func (a *processAll) begin(ctx context.Context, r *Result, job Job) (closeErr, err error) {
	defer a.exit()
	if err := job.Params.check(); err != nil {
		return nil, err
	}
	if job.Open == nil {
		return nil, &ParamError{"job.Open", "must not be nil"}
	}
	o := a.options
	if job.Progress != nil {
		o.Progress = job.Progress
	}
	var rec Recording
	defer func() { closeErr = rec.Close() }()
	return nil, a.meetings.begin(ctx, r, func() (Recording, error) {
		opened, err := job.Open()
		if err == nil {
			rec = opened
		}
		return opened, err
	}, o)
}
