package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// ProcessOptions configures Process, Resume and ProcessAll. A nil pointer or a zero field selects
// the default. A field that the call cannot use is a *[ParamError].
type ProcessOptions struct {
	// Until is the status at which the call ends (default StatusMinutesReady), like
	// WaitOptions.Until. With an earlier status, the call fetches no minutes. Until
	// StatusAudioUploaded, the call may take half a minute longer than Create and Upload, because the
	// service may notice the audio after the first poll.
	Until Status
	// Format is the format of the minutes: FormatHTML (the default) or FormatMarkdown. (For another,
	// call MeetingsService.Minutes.)
	Format Format
	// Transcript makes the call fetch the transcript as well. Until must be StatusTranscribed or later;
	// with StatusTranscribed, the call fetches only the transcript, and succeeds even if the minutes
	// have failed meanwhile. With StatusMinutesReady, it comes after the minutes, so after
	// StatusMinutesFailed, call MeetingsService.Transcript.
	Transcript bool
	// OnStatus works like WaitOptions.OnStatus: it runs on the caller's goroutine, and ProcessAll
	// calls it between two runs of the loop's body.
	OnStatus func(*Meeting)
	// Progress works like UploadOptions.Progress, so it runs on another goroutine. In ProcessAll,
	// the Progress of several jobs may run at once.
	Progress func(sent, total int64)
}

// checked checks the options and returns a copy with defaults.
func (o *ProcessOptions) checked() (ProcessOptions, error) {
	opts := *cmp.Or(o, new(ProcessOptions))
	wait, err := opts.waitOptions().checked()
	opts.Until = wait.Until
	return opts, err
}

// waitOptions returns the options of the wait after the upload.
func (o *ProcessOptions) waitOptions() *WaitOptions {
	return &WaitOptions{Until: o.Until, Format: o.Format, Transcript: o.Transcript, OnStatus: o.OnStatus}
}

// Result holds what a call has obtained for one meeting. If the call failed, it holds everything
// from before the failure.
type Result struct {
	// MeetingID is set as soon as there is a meeting. If Create failed, Params identifies the job.
	MeetingID string
	Meeting   *Meeting // last snapshot; nil if no response showed the meeting
	Created   bool     // as Create returns it; see there for when it is false
	// Uploaded means that storage has confirmed the whole recording of this call. If it is false after
	// Process, the audio comes from another worker or an earlier run, or storage's response was lost.
	// If such an upload broke off, the audio may be a part of the recording: see [docs/restarts.md].
	//
	// [docs/restarts.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/restarts.md#whose-audio-it-is
	Uploaded   bool
	Params     *MeetingCreateParams // of Process or Job; otherwise nil
	Minutes    *Minutes             // nil if Until is an earlier status
	Transcript *Transcript          // nil without the option Transcript
	// Err is the error of this meeting in a loop over WaitAll, ProcessAll or Follow. Process,
	// Resume and WaitForMinutes return their error instead, and leave Err nil. As JSON, a Result has no
	// Err, because encoding/json would write an empty object.
	Err error `json:"-"`
}

