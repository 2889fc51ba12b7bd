package minutes

import (
	"cmp"
	"context"
	"time"
)

// ProcessOptions tune Process, Resume and ProcessAll. Zero fields, and nil, mean the defaults.
type ProcessOptions struct {
	// Until is the state at which the job ends (default StatusMinutesReady). With an earlier
	// state, the job fetches no minutes.
	Until      Status
	Format     Format // of the minutes; if empty, the service chooses HTML
	Transcript bool   // also fetch the transcript, if Until is StatusMinutesReady
	// OnStatus works like WaitOptions.OnStatus. ProcessAll calls OnStatus on a goroutine of each job,
	// so several calls may run at once.
	OnStatus          func(*Meeting)
	Progress          func(sent, total int64) // as in UploadOptions
	WithoutContentMD5 bool                    // as in UploadOptions
}

// checked checks the options and returns a copy with defaults.
func (o *ProcessOptions) checked() (*ProcessOptions, error) {
	opts := *cmp.Or(o, new(ProcessOptions))
	w, err := newWaiter(&WaitOptions{Until: opts.Until, Format: opts.Format})
	opts.Until = w.Until
	return &opts, err
}

// Result is the result for one meeting. With an error, Result has what the job got before the error.
type Result struct {
	MeetingID  string               // set as soon as there is a meeting
	Params     *MeetingCreateParams // of Process or Job; nil for Resume, WaitAll and Follow
	Meeting    *Meeting             // last snapshot; nil if no response showed the meeting
	Created    bool                 // the service created the meeting for this job; see Create
	Minutes    *Minutes             // nil if Until is an earlier state
	Transcript *Transcript          // nil without the option Transcript
}

// Process creates the meeting, uploads the recording, waits, and fetches the minutes. The key
// needs the scopes meetings:write, meetings:read and minutes:read.
//
//   - With params.ExternalID, you can run Process again after a crash, or in two workers at once.
//     Process continues from the meeting's state. The result is one meeting, one audio and one set
//     of minutes. Without an ExternalID, each run creates a meeting.
//   - If someone deleted the meeting of an earlier run, Process creates another meeting.
//     [MeetingsService.Resume] never does that.
//   - Process waits for an upload slot (see [WithUploadConcurrency]), opens the recording, and then
//     creates the meeting. If opening fails, Process makes no request.
//
// See docs/restarts.md for crashes and several workers.
//
// Errors:
//   - *[ParamError] with a nil Result: params or source is nil, or opts are invalid. All other
//     errors come with a Result.
//   - The errors of source, Create, Upload, WaitForMinutes and Transcript. With an ExternalID,
//     Process never returns [ErrPartialAudio], because another worker may have uploaded the audio.
//   - *[MeetingFailedError] at once, if the meeting failed in an earlier run. Delete the meeting, then
//     call Process again.
//   - *[WaitError] with [ErrNoAudio]: the service shows no audio within five minutes of the upload.
func (s *MeetingsService) Process(ctx context.Context, params *MeetingCreateParams, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("params", params != nil), checkGiven("source", source != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, source: source, result: &Result{Params: params}}
	return p.result, p.run(ctx)
}

// Resume does the remaining steps for a meeting that exists: it uploads the recording, waits, and
// fetches the minutes. The key needs the scopes meetings:read and minutes:read. For an upload, it
// also needs meetings:write (assumed).
//
//   - You can run Resume again at any time, and in two workers at once.
//   - If the meeting has audio, Resume does not open the recording, and source may be nil.
//   - If another worker uploads audio first, Resume continues with that audio.
//   - Resume creates no meeting. If someone deleted the meeting, the error matches [ErrNotFound].
//
// See docs/restarts.md for crashes and several workers.
//
// Errors:
//   - *[ParamError] with a nil Result: id or opts are invalid. All other errors come with a Result.
//   - The errors of source, WaitForMinutes and Transcript, and those of Upload except
//     ErrPartialAudio.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio and source is nil.
//   - *[WaitError] with [ErrNoAudio]: the service shows no audio within five minutes of the upload.
func (s *MeetingsService) Resume(ctx context.Context, id string, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, source: source, id: id, shared: true, result: &Result{MeetingID: id}}
	return p.result, p.run(ctx)
}

