package minutes

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// ProcessOptions tune the whole job; the zero value, or nil, is fine.
type ProcessOptions struct {
	// Until is the state at which the job ends, as in WaitOptions. Empty means
	// StatusMinutesReady. The minutes are fetched only then. With StatusAudioUploaded
	// another worker can do the rest, with Resume.
	Until      Status
	Format     Format // of the minutes; empty is the service's default, HTML
	Transcript bool   // fetch the transcript with the minutes
	// Restart deletes a meeting with this ExternalID that an earlier run left in a failure
	// state, and starts over. The deletion cannot be undone. It needs the scope
	// meetings:delete. With Resume, it also needs Params.
	Restart bool
	// Params lets Resume create another meeting with Restart; Result.Meeting has its id. If
	// they have an ExternalID, Resume does so too if the meeting is gone, since another run
	// may have deleted it to start over. So after a crash, set Restart and Params again.
	// Without Restart, Params have no effect.
	Params   *MeetingCreateParams
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
	Params     *MeetingCreateParams // the job's own; nil after Resume
	Meeting    *Meeting             // as last seen
	Created    bool                 // this run made the meeting; see Create
	Minutes    *Minutes             // nil if ProcessOptions.Until is another state
	Transcript string               // only with ProcessOptions.Transcript
}

// Process does the whole job: it opens the recording, creates the meeting and then, as
// [MeetingsService.Resume] does, uploads the recording, waits and fetches the minutes.
//
// Process opens the recording once an upload slot is free (see [WithUploadConcurrency]), and
// closes it when the upload is over or turns out to be unnecessary. If it cannot be opened,
// Process makes no request.
//
// With params.ExternalID you can run it again after a crash at any point, or in two workers
// at once: it continues from the meeting's state, and there will be one meeting, one audio
// and one set of minutes. Without one, each run creates a meeting. With [WithStore], an
// upload that another run has begun may end first.
//
// If the first poll finds the meeting unfinished, the job takes at least half a minute
// outside a testing/synctest bubble. It needs the scopes meetings:write, meetings:read and
// minutes:read, and with Restart meetings:delete.
//
// The Result is nil only if the parameters are invalid. Errors: those of source, Create,
// Upload, WaitForMinutes and Transcript; ErrNoAudio as for Resume. If an earlier run left the
// meeting in a failure state, a *MeetingFailedError at once: the interface allows no other
// meeting with its ExternalID until it is deleted, as ProcessOptions.Restart does.
func (s *MeetingsService) Process(ctx context.Context, params *MeetingCreateParams, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("params", params != nil), checkGiven("source", source != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, source: source, result: &Result{Params: params}}
	return p.result, p.run(ctx)
}

// Resume does the rest of the job for a meeting that exists, from any state: it uploads the
// recording if the meeting has no audio, waits and fetches the minutes. It is for a program
// that has created the meeting and responded with its id, and for a worker that continues
// after a crash.
//
// Resume opens the recording only if an upload is needed, as Process does. source may be nil;
// then a meeting without audio is an error. Resume polls first, as [MeetingsService.Wait]
// does. With [WithStore] it knows more: if the meeting was polled and no upload has begun,
// Resume requests the upload URL at once. If an upload has begun, Resume uploads only after a
// poll thirty seconds later shows no audio.
//
// You can run it again at any time, and in two workers at once, as Process: if an upload
// failed and the meeting has audio, Resume takes that for another worker's. So neither
// Resume nor a Process with an ExternalID reports ErrPartialAudio;
// the header Content-MD5 keeps storage from accepting a part of the recording. It needs
// the scopes meetings:read and minutes:read, and meetings:write (assumed) for an upload.
//
// Resume creates no meeting, except as ProcessOptions.Params says. If somebody deleted the
// meeting, it returns ErrNotFound. After a crash, resume with the id that you stored; call
// Process again only if you stored none.
//
// The Result is nil only if the parameters are invalid. Errors: those of source, Upload,
// WaitForMinutes and Transcript; ErrNoAudio, in a *WaitError, for a meeting without audio if
// source is nil, or if the service shows no audio within five minutes (ten polls) of an upload
// that storage accepted; that of closing the recording, joined with any other.
func (s *MeetingsService) Resume(ctx context.Context, id string, source Source, opts *ProcessOptions) (*Result, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkID("id", id), checkGiven("ctx", ctx != nil)); err != nil {
		return nil, err
	}
	p := &process{meetings: s, options: o, source: source, id: id, shared: true, result: new(Result)}
	if o.Restart {
		p.result.Params = o.Params
	}
	return p.result, p.run(ctx)
}