// Process creates the meeting, uploads the recording, waits, and fetches the minutes. It needs the
// scopes meetings:write, meetings:read and minutes:read. It has no overall timeout, so set a
// deadline on ctx. See [docs/restarts.md] for crashes and several workers.
//
//   - With params.ExternalID, you can run Process again after a crash, or in two workers at once,
//     because it continues from the meeting's status. The result is one meeting, one recording and
//     one set of minutes. Without an ExternalID, each run creates a meeting.
//   - If someone deleted the meeting of an earlier run, Process creates another, whereas
//     [MeetingsService.Resume] never does.
//   - Process waits for an upload slot (see [WithUploadConcurrency]) and opens the recording before
//     it creates the meeting, so an unusable recording costs no request. Every run opens the
//     recording, even if the meeting already has its audio. So keep it until Process has succeeded,
//     or use Resume, which needs no recording once there is audio.
//   - Result.Uploaded says whether the audio is this call's. If it is not, the log warns, once for each
//     Client.
//
// Errors:
//   - *[ParamError] with a nil Result: params or source is nil, an id in params is not valid UTF-8, or
//     opts are invalid. All other errors come with a Result.
//   - Any error that source returns, and those of Create, Upload and WaitForMinutes.
//   - [ErrExternalIDTaken]: the ExternalID belongs to another meeting, because that has another Date
//     (StatusCode is 0), or because the key cannot see it (assumed). Nothing is uploaded. In the first
//     case, Result has the meeting; if it is the same after all, call Resume with its id. Titles and
//     recordings are not compared, so with another recording you get the minutes of the existing one;
//     Result.Created and Uploaded are false.
//   - *[MeetingFailedError] at once, if the meeting failed in an earlier run, before Until. To try
//     again, delete the meeting and call Process again.
//   - *[WaitError] with [ErrNoAudio]: the service shows no audio within ten minutes of the upload.
//
// [docs/restarts.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/restarts.md
func (s *MeetingsService) Process(
	ctx context.Context, params *MeetingCreateParams, source Source, opts *ProcessOptions,
) (*Result, error) {
	o, err := opts.checked()
	err = cmp.Or(err,
		checkGiven("ctx", ctx != nil),
		params.check(),
		checkGiven("source", source != nil),
	)
	if err != nil {
		return nil, err
	}
	r := &Result{Params: params}
	p := processing{core: s.core, opts: o, source: source}
	return r, p.createUploadWait(ctx, r)
}

// Resume does the remaining steps for a meeting that exists: it uploads the recording if the
// meeting has no audio, waits, and fetches the minutes. It needs the scopes meetings:read and
// minutes:read, and for an upload meetings:write (assumed). You can run it again at any time, and
// in two workers at once. See [docs/restarts.md] for crashes and several workers.
//
//   - If the meeting has audio, Resume does not open the recording, so source may be nil. Without a
//     source, a meeting without audio is polled once more before Resume returns ErrNoAudio, which takes
//     up to thirty seconds.
//   - If another worker uploads audio first, Resume continues with that.
//   - Resume never creates a meeting, so if someone deleted the meeting, the error matches
//     [ErrNotFound].
//
// Errors:
//   - *[ParamError] with a nil Result: id or opts are invalid. All other errors come with a Result.
//   - Any error that source returns, and those of Upload and WaitForMinutes.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio and source is nil, or the service
//     shows no audio within ten minutes of the upload.
//
// [docs/restarts.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/restarts.md
func (s *MeetingsService) Resume(
	ctx context.Context, id string, source Source, opts *ProcessOptions,
) (*Result, error) {
	o, err := opts.checked()
	err = cmp.Or(err, s.core.checkID("id", id), checkGiven("ctx", ctx != nil))
	if err != nil {
		return nil, err
	}
	r := &Result{MeetingID: id}
	p := processing{core: s.core, opts: o, source: source}
	r.Meeting, err = s.core.look(ctx, id, source == nil, time.Time{})
	switch {
	case err != nil:
		return r, err
	case r.Meeting.Status != StatusCreated:
		return r, p.awaitMinutes(ctx, r)
	case source == nil:
		return r, &WaitError{MeetingID: id, Meeting: r.Meeting, Err: ErrNoAudio}
	}
	return r, p.createUploadWait(ctx, r)
}

// processing is one Process or Resume, or one job of ProcessAll.
type processing struct {
	core    *core
	opts    ProcessOptions
	source  Source
	sentAs  string // the content type of the recording, once it is open
	jobSlot slot   // of ProcessAll, which starts the next job when it is freed; otherwise the zero slot
	unseen  slot   // is held during a fetch, and then until the body has seen the result
}