// process is one running job.
type process struct {
	meetings   *MeetingsService
	options    *ProcessOptions
	source     Source // may be nil for Resume
	id         string // of the meeting; empty until Create returns
	shared     bool   // other workers may know the meeting
	uploadOver func() // called when the meeting has audio; may be nil
	result     *Result
	closeErr   error // why the recording could not be closed
}

func (p *process) run(ctx context.Context) error {
	err := p.ensureUploaded(ctx)
	if err == nil {
		if p.uploadOver != nil {
			p.uploadOver()
		}
		err = p.waitAndFetch(ctx)
	}
	return withCloseError(err, p.id, p.closeErr)
}

// ensureUploaded creates the meeting if id is empty, and uploads the recording if the meeting has no
// audio. If closing the recording fails, the job continues.
func (p *process) ensureUploaded(ctx context.Context) error {
	if p.id != "" {
		needed, err := p.needsAudio(ctx)
		if err != nil || !needed {
			return err
		}
	}
	rec, done, err := p.meetings.open(ctx, p.source)
	if err != nil {
		return err
	}
	defer func() { p.closeErr = done() }()
	if p.id == "" {
		if err := p.create(ctx); err != nil {
			return err
		}
		if needed, err := p.needsAudio(ctx); err != nil || !needed {
			return err
		}
	}
	opts := &UploadOptions{Progress: p.options.Progress, WithoutContentMD5: p.options.WithoutContentMD5}
	return p.meetings.upload(ctx, p.id, rec, opts, p.shared)
}

// create creates or finds the meeting.
func (p *process) create(ctx context.Context) error {
	r := p.result
	m, created, err := p.meetings.Create(ctx, r.Params)
	if err != nil {
		return err
	}
	r.Meeting, r.MeetingID, r.Created = m, m.ID, created
	p.id, p.shared = m.ID, r.Params.ExternalID != ""
	return nil
}

// needsAudio reports whether the job has to upload the recording.
func (p *process) needsAudio(ctx context.Context) (bool, error) {
	r := p.result
	shown := r.Meeting != nil && r.Meeting.ID == p.id // in the response to Create
	if !shown || r.Meeting.Status == StatusCreated && !r.Created {
		if err := p.look(ctx); err != nil {
			return false, err
		}
	}
	m := r.Meeting
	switch {
	case m.Status.Failed():
		return false, &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status == StatusCreated && p.source == nil:
		return false, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
	}
	return m.Status == StatusCreated, nil
}

// look polls the meeting once. Every known status reaches StatusCreated, so the first poll ends the
// wait.
func (p *process) look(ctx context.Context) error {
	w, _ := newWaiter(&WaitOptions{Until: StatusCreated})
	m, err := p.meetings.core().wait(ctx, p.id, w)
	if _, failed := err.(*MeetingFailedError); failed {
		m, err = meetingIn(err), nil
	}
	p.result.Meeting = cmp.Or(m, meetingIn(err), p.result.Meeting)
	return err
}

// audioDeadline is how long after an upload a job waits for the service to notice the audio.
const audioDeadline = 5 * time.Minute

// waitAndFetch waits after the upload, and fetches the minutes and the transcript.
func (p *process) waitAndFetch(ctx context.Context) error {
	r, o := p.result, p.options
	if r.Meeting == nil || r.Meeting.Status.rank() < o.Until.rank() {
		w, _ := newWaiter(&WaitOptions{Until: o.Until, OnStatus: o.OnStatus})
		w.audioBy = time.Now().Add(audioDeadline)
		m, err := p.meetings.core().wait(ctx, p.id, w)
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
	return p.meetings.fetchResult(ctx, r, o.Format, o.Transcript)
}
