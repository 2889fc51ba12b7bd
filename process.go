package minutes

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// ProcessOptions configures Process, Resume and ProcessAll. A nil pointer or a zero field selects
// the default.
type ProcessOptions struct {
	// Until is the status at which the call ends (default StatusMinutesReady). With an earlier status,
	// the call fetches no minutes.
	Until      Status
	Format     Format // of the minutes; if empty, the service chooses HTML
	Transcript bool   // also fetch the transcript, if Until is StatusMinutesReady
	// AudioTimeout limits how long the service may take to show the audio after a successful upload
	// (default ten minutes). After that time, the call ends with ErrNoAudio.
	AudioTimeout time.Duration
	// OnStatus works like WaitOptions.OnStatus. ProcessAll calls OnStatus on a goroutine of each
	// meeting, so several calls may run at once.
	OnStatus func(*Meeting)
	Progress func(sent, total int64) // as in UploadOptions
}

// checked checks the options and returns a copy with defaults.
func (o *ProcessOptions) checked() (ProcessOptions, error) {
	opts := *cmp.Or(o, new(ProcessOptions))
	wait, err := (&WaitOptions{Until: opts.Until, AudioTimeout: opts.AudioTimeout}).checked()
	opts.Until, opts.AudioTimeout = wait.Until, cmp.Or(opts.AudioTimeout, 10*time.Minute)
	return opts, err
}

// Result is what a call got for one meeting, up to the error if there was one.
type Result struct {
	MeetingID  string               // set as soon as there is a meeting; if Create failed, Params identifies the job
	Meeting    *Meeting             // last snapshot; nil if no response showed the meeting
	Created    bool                 // from Create; may be false although this call made the meeting
	Params     *MeetingCreateParams // of Process or Job; otherwise nil
	Minutes    *Minutes             // nil if Until is an earlier status
	Transcript *Transcript          // nil without the option Transcript
}

// Process creates the meeting, uploads the recording, waits, and fetches the minutes. It needs the scopes
// meetings:write, meetings:read and minutes:read. It has no overall timeout, so set a deadline on ctx. See
// docs/restarts.md for crashes and several workers.
//
//   - With params.ExternalID, you can run Process again after a crash, or in two workers at once, because
//     it continues from the meeting's status. The result is one meeting, one recording and one set of
//     minutes. Without an ExternalID, each run creates a meeting.
//   - If someone deleted the meeting of an earlier run, Process creates another, whereas
//     [MeetingsService.Resume] never does.
//   - Process waits for an upload slot (see [WithUploadConcurrency]) and opens the recording before it
//     creates the meeting, so an unusable recording costs no request.
//
// Errors:
//   - *[ParamError] with a nil Result: params or source is nil, or opts are invalid. All other errors come
//     with a Result.
//   - The errors of source, Create, Upload, WaitForMinutes and Transcript.
//   - *[MeetingFailedError] at once, if the meeting failed in an earlier run. To try again, delete the
//     meeting and call Process again.
//   - *[WaitError] with [ErrNoAudio]: the service shows no audio within AudioTimeout of the upload.
func (s *MeetingsService) Process(ctx context.Context, params *MeetingCreateParams, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("params", params != nil), checkGiven("source", source != nil)); err != nil {
		return nil, err
	}
	r := &Result{Params: params}
	return r, s.process(ctx, r, source, &o, func() {})
}

// process does the remaining steps, and calls uploaded when the meeting has audio.
func (s *MeetingsService) process(ctx context.Context, r *Result, source Source, o *ProcessOptions, uploaded func()) error {
	err := s.withRecording(ctx, source, func(rec Recording) error { return s.createAndUpload(ctx, r, rec, o) })
	if err != nil {
		return err
	}
	uploaded()
	return s.waitProcessed(ctx, r, o)
}

// createAndUpload creates the meeting unless r has one, and uploads rec unless the meeting has audio.
func (s *MeetingsService) createAndUpload(ctx context.Context, r *Result, rec Recording, o *ProcessOptions) error {
	shared := true
	if r.Meeting == nil {
		m, created, err := s.create(ctx, r.Params, storage.Patience)
		if err != nil {
			return err
		}
		r.Meeting, r.MeetingID, r.Created, shared = m, m.ID, created, r.Params.ExternalID != ""
	}
	if r.Meeting.Status != StatusCreated {
		return nil
	}
	return s.upload(ctx, r.MeetingID, rec, o.Progress, shared)
}