// createUploadWait does all steps, apart from those that another run has done already.
func (p *processing) createUploadWait(ctx context.Context, r *Result) error {
	opened := false
	err := p.core.withRecording(ctx, p.source, func(rec Recording) error {
		opened = true
		return p.createAndUpload(ctx, r, rec)
	})
	if err != nil && !opened && r.Meeting != nil {
		err = p.withoutRecording(ctx, r, err)
	}
	if err != nil {
		return err
	}
	p.jobSlot.free()
	return p.awaitMinutes(ctx, r)
}

// withoutRecording returns err, unless another worker has uploaded audio since the response that Resume
// began with, and perhaps deleted the recording, which is why it cannot be opened. A ParamError is final,
// because it is about what is there, such as a file of text.
func (p *processing) withoutRecording(ctx context.Context, r *Result, err error) error {
	_, unusable := errors.AsType[*ParamError](err)
	if unusable {
		return err
	}
	m, lookErr := p.core.look(ctx, r.MeetingID, true, time.Time{})
	if lookErr != nil || m.Status == StatusCreated {
		return err
	}
	r.Meeting = m
	return nil
}

// createAndUpload creates the meeting unless r has one, and uploads rec unless the meeting has
// audio.
func (p *processing) createAndUpload(ctx context.Context, r *Result, rec Recording) error {
	shared := true // with other workers
	if r.Meeting == nil {
		m, resp, err := p.core.createMeeting(ctx, r.Params, storage.Patience)
		if err != nil {
			return err
		}
		r.Meeting = m
		r.MeetingID = m.ID
		r.Created = resp.Status == http.StatusCreated
		if !r.Created && m.Date != "" && m.Date != r.Params.Date {
			return p.core.otherMeeting(resp, m, r.Params)
		}
		shared = r.Params.ExternalID != ""
	}
	if r.Meeting.Status != StatusCreated {
		return nil
	}
	p.sentAs = rec.ContentType
	confirmed, err := p.core.upload(ctx, r.MeetingID, rec, p.opts.Progress, shared)
	r.Uploaded = confirmed
	return err
}

// otherMeeting returns the error of a meeting that has the ExternalID and another date. Its title does
// not matter, because people rename meetings.
func (c *core) otherMeeting(resp *rest.Response, m *Meeting, params *MeetingCreateParams) *Error {
	taken := c.requestError(resp, fmt.Sprintf("meeting %s has this ExternalID, and its date is %s, not %s: "+
		"use another ExternalID, or call Resume with the meeting's id if it is the same meeting after all",
		m.ID, m.Date, params.Date))
	taken.StatusCode = 0
	taken.Code = ErrExternalIDTaken
	return taken
}

// awaitMinutes waits after the upload, and fetches the minutes and the transcript.
func (p *processing) awaitMinutes(ctx context.Context, r *Result) error {
	if p.source != nil && !r.Uploaded {
		p.core.warnOfAudio.Do(func() {
			p.core.log.LogAttrs(ctx, slog.LevelWarn, "minutes: a meeting has audio that its call did not upload",
				slog.String("meeting", singleLine(r.MeetingID)))
		})
	}
	const audioTimeout = 10 * time.Minute // a service that loses the audio of an upload must not hang the call
	o := p.opts.waitOptions()
	g := o.goal()
	g.audioBy = time.Now().Add(audioTimeout)
	err := p.core.waitAndFetch(ctx, r, *o, g, &p.unseen)
	failed, ok := errors.AsType[*MeetingFailedError](err)
	if ok && r.Uploaded {
		failed.sentAs = p.sentAs
	}
	return err
}

// Job describes one recording for [MeetingsService.ProcessAll].
type Job struct {
	// Params must not be nil. With an ExternalID, you can run the job again.
	Params   *MeetingCreateParams
	Source   Source                  // must not be nil
	Progress func(sent, total int64) // if not nil, replaces ProcessOptions.Progress
}