// process is one job under way.
type process struct {
	meetings   *MeetingsService
	options    *ProcessOptions
	source     Source // nil only if Resume got none
	id         string // of the meeting; empty until it is created
	shared     bool   // other workers may know the meeting
	uploadOver func() // called when the audio is there; may be nil
	result     *Result
	closeErr   error // why recordings could not be closed
}

// run does the job. It starts again if another worker has deleted the failed meeting meanwhile.
func (p *process) run(ctx context.Context) error {
	const most = 3
	for starts := 1; ; starts++ {
		err := p.ensureUploaded(ctx)
		if err == nil {
			if p.uploadOver != nil {
				p.uploadOver()
			}
			err = p.waitAndFetch(ctx)
		}
		r, id := p.result, p.id
		// With minutes, it is the transcript that is not found.
		gone := errors.Is(err, ErrNotFound) && p.id != "" && r.Minutes == nil
		if !gone || starts == most || !p.options.Restart || r.Params == nil || r.Params.ExternalID == "" {
			return withCloseError(err, id, p.closeErr)
		}
		p.id = ""
	}
}

// ensureUploaded creates the meeting of a Process, and uploads the recording if the meeting
// has no audio. The recording is open only while the job has an upload slot. If it cannot be
// closed, the job continues.
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
	defer func() { p.closeErr = errors.Join(p.closeErr, done()) }()
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

// create creates the meeting, or finds it; with Restart it replaces one that has failed.
func (p *process) create(ctx context.Context) error {
	r := p.result
	for first := true; ; first = false {
		if r.Meeting != nil && r.Meeting.Status.Failed() {
			// Another worker may have deleted it first.
			if err := p.meetings.Delete(ctx, r.Meeting.ID); err != nil && !errors.Is(err, ErrNotFound) {
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
	shown := r.Meeting != nil && r.Meeting.ID == p.id // by Create
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

// findAudio reports whether the store says that the meeting needs audio. Otherwise it polls. If
// an upload has begun, it polls until the meeting has audio, or thirty seconds have passed after
// the upload began and another request has shown the meeting.
func (p *process) findAudio(ctx context.Context, shown bool) (needed bool, err error) {
	c := p.meetings.core()
	look := c.loadState
	if shown {
		look = c.claimPoll
	}
	l := look(ctx, p.id)
	s := l.before
	began, seen := l.err != nil || !s.UploadStartedAt.IsZero(), s.PolledAt.After(s.UploadStartedAt)
	// Every known state is this one or a later one, so the first poll ends the wait.
	w, _ := newWaiter(&WaitOptions{Until: StatusCreated})
	switch {
	case p.source == nil:
	case !began && (shown || seen), began && shown && seen && l.wait <= 0:
		return true, nil
	case began:
		w.Until, w.after = StatusAudioUploaded, c.poller.Now()
		if !seen {
			w.after += sharedInterval
		}
	}
	m, err := c.wait(ctx, p.id, w)
	if _, failed := err.(*MeetingFailedError); failed {
		m, err = meetingIn(err), nil
	}
	p.result.Meeting = cmp.Or(m, meetingIn(err), p.result.Meeting)
	return false, err
}

// audioDeadline is how long after an upload a job waits for the service to notice the audio.
// That takes seconds; five minutes are ten polls.
const audioDeadline = 5 * time.Minute

// waitAndFetch waits, once the audio is there, and fetches the minutes and the transcript.
func (p *process) waitAndFetch(ctx context.Context) (err error) {
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
	r.Minutes, err = p.meetings.fetchMinutes(ctx, r.Meeting, o.Format)
	if err == nil && o.Transcript {
		r.Transcript, err = fetchReady(ctx, r.Meeting, p.meetings.Transcript)
	}
	return err
}
