package minutes

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// ProcessOptions tune Process, Resume and ProcessAll. Zero fields, and nil, mean the defaults.
type ProcessOptions struct {
	// Until is the state at which the job ends (default StatusMinutesReady). With an earlier
	// state, the job fetches no minutes.
	Until      Status
	Format     Format // of the minutes; if empty, the service chooses HTML
	Transcript bool   // also fetch the transcript, if Until is StatusMinutesReady
	// Restart deletes a meeting that is in a failure state when the job begins, and creates the
	// meeting again. A deletion cannot be undone. The key needs the scope meetings:delete. Resume
	// ignores Restart without Params.
	Restart bool
	// Params describe the meeting that Resume creates for Restart. The new meeting has another id.
	Params *MeetingCreateParams
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
	Params     *MeetingCreateParams // of Process or Job; for Resume, ProcessOptions.Params
	Meeting    *Meeting             // last snapshot; nil if no response showed the meeting
	Created    bool                 // the service created the meeting for this job; see Create
	Minutes    *Minutes             // nil if Until is an earlier state
	Transcript string               // empty without the option Transcript
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
//   - *[MeetingFailedError] at once, if the meeting failed in an earlier run. Delete the meeting, or
//     set ProcessOptions.Restart.
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
//   - With ProcessOptions.Restart and Params, Resume replaces a failed meeting. The key then also
//     needs the scopes meetings:write and meetings:delete.
//   - In any other case, Resume creates no meeting. If someone deleted the meeting, the error
//     matches ErrMeetingGone.
//
// See docs/restarts.md for crashes and several workers.
//
// Errors:
//   - *[ParamError] with a nil Result: id or opts are invalid. All other errors come with a Result.
//   - The errors of source, WaitForMinutes and Transcript, and those of Upload except
//     ErrPartialAudio. With Restart, also those of Create and Delete.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio and source is nil.
//   - *[WaitError] with [ErrNoAudio]: the service shows no audio within five minutes of the upload.
func (s *MeetingsService) Resume(ctx context.Context, id string, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, source: source, id: id, shared: true, result: &Result{Params: o.Params}}
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
		if _, failed := err.(*MeetingFailedError); failed && p.options.Restart && p.result.Params != nil {
			p.id = "" // create deletes it
		} else if err != nil || !needed {
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

// create creates or finds the meeting. With Restart, create replaces a failed meeting.
func (p *process) create(ctx context.Context) error {
	r := p.result
	for first := true; ; first = false {
		if r.Meeting != nil {
			// Another worker may have deleted it first.
			if err := p.meetings.Delete(ctx, r.Meeting.ID); err != nil && !errors.Is(err, ErrMeetingGone) {
				return err
			}
		}
		m, created, err := p.meetings.Create(ctx, r.Params)
		if err != nil {
			return err
		}
		r.Meeting, r.Created, p.id, p.shared = m, created, m.ID, r.Params.ExternalID != ""
		if !p.options.Restart || !m.Status.Failed() || !first {
			return nil
		}
	}
}

// needsAudio reports whether the job has to upload the recording.
func (p *process) needsAudio(ctx context.Context) (bool, error) {
	r := p.result
	shown := r.Meeting != nil && r.Meeting.ID == p.id // in the response to Create
	if !shown || r.Meeting.Status == StatusCreated && !r.Created {
		if needed, err := p.findAudio(ctx, shown); err != nil || needed {
			return needed, err
		}
	}
	m := r.Meeting
	if m.Status.Final() {
		p.meetings.core().deleteState(ctx, m.ID)
	}
	switch {
	case m.Status.Failed():
		return false, &MeetingFailedError{Status: m.Status, Meeting: m}
	case m.Status == StatusCreated && p.source == nil:
		return false, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
	}
	return m.Status == StatusCreated, nil
}

// findAudio reports whether the meeting certainly needs audio. If the store leaves that open,
// findAudio polls: at once, or thirty seconds after the start of an upload.
func (p *process) findAudio(ctx context.Context, shown bool) (needed bool, err error) {
	c := p.meetings.core()
	stored := c.loadState
	if shown {
		stored = c.claimPoll // Create's response counts as a poll
	}
	r := stored(ctx, p.id)
	if shown {
		c.pollEnded(ctx, p.result.Meeting, r.before)
	}
	began := r.err != nil || !r.before.UploadStartedAt.IsZero()
	left := 30 * time.Second // a meeting without audio after that time shows that the upload failed
	if r.err == nil {
		left += time.Until(r.before.UploadStartedAt)
	}
	// Every known state reaches StatusCreated, so the first poll ends the wait.
	w, _ := newWaiter(&WaitOptions{Until: StatusCreated})
	switch {
	case p.source == nil:
	case !began && (shown || !r.before.PolledAt.IsZero()), shown && left <= 0:
		return true, nil
	case began:
		w.Until, w.after = StatusAudioUploaded, c.poller.Now()+max(0, left)
	}
	m, err := c.wait(ctx, p.id, w)
	if _, failed := err.(*MeetingFailedError); failed {
		m, err = meetingIn(err), nil
	}
	p.result.Meeting = cmp.Or(m, meetingIn(err), p.result.Meeting)
	return false, err
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