// ProcessAll processes many jobs, each like [MeetingsService.Process], and yields a [Result] when a
// job ends. It needs the scopes of Process.
//
//   - Result.Err is the error of one job, and does not stop the others.
//   - Two jobs with the same ExternalID and Date share one meeting, and both yield its minutes. If the
//     dates differ, one of the two gets ErrExternalIDTaken.
//   - ProcessAll starts as many jobs as [WithUploadConcurrency] allows, and the next one when the
//     upload of a job has ended. So a long list of jobs does not open all its recordings at once.
//   - ProcessAll ranges over jobs on another goroutine, so the body of the loop must not change what
//     jobs reads, and jobs must not change Params that it has yielded. That goroutine ends no later
//     than the loop, unless jobs is busy at that moment: then it ends when jobs next yields, and the
//     loop does not take that job. Source and Progress run on other goroutines, too, but OnStatus
//     runs on that of the loop. A panic in jobs, Source or Progress ends the program.
//   - When ctx is done, or the service rejects the key, ProcessAll reads no further job, and each
//     job that is running gets a Result, whose Err is usually ctx's error or the rejection of the
//     key, as in Process. This is not a failure of the recording, so run the job again. Jobs that
//     were not read get no Result.
//   - When you leave the loop, ProcessAll cancels the jobs that are running.
//   - If the body of the loop is slow, ProcessAll fetches the minutes of only a few meetings ahead
//     of it.
//
// Each Result has its job's Params, and MeetingID as soon as there is a meeting. Result.Err is an
// error of Process.
//
// An error as the second value comes with a nil Result and ends the loop, once each job that the loop
// took has had its own Result. It is a *[WaitError] if ctx is done, even if only the body was still
// busy with the last Result, or if the service rejected the key (see [KeyRejected]). It is a
// *[ParamError] if ctx or jobs is nil or opts are invalid.
func (s *MeetingsService) ProcessAll(
	ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions,
) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil))
		if err != nil {
			yield(nil, err)
			return
		}
		// starting holds a token for each job of this loop before the end of its upload. The upload
		// itself takes one of the Client's slots, too.
		starting := make(chan struct{}, cap(s.core.uploadSlots))
		inputs := startable(jobs, starting)
		parallel(ctx, yield, inputs, func(ctx context.Context, l *loop, job Job) {
			p := processing{
				core: s.core, opts: o, source: job.Source,
				jobSlot: slot{tokens: starting, acquired: true}, // the token that inputs acquired
				unseen:  slot{tokens: l.unseen},
			}
			defer p.unseen.free()
			// A job that fails before the end of its upload frees its token after l.yield. So after a
			// rejected key, l.yield has stopped the reading before mayStart can get the token.
			defer p.jobSlot.free()
			p.opts.OnStatus = l.onStatus(o.OnStatus)
			if job.Progress != nil {
				p.opts.Progress = job.Progress
			}
			l.yield(p.job(ctx, job))
		})
	}
}

// startable returns jobs as inputs that acquire a token of starting for each job. The job frees it.
func startable(jobs iter.Seq[Job], starting chan struct{}) inputs[Job] {
	return func(readingCtx context.Context, yield func(Job) bool) error {
		// mayStart takes the token of the next job, before jobs yields it: a job that was read must be
		// run.
		mayStart := func() bool {
			next := slot{tokens: starting}
			return next.acquire(readingCtx) == nil && readingCtx.Err() == nil
		}
		more := mayStart()
		if more {
			jobs(func(job Job) bool {
				more = more && yield(job) && mayStart() // without a token, no further job may begin
				return more
			})
		}
		return nil // the loop knows why it ends
	}
}

// job does one job of ProcessAll.
func (p *processing) job(ctx context.Context, job Job) *Result {
	r := &Result{Params: job.Params}
	r.Err = cmp.Or(job.Params.check(), checkGiven("source", job.Source != nil))
	if r.Err == nil {
		r.Err = p.createUploadWait(ctx, r)
	}
	return r
}
