package minutes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// ProcessOptions tune the whole job; the zero value, or nil, is fine.
type ProcessOptions struct {
	// Until is the state of the happy path that the job is to come to, as in
	// WaitOptions. Empty means StatusMinutesReady, and then the minutes are
	// fetched. At any other the job ends without: StatusAudioUploaded leaves the
	// wait to another worker, who goes on with Finish.
	Until      Status
	Format     Format // of the minutes; empty is the service's default, HTML
	Transcript bool   // with the minutes fetch the transcript, too
	// Restart deletes a meeting that an earlier run left in a failure state,
	// found by its ExternalID, and starts over. The deletion cannot be undone. It
	// needs the scope meetings:delete. Finish, which could not create another,
	// ignores it.
	Restart bool
	// LookedAt is when another process looked at the meeting last, as in
	// WaitOptions. It is for Finish: what a create shows is no such look.
	LookedAt time.Time
	OnStatus func(*Meeting)          // as in WaitOptions
	Progress func(sent, total int64) // as in UploadOptions
	// ContentMD5 is as in UploadOptions.
	ContentMD5 bool
}

func (o *ProcessOptions) orDefault() (ProcessOptions, error) {
	var opts ProcessOptions
	if o != nil {
		opts = *o
	}
	wait, err := (&WaitOptions{Until: opts.Until, Format: opts.Format}).orDefault("")
	opts.Until = wait.Until
	return opts, err
}

// Result is what a job came to. Where it failed, it holds what there is: the
// Meeting as soon as that exists.
type Result struct {
	Params     *MeetingCreateParams // the job's own; nil after Finish
	Meeting    *Meeting             // as last seen
	Created    bool                 // this run made the meeting; see Create
	Minutes    *Minutes             // nil where ProcessOptions.Until is another state
	Transcript string               // only with ProcessOptions.Transcript
}

// Process does the whole job: it creates the meeting and then, as
// [MeetingsService.Finish] does, uploads the recording, waits and fetches the
// minutes. It does not close rec.
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
// Where the meeting is there already, the reply to the create counts as the first
// look, so that a worker that is restarted does not look again at once.
//
// It costs one request each to create the meeting, to ask for the upload URL, to
// upload and to fetch the minutes (and the transcript), besides the looks of
// [MeetingsService.Wait]. It needs the scopes meetings:write, meetings:read and
// minutes:read, and with Restart meetings:delete.
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
	rec.Audio = struct{ io.ReaderAt }{rec.Audio} // which cannot be closed
	r := &Result{Params: params}
	for starts := 1; ; starts++ {
		err = s.begin(ctx, r, o)
		if err == nil {
			err = s.finish(ctx, r, func() (Recording, error) { return rec, nil }, o)
		}
		if !startsOver(r, o, err, starts) {
			return r, err
		}
	}
}

// Finish does what is left of the job of a meeting that exists, from whatever
// state it is in: it uploads the recording if the meeting has no audio, waits and
// fetches the minutes. It is for a service that has answered with the id of the
// meeting, and for a worker that was given the id and comes back to it after a
// crash.
//
// open opens the recording, when it comes to be uploaded and only then, and when
// there is a place for the upload (see [WithUploads]); it is closed after that.
// Where open is nil, a meeting without audio is an error.
//
// A meeting that this Client has seen within the last thirty seconds, as by Create,
// is not looked at again before they are over. What a process that has died saw,
// the Client does not know: set ProcessOptions.LookedAt to the last look of that
// process or, where it is not known, to the time at which this one began.
//
// It may be run again at any time, and by two workers at once, as Process may: audio
// that is there although the upload failed is taken for another worker's. So
// neither Finish nor a Process with an ExternalID reports ErrPartialAudio;
// ProcessOptions.ContentMD5 keeps a store from taking a part for the whole. Finish
// needs the scopes meetings:read and minutes:read, and meetings:write (assumed) for
// an upload.
//
// The Result is nil only where nothing was begun. Errors: those of open, Upload,
// WaitForMinutes and Transcript; ErrNoAudio, in a *WaitError, for a meeting without
// audio where open is nil; that of closing the recording, joined with what else
// there is, after the job has ended.
func (s *MeetingsService) Finish(ctx context.Context, id string, open func() (Recording, error), opts *ProcessOptions) (*Result, error) {
	o, err := opts.orDefault()
	if err == nil {
		err = checkID("id", id)
	}
	if err = checkInput(ctx, "", false, err); err != nil {
		return nil, err
	}
	r := new(Result)
	// Every known state is this one or past it: the first look ends the wait.
	if r.Meeting, err = s.Wait(ctx, id, &WaitOptions{Until: StatusCreated, LookedAt: o.LookedAt}); err != nil {
		r.lastSeen(err)
		return r, err
	}
	return r, s.finish(ctx, r, open, o)
}

