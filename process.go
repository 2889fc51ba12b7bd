package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ProcessOptions tune the whole job; the zero value, or nil, is fine.
type ProcessOptions struct {
	// Until is the state at which the job ends, as in WaitOptions. Empty means
	// StatusMinutesReady. The minutes are fetched only then. With StatusAudioUploaded
	// another worker can do the rest, with Finish.
	Until      Status
	Format     Format // of the minutes; empty is the service's default, HTML
	Transcript bool   // fetch the transcript with the minutes
	// Restart deletes a meeting with this ExternalID that an earlier run left in a failure
	// state, and starts over. The deletion cannot be undone. It needs the scope
	// meetings:delete. Finish, which could not create another, ignores it.
	Restart  bool
	LookedAt time.Time               // as in WaitOptions; only for Finish, since a create shows the meeting
	OnStatus func(*Meeting)          // as in WaitOptions
	Progress func(sent, total int64) // as in UploadOptions
	// WithoutContentMD5 is as in UploadOptions.
	WithoutContentMD5 bool
}

// checked checks the options and returns a copy with defaults.
func (o *ProcessOptions) checked() (*ProcessOptions, error) {
	opts := *cmp.Or(o, new(ProcessOptions))
	wait := &WaitOptions{Until: opts.Until, Format: opts.Format}
	err := wait.fill()
	opts.Until = wait.Until
	return &opts, err
}

// Result is the result of a job. If the job failed, it holds what there is: the
// Meeting as soon as that exists.
type Result struct {
	Params     *MeetingCreateParams // the job's own; nil after Finish
	Meeting    *Meeting             // as last seen
	Created    bool                 // this run made the meeting; see Create
	Minutes    *Minutes             // nil if ProcessOptions.Until is another state
	Transcript string               // only with ProcessOptions.Transcript
}

// Process does the whole job: it creates the meeting and then, as [MeetingsService.Finish]
// does, uploads the recording, waits and fetches the minutes. It does not close rec.
//
// With params.ExternalID you can run it again after a crash at any point, or in two workers
// at once: it continues from the meeting's state, and there will be one meeting, one audio
// and one set of minutes. Without one, each run creates a meeting.
//
// If the first poll finds the meeting unfinished, the job takes at least half a minute
// outside a testing/synctest bubble. It needs the scopes meetings:write, meetings:read and
// minutes:read, and with Restart meetings:delete.
//
// The Result is nil only if the parameters are invalid. Errors: those of Create, Upload,
// WaitForMinutes and Transcript; ErrNoAudio as for Finish. If an earlier run left the meeting in a failure state, a
// *MeetingFailedError at once: the interface allows no other meeting with its ExternalID
// until it is deleted, as ProcessOptions.Restart does.
func (s *MeetingsService) Process(ctx context.Context, params *MeetingCreateParams, rec Recording, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("params", params != nil), rec.check()); err != nil {
		return nil, err
	}
	rec.Audio = struct{ io.ReaderAt }{rec.Audio} // which cannot be closed
	p := &process{
		meetings: s, options: o, result: &Result{Params: params},
		open: func() (Recording, error) { return rec, nil }, uploadOver: func() {},
	}
	return p.result, p.run(ctx)
}

// Finish does the rest of the job for a meeting that exists, from any state: it uploads the
// recording if the meeting has no audio, waits and fetches the minutes. It is for a program
// that has created the meeting and responded with its id, and for a worker that continues
// after a crash.
//
// Finish calls open only if an upload is needed, once an upload slot is free (see
// [WithUploads]), and closes the recording afterwards. Open may be nil; then a meeting
// without audio is an error. Finish polls first, as [MeetingsService.Wait] does. After a
// crash, set ProcessOptions.LookedAt to the time of the other process's last poll.
//
// You can run it again at any time, and in two workers at once, as Process: if an upload
// failed and the meeting has audio, Finish takes that for another worker's. So neither
// Finish nor a Process with an ExternalID reports ErrPartialAudio;
// the header Content-MD5 keeps storage from accepting a part of the recording. It needs
// the scopes meetings:read and minutes:read, and meetings:write (assumed) for an upload.
//
// The Result is nil only if the parameters are invalid. Errors: those of open, Upload,
// WaitForMinutes and Transcript; ErrNoAudio, in a *WaitError, for a meeting without audio if
// open is nil, or if the service shows no audio within five minutes (ten polls) of an upload
// that storage accepted; that of closing the recording, joined with any other.
func (s *MeetingsService) Finish(ctx context.Context, id string, open func() (Recording, error), opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, result: new(Result), open: open, uploadOver: func() {}}
	// Every known state is this one or a later one, so the first poll ends the wait.
	p.result.Meeting, err = s.Wait(ctx, id, &WaitOptions{Until: StatusCreated, LookedAt: o.LookedAt})
	if err != nil {
		p.result.Meeting = meetingIn(err)
		return p.result, err
	}
	return p.result, p.withCloseError(p.finish(ctx))
}