// Resume does the remaining steps for a meeting that exists: it uploads the recording if the meeting has no
// audio, waits, and fetches the minutes. It needs the scopes meetings:read and minutes:read, and for an
// upload meetings:write (assumed). You can run it again at any time, and in two workers at once. See
// docs/restarts.md for crashes and several workers.
//
//   - If the meeting has audio, Resume does not open the recording, so source may be nil.
//   - If another worker uploads audio first, Resume continues with that.
//   - Resume never creates a meeting, so if someone deleted it, the error matches [ErrNotFound].
//
// Errors:
//   - *[ParamError] with a nil Result: id or opts are invalid. All other errors come with a Result.
//   - The errors of source, Upload, WaitForMinutes and Transcript.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio and source is nil, or the service shows no
//     audio within AudioTimeout of the upload.
func (s *MeetingsService) Resume(ctx context.Context, id string, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, s.core.checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	r := &Result{MeetingID: id}
	r.Meeting, err = s.core.look(ctx, id, false)
	switch {
	case err != nil:
		return r, err
	case r.Meeting.Status != StatusCreated:
		return r, s.waitProcessed(ctx, r, &o)
	case source == nil:
		return r, &WaitError{MeetingID: id, Meeting: r.Meeting, Err: ErrNoAudio}
	}
	return r, s.process(ctx, r, source, &o, func() {})
}

// waitProcessed waits after the upload, and fetches the minutes and the transcript.
func (s *MeetingsService) waitProcessed(ctx context.Context, r *Result, o *ProcessOptions) error {
	g := goal{audioBy: time.Now().Add(o.AudioTimeout)}
	g.Until, g.Format, g.Transcript, g.OnStatus = o.Until, o.Format, o.Transcript, o.OnStatus
	return s.waitAndFetch(ctx, r, g)
}

// Job is what [MeetingsService.ProcessAll] needs for one recording.
type Job struct {
	Params   *MeetingCreateParams    // must not be nil; with an ExternalID, you can run the job again
	Source   Source                  // must not be nil
	Progress func(sent, total int64) // if not nil, replaces ProcessOptions.Progress
}

// ProcessAll processes many jobs, each like [MeetingsService.Process], and yields the Result when a job
// ends, with the error if the job failed. It needs the scopes of Process.
//
//   - The failure of one job does not stop the others.
//   - Two jobs with the same ExternalID share one meeting, and both yield its minutes.
//   - ProcessAll starts as many jobs as [WithUploadConcurrency] allows, and the next one when the upload of
//     a job has ended. So a long list of jobs does not open all its recordings at once.
//   - ProcessAll ranges over jobs on another goroutine, and each job calls Source, OnStatus and Progress on
//     its own goroutines.
//   - When ctx is done, or the service rejects the key, ProcessAll starts no other job. When you leave the
//     loop, ProcessAll cancels the jobs that are running.
//
// Each Result has its job's Params, and MeetingID as soon as there is a meeting. Errors are as in Process.
//
// A nil Result ends the loop early, once each job that was started has had its own Result. The error is a
// *[WaitError] if ctx is done or the service rejected the key (see [KeyRejected]), and a *[ParamError] if
// jobs is nil or opts are invalid.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil)); err != nil {
			yield(nil, err)
			return
		}
		room := make(chan struct{}, cap(s.core.uploadSlots)) // a token for each job before the end of its upload
		inputs := func(ctx context.Context, yield func(Job) bool) error {
			room <- struct{}{} // for the first job
			jobs(func(job Job) bool {
				if !yield(job) {
					return false
				}
				select {
				case room <- struct{}{}: // for the next job
					return true
				case <-ctx.Done():
					return false
				}
			})
			return nil
		}
		parallel(ctx, yield, inputs, func(ctx context.Context, l *loop, job Job) {
			uploaded := sync.OnceFunc(func() { <-room })
			r, opts := &Result{Params: job.Params}, o
			if job.Progress != nil {
				opts.Progress = job.Progress
			}
			err := cmp.Or(checkGiven("params", job.Params != nil), checkGiven("source", job.Source != nil))
			if err == nil {
				err = s.process(ctx, r, job.Source, &opts, uploaded)
			}
			uploaded()
			l.yield(r, err)
		})
	}
}