// finish is Finish for a meeting that was seen a moment ago.
func (s *MeetingsService) finish(ctx context.Context, r *Result, open func() (Recording, error), o ProcessOptions) error {
	closeErr, err := s.giveAudio(ctx, r, open, o)
	if err == nil {
		err = s.conclude(ctx, r, o)
	}
	return join(err, closeErr)
}

// join is errors.Join that leaves an only error as it is.
func join(err, more error) error {
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}

// startsOver reports whether a job whose meeting is gone begins again: another
// worker has found it failed, and made another in its place.
func startsOver(r *Result, o ProcessOptions, err error, starts int) bool {
	const most = 3
	gone := errors.Is(err, ErrNotFound) && r.Minutes == nil // or it is the transcript that is not found
	return o.Restart && r.Params.ExternalID != "" && r.Meeting != nil && gone && starts < most
}

// begin brings a job to where there is a meeting.
func (s *MeetingsService) begin(ctx context.Context, r *Result, o ProcessOptions) error {
	m, created, err := s.Create(ctx, r.Params)
	if err == nil && o.Restart && m.Status.Failed() {
		// Another worker may have deleted it first.
		if err := s.Delete(ctx, m.ID); err != nil && !errors.Is(err, ErrNotFound) {
			r.Meeting = m
			return err
		}
		m, created, err = s.Create(ctx, r.Params)
	}
	if err == nil {
		r.Meeting, r.Created = m, created
	}
	return err
}

// giveAudio brings a job to where its meeting has audio. A recording that was
// uploaded and cannot be closed does not keep the job from going on.
func (s *MeetingsService) giveAudio(ctx context.Context, r *Result, open func() (Recording, error), o ProcessOptions) (closeErr, err error) {
	switch m := r.Meeting; {
	case m.Status.Failed():
		return nil, &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status != StatusCreated:
		return nil, nil
	case open == nil:
		return nil, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
	}
	closeErr, err = s.uploadOpened(ctx, r.Meeting.ID, open, o)
	_, refused := errors.AsType[*Error](err)
	_, lost := errors.AsType[*StorageError](err)
	if ctx.Err() != nil || !refused && !lost {
		return closeErr, err
	}
	alone := r.Params != nil && r.Params.ExternalID == "" // no other worker knows the meeting
	if alone && errors.Is(err, ErrPartialAudio) {
		return closeErr, err
	}
	// Another worker's upload may have come first, which refuses this one.
	there, lookErr := s.core().poller.hasAudio(ctx, r.Meeting.ID)
	switch {
	case lookErr != nil:
		// It comes first, as what the job ended with.
		err = fmt.Errorf("%w; it was to tell whether the meeting has audio after all: %w", lookErr, err)
	case there:
		err = nil
	}
	return closeErr, err
}

