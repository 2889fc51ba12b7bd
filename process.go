package minutes

import (
	"cmp"
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

// orDefault checks the options, and returns a copy.
func (o *ProcessOptions) orDefault() (*ProcessOptions, error) {
	opts := *cmp.Or(o, new(ProcessOptions))
	wait := &WaitOptions{Until: opts.Until, Format: opts.Format}
	err := wait.fill()
	opts.Until = wait.Until
	return &opts, err
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
	if err = cmp.Or(err, checkGiven("params", params != nil), rec.check()); err != nil {
		return nil, err
	}
	rec.Audio = struct{ io.ReaderAt }{rec.Audio} // which cannot be closed
	p := &process{
		meetings: s, options: o, progress: o.Progress, result: &Result{Params: params},
		open: func() (Recording, error) { return rec, nil },
		room: &places{all: 1},
	}
	_ = p.room.enter(context.Background()) // nobody else is in it
	return p.result, p.run(ctx)
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
	if err = cmp.Or(err, checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, progress: o.Progress, result: new(Result), open: open}
	// Every known state is this one or past it: the first look ends the wait.
	p.result.Meeting, err = s.Wait(ctx, id, &WaitOptions{Until: StatusCreated, LookedAt: o.LookedAt})
	if err != nil {
		p.result.Meeting = meetingIn(err)
		return p.result, err
	}
	return p.result, p.end(ctx, p.giveAudio(ctx))
}

// process is one job at work.
type process struct {
	meetings *MeetingsService
	options  *ProcessOptions
	progress func(sent, total int64)
	open     func() (Recording, error)
	room     *places // where it has one until its audio is there
	result   *Result
	unclosed error // why the recording could not be closed

	err      error // what it ended with,
	panicked any   // or one of its callbacks did
}

// run does a job that has room.
func (p *process) run(ctx context.Context) error {
	const most = 3
	for starts := 1; ; starts++ {
		err := p.end(ctx, p.begin(ctx))
		if starts == most || !p.replaced(err) || p.room.enter(ctx) != nil {
			return err
		}
	}
}

// replaced reports whether another worker has found the meeting failed, and made
// another in its place.
func (p *process) replaced(err error) bool {
	r := p.result
	gone := errors.Is(err, ErrNotFound) && r.Minutes == nil // or it is the transcript that is not found
	return gone && r.Meeting != nil && p.options.Restart && r.Params.ExternalID != ""
}

// begin brings a job to where its meeting has audio; then there is room again.
func (p *process) begin(ctx context.Context) error {
	defer p.room.leave()
	if p.open == nil {
		return &ParamError{"job.Open", "must not be nil"}
	}
	if err := p.create(ctx); err != nil {
		return err
	}
	return p.giveAudio(ctx)
}

// create brings a job to where there is a meeting.
func (p *process) create(ctx context.Context) error {
	r := p.result
	m, created, err := p.meetings.Create(ctx, r.Params)
	if err == nil && p.options.Restart && m.Status.Failed() {
		// Another worker may have deleted it first.
		if err := p.meetings.Delete(ctx, m.ID); err != nil && !errors.Is(err, ErrNotFound) {
			r.Meeting = m
			return err
		}
		m, created, err = p.meetings.Create(ctx, r.Params)
	}
	if err == nil {
		r.Meeting, r.Created = m, created
	}
	return err
}

// giveAudio brings a job to where its meeting has audio.
func (p *process) giveAudio(ctx context.Context) error {
	switch m := p.result.Meeting; {
	case m.Status.Failed():
		return &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status != StatusCreated:
		return nil
	case p.open == nil:
		return &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
	}
	err := p.upload(ctx)
	_, refused := errors.AsType[*Error](err)
	_, lost := errors.AsType[*StorageError](err)
	alone := p.result.Params != nil && p.result.Params.ExternalID == "" // no other worker knows the meeting
	if ctx.Err() != nil || !refused && !lost || alone && errors.Is(err, ErrPartialAudio) {
		return err
	}
	// Another worker's upload may have come first, which refuses this one.
	there, lookErr := p.meetings.core().poller.hasAudio(ctx, p.result.Meeting.ID)
	switch {
	case lookErr != nil:
		// It comes first, as what the job ended with.
		return fmt.Errorf("%w; it was to tell whether the meeting has audio after all: %w", lookErr, err)
	case there:
		return nil
	}
	return err
}

// upload opens the recording when there is a place for it, uploads and closes it.
// One that cannot be closed does not keep the job from going on.
func (p *process) upload(ctx context.Context) error {
	places := &p.meetings.core().places
	if err := places.enter(ctx); err != nil {
		return err
	}
	defer places.leave()
	rec, err := p.open()
	if err != nil {
		return err
	}
	defer func() { p.unclosed = rec.Close() }()
	if err := rec.check(); err != nil {
		return err
	}
	return p.meetings.upload(ctx, p.result.Meeting.ID, rec, &UploadOptions{Progress: p.progress, ContentMD5: p.options.ContentMD5})
}

// end concludes a job whose audio is there, unless err says that it is not.
func (p *process) end(ctx context.Context, err error) error {
	if err == nil {
		err = p.conclude(ctx)
	}
	if p.unclosed != nil {
		err = errors.Join(err, p.unclosed)
	}
	return err
}

// conclude waits for a job whose audio is there and fetches what it was for.
func (p *process) conclude(ctx context.Context) (err error) {
	r, o := p.result, p.options
	if r.Meeting.Status.rank() < o.Until.rank() {
		m, err := p.meetings.Wait(ctx, r.Meeting.ID, &WaitOptions{Until: o.Until, OnStatus: o.OnStatus})
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
	r.Minutes, err = p.meetings.finishedMinutes(ctx, r.Meeting, o.Format)
	if err == nil && o.Transcript {
		id := r.Meeting.ID
		r.Transcript, err = fetchReady(ctx, r.Meeting, func() (string, error) { return p.meetings.Transcript(ctx, id) })
	}
	return err
}

// lastSeen takes in how a wait that failed saw the meeting last.
func (r *Result) lastSeen(err error) {
	switch seen := meetingIn(err); {
	case seen == nil:
	case seen.CreatedAt == 0 && r.Meeting != nil: // among very many waits, no more is kept than the status
		r.Meeting = r.Meeting.clone()
		r.Meeting.Status = seen.Status
	default:
		r.Meeting = seen
	}
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
// needs. Where jobs or opts cannot be used, one *ParamError is yielded, with a nil
// Result.
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
// A panic in Open or OnStatus goes on where the loop is, after the other jobs were
// cancelled and have ended, and so does a panic in jobs. Where one of the two ends
// its goroutine, as [runtime.Goexit] and a test's FailNow do, the job is yielded with
// an error that says so. Progress runs on a goroutine of the transport, where a panic
// ends the program, as any does that nobody recovers from.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.orDefault()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil)); err != nil {
			yield(nil, err)
			return
		}
		all := processAll{meetings: s, options: o, room: places{all: s.core().places.all}, ended: make(chan *process)}
		if panicked := all.run(ctx, jobs, yield); panicked != nil {
			panic(panicked)
		}
	}
}