// process is one job under way.
type process struct {
	meetings   *MeetingsService
	options    *ProcessOptions
	open       func() (Recording, error)
	uploadOver func() // called at least once, when the audio is there or will not come
	result     *Result
	closeErr   error // why the recording could not be closed
}

// run does the whole job. It starts again if another worker has deleted the failed
// meeting meanwhile.
func (p *process) run(ctx context.Context) error {
	if p.open == nil {
		return &ParamError{"job.Open", "must not be nil"}
	}
	const most = 3
	for starts := 1; ; starts++ {
		err := p.create(ctx)
		if err == nil {
			err = p.finish(ctx)
		}
		r := p.result
		// With minutes, it is the transcript that is not found.
		gone := errors.Is(err, ErrNotFound) && r.Meeting != nil && r.Minutes == nil
		if !gone || starts == most || !p.options.Restart || r.Params.ExternalID == "" {
			return p.withCloseError(err)
		}
	}
}

// create creates the meeting, or finds it; with Restart it replaces one that has failed.
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

// finish does the rest of a job that has a meeting.
func (p *process) finish(ctx context.Context) error {
	err := p.ensureUploaded(ctx)
	p.uploadOver()
	if err == nil {
		err = p.waitAndFetch(ctx)
	}
	return err
}

// withCloseError joins err with why the recording could not be closed, if it could not.
func (p *process) withCloseError(err error) error {
	if p.closeErr == nil {
		return err
	}
	return errors.Join(err, p.closeErr)
}

// ensureUploaded uploads the recording if the meeting has no audio. The recording is open
// only while the job has an upload slot. If it cannot be closed, the job continues.
func (p *process) ensureUploaded(ctx context.Context) error {
	m, params := p.result.Meeting, p.result.Params
	switch {
	case m.Status.Failed():
		return &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status != StatusCreated:
		return nil
	case p.open == nil:
		return &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
	}
	slots := &p.meetings.core().slots
	if err := slots.acquire(ctx); err != nil {
		return err
	}
	defer slots.release()
	rec, err := p.open()
	if err != nil {
		return err
	}
	defer func() {
		if err := rec.Close(); err != nil {
			p.closeErr = errors.Join(p.closeErr, fmt.Errorf("minutes: closing the recording of meeting %s: %w", singleLine(p.result.Meeting.ID), err))
		}
	}()
	if err := rec.check(); err != nil {
		return err
	}
	onlyWorker := params != nil && params.ExternalID == "" // that knows the meeting
	opts := &UploadOptions{Progress: p.options.Progress, WithoutContentMD5: p.options.WithoutContentMD5}
	return p.meetings.upload(ctx, m.ID, rec, opts, !onlyWorker)
}

// audioDeadline is how long after an upload a job waits for the service to notice the audio.
// That takes seconds; five minutes are ten polls.
const audioDeadline = 5 * time.Minute

// waitAndFetch waits, once the audio is there, and fetches the minutes and the transcript.
func (p *process) waitAndFetch(ctx context.Context) (err error) {
	r, o := p.result, p.options
	if r.Meeting.Status.rank() < o.Until.rank() {
		// The wait ends audioDeadline from now, whatever the difference between the clocks.
		noAudio := max(1, time.Since(r.Meeting.CreatedAt.Time())+audioDeadline)
		m, err := p.meetings.Wait(ctx, r.Meeting.ID, &WaitOptions{Until: o.Until, OnStatus: o.OnStatus, NoAudio: noAudio})
		if err != nil {
			r.Meeting = cmp.Or(meetingIn(err), r.Meeting)
			return err
		}
		r.Meeting = m
	} else if o.OnStatus != nil {
		o.OnStatus(r.Meeting)
	}
	if o.Until != StatusMinutesReady {
		return nil
	}
	r.Minutes, err = p.meetings.fetchMinutes(ctx, r.Meeting, o.Format)
	if err == nil && o.Transcript {
		r.Transcript, err = fetchReady(ctx, r.Meeting, p.meetings.Transcript)
	}
	return err
}