// uploadOpened opens a recording that there is a place for, uploads and closes it.
func (s *MeetingsService) uploadOpened(ctx context.Context, id string, open func() (Recording, error), o ProcessOptions) (closeErr, err error) {
	places := &s.core().places
	if err := places.enter(ctx); err != nil {
		return nil, err
	}
	defer places.leave()
	rec, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { closeErr = rec.Close() }()
	if err := rec.check(); err != nil {
		return nil, err
	}
	return nil, s.upload(ctx, id, rec, &UploadOptions{Progress: o.Progress, ContentMD5: o.ContentMD5})
}

// lastSeen takes in how a wait that failed saw the meeting last.
func (r *Result) lastSeen(err error) {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		r.Meeting = failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok && wait.Meeting != nil {
		seen := wait.Meeting
		if seen.CreatedAt == 0 && r.Meeting != nil { // among very many waits, no more is kept than the status
			seen = r.Meeting.clone()
			seen.Status = wait.Meeting.Status
		}
		r.Meeting = seen
	}
}

// conclude waits for a job whose audio is there and fetches what it was for.
func (s *MeetingsService) conclude(ctx context.Context, r *Result, o ProcessOptions) error {
	if r.Meeting.Status.rank() < o.Until.rank() {
		m, err := s.Wait(ctx, r.Meeting.ID, &WaitOptions{Until: o.Until, OnStatus: o.OnStatus})
		if err != nil {
			r.lastSeen(err)
			return err
		}
		r.Meeting = m
	} else if o.OnStatus != nil {
		o.OnStatus(r.Meeting)
	}
	if o.Until != StatusMinutesReady {
		return nil
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
	// Open opens the recording, as Finish has it: when it comes to be uploaded and
	// only then; it is closed after that. See OpenRecording. Its meeting exists by
	// then, and stays without audio where Open fails.
	Open func() (Recording, error)
	// Progress is of this job's upload, as in UploadOptions; nil leaves it to
	// ProcessOptions.Progress.
	Progress func(sent, total int64)
}

// ProcessAll does many jobs, each as [MeetingsService.Process] does one, and
// yields each as it ends: the Result, whose Params are the job's own, and the
// error where it failed. One job's failure does not stop the others. The next
// job is asked for when fewer are on their way to the end of their upload than
// [WithUploads] says; any number of jobs wait. It needs the scopes that Process
// needs. Where jobs or opts cannot be used, one *ParamError
// is yielded, with a nil Result.
//
// jobs is read on a goroutine of its own: while it blocks, what has ended is
// yielded all the same, and ctx is obeyed. What it shares with the loop needs a
// lock, therefore. Open, OnStatus and Progress are called from many goroutines.
//
// When ctx ends, no job is taken any more, and those that had begun are yielded
// with their errors. When the loop is left, they are cancelled; with an
// ExternalID, a later run goes on where they were. In both cases the yield of
// jobs returns false: at once where jobs stands in it, else for the next job, which
// is not begun.
//
// A panic in Open, OnStatus or Progress goes on where the loop is, after the
// other jobs were cancelled and have ended, and so does a panic in jobs. Where
// one of the three ends its goroutine, as [runtime.Goexit] and a test's FailNow do,
// the job is yielded with an error that says so.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.orDefault()
		if err = checkInput(ctx, "jobs", jobs == nil, err); err != nil {
			yield(nil, err)
			return
		}
		all := processAll{meetings: s, options: o, room: make(chan struct{}, s.core().places.all), ended: make(chan jobEnd)}
		if panicked := all.run(ctx, jobs, yield); panicked != nil {
			panic(panicked)
		}
	}
}

// processAll is one ProcessAll at work.
type processAll struct {
	meetings *MeetingsService
	options  ProcessOptions
	room     chan struct{} // holds an element for each job that is not past its upload
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
			return join(err, closeErr)
		}
	}
}

// begin brings a job to where its meeting has audio; then there is room again.
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
	if err := a.meetings.begin(ctx, r, o); err != nil {
		return nil, err
	}
	return a.meetings.giveAudio(ctx, r, job.Open, o)
}