// processAll is one ProcessAll at work.
type processAll struct {
	meetings *MeetingsService
	options  *ProcessOptions
	room     places // for jobs that are not past their upload
	running  int    // jobs that have begun and were not heard of in ended
	ended    chan *process
}

// run returns with what a job's callback panicked, when no job runs any more.
func (a *processAll) run(ctx context.Context, jobs iter.Seq[Job], yield func(*Result, error) bool) (panicked any) {
	ctx, cancel := context.WithCancel(ctx)
	in := background(a.withRoom(ctx, jobs))
	defer close(in.left)
	defer func() {
		cancel()
		for ; a.running > 0; a.running-- {
			if p := <-a.ended; panicked == nil {
				panicked = p.panicked
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
		case p := <-a.ended:
			a.running--
			if p.panicked != nil || !yield(p.result, p.err) {
				return p.panicked
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
		enter := func() bool { return a.room.enter(ctx) == nil && ctx.Err() == nil }
		for job := range jobs {
			if !enter() || !give(job) || !enter() {
				return
			}
			a.room.leave()
		}
	}
}

// work does a job and tells how it ended, also where a callback panics or ends
// the goroutine.
func (a *processAll) work(ctx context.Context, job Job) {
	p := &process{
		meetings: a.meetings, options: a.options, progress: job.Progress, result: &Result{Params: job.Params},
		open: job.Open, room: &a.room,
		err: errors.New("minutes: a callback of the job ended its goroutine (runtime.Goexit)"), // unless it returns
	}
	if p.progress == nil {
		p.progress = a.options.Progress
	}
	defer func() {
		p.panicked = recover()
		a.ended <- p
	}()
	p.err = p.run(ctx)
}
