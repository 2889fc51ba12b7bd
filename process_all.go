package minutes

import (
	"context"
	"errors"
	"iter"
	"sync"
)

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
// error where it failed. One job's failure does not stop the others. A job is
// taken from jobs when there is room for its upload; ProcessOptions.Uploads
// bounds uploads, not waits. OnStatus and Progress are called from many
// goroutines; jobs is read on the one that runs the loop: while it blocks,
// nothing is yielded and ctx is not looked at. For jobs that come one at a time,
// call Process in a goroutine for each. Where jobs or opts cannot be used, one
// *ParamError is yielded, with a nil Result.
//
// When ctx ends, no job is taken any more, and those that had begun are yielded
// with their errors. When the loop is left, they are cancelled; with an
// ExternalID, a later run goes on where they were.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.orDefault()
		switch {
		case err != nil:
		case ctx == nil:
			err = &ParamError{"ctx", "must not be nil"}
		case jobs == nil:
			err = &ParamError{"jobs", "must not be nil"}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		s.processAll(ctx, jobs, o, yield)
	}
}

func (s *MeetingsService) processAll(ctx context.Context, jobs iter.Seq[Job], o ProcessOptions, yield func(*Result, error) bool) {
	type ended struct {
		*Result
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	var (
		running sync.WaitGroup
		under   int // jobs that have begun and were not yielded
		room    = make(chan struct{}, o.Uploads)
		results = make(chan ended)
		left    = make(chan struct{}) // closed when the loop is left
	)
	defer running.Wait()
	defer close(left)
	defer cancel()
	work := func(job Job) {
		r := &Result{Params: job.Params}
		var err, closeErr error
		for starts := 1; ; starts++ {
			closeErr, err = s.beginJob(ctx, r, job, o)
			<-room
			if err == nil {
				err = s.conclude(ctx, r, o)
			}
			if ctx.Err() != nil || !startsOver(r, o, err, starts) {
				break
			}
			room <- struct{}{} // it comes: whoever has it gives it back
		}
		if closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		select {
		case results <- ended{r, err}:
		case <-left:
		}
	}
	next, stop := iter.Pull(jobs)
	defer stop()
	more, done := true, ctx.Done()
	for more || under > 0 {
		roomLeft := room
		if !more {
			roomLeft = nil
		}
		select {
		case <-done:
			more, done = false, nil
		case roomLeft <- struct{}{}:
			job, ok := next()
			if !ok || ctx.Err() != nil {
				more = false
				<-room
				continue
			}
			under++
			running.Go(func() { work(job) })
		case r := <-results:
			under--
			if !yield(r.Result, r.err) {
				return
			}
		}
	}
}

// beginJob is begin for a job, whose recording it opens and closes. A recording
// that was uploaded and cannot be closed does not keep the job from going on.
func (s *MeetingsService) beginJob(ctx context.Context, r *Result, job Job, o ProcessOptions) (closeErr, err error) {
	if err := job.Params.check(); err != nil {
		return nil, err
	}
	if job.Open == nil {
		return nil, &ParamError{"job.Open", "must not be nil"}
	}
	if job.Progress != nil {
		o.Progress = job.Progress
	}
	var rec Recording
	defer func() { closeErr = rec.Close() }()
	return nil, s.begin(ctx, r, func() (Recording, error) {
		opened, err := job.Open()
		if err == nil {
			rec = opened
		}
		return opened, err
	}, o)
}
