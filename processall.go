package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
)

// Job is one recording for [MeetingsService.ProcessAll].
type Job struct {
	Params *MeetingCreateParams // with an ExternalID, so that the job can be run again
	// Open opens the recording when Finish would; see OpenRecording. Its meeting exists
	// by then, and stays without audio if Open fails.
	Open     func() (Recording, error)
	Progress func(sent, total int64) // in place of ProcessOptions.Progress, unless nil
}

// ProcessAll does many jobs, each as [MeetingsService.Process] does one, and
// yields each as it ends: the Result, whose Params are the job's own, and the
// error if it failed. One job's failure does not stop the others. The next
// job is asked for when fewer are on their way to the end of their upload than
// [WithUploads] says; any number of jobs wait. It needs the scopes that Process
// needs. If jobs or opts cannot be used, one *ParamError is yielded, with a nil
// Result.
//
// jobs is read as [MeetingsService.WaitAll] reads ids: what it shares with the loop
// needs a lock. Open, OnStatus and Progress are called from many goroutines.
//
// When ctx ends, no job is taken any more, and those that had begun are yielded
// with their errors. When the loop is left, they are cancelled; with an
// ExternalID, a later run goes on where they were. In both cases the yield of
// jobs returns false: at once if jobs is blocked in yield, else for the next job,
// which is not begun.
//
// A panic in jobs, Open or OnStatus is repeated in the loop, after the other jobs
// were cancelled and have ended. If Open or OnStatus ends its goroutine, as
// [runtime.Goexit] and a test's FailNow do, the job is yielded with an error that says
// so. Progress runs on a goroutine of the transport, where a panic ends the program.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil)); err != nil {
			yield(nil, err)
			return
		}
		all := processAll{meetings: s, options: o, room: make(chan struct{}, s.core().slots.limit), ended: make(chan *process)}
		if panicked := all.run(ctx, jobs, yield); panicked != nil {
			panic(panicked)
		}
	}
}

// processAll is one ProcessAll under way.
type processAll struct {
	meetings *MeetingsService
	options  *ProcessOptions
	room     chan struct{} // one token per job whose upload is not over, and one for the next job
	running  int           // jobs begun and not yet received from ended
	ended    chan *process
}

// run returns the value a callback panicked with, or nil, after all jobs have ended.
func (a *processAll) run(ctx context.Context, jobs iter.Seq[Job], yield func(*Result, error) bool) (panicked any) {
	ctx, cancel := context.WithCancel(ctx)
	next, end := background(ctx, a.withRoom(ctx, jobs))
	defer func() {
		cancel()
		for ; a.running > 0; a.running-- {
			if p := <-a.ended; panicked == nil {
				panicked = p.panicked
			}
		}
	}()
	done := ctx.Done()
	for next != nil || a.running > 0 {
		select {
		case <-done:
			next, done = nil, nil
		case job, more := <-next:
			if !more {
				next = nil
				end()
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

// withRoom yields the jobs, and reads each only when there is room for it.
func (a *processAll) withRoom(ctx context.Context, jobs iter.Seq[Job]) iter.Seq[Job] {
	return func(give func(Job) bool) {
		a.room <- struct{}{}
		for job := range jobs {
			if !give(job) {
				return
			}
			select {
			case a.room <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

var errEndedGoroutine = errors.New("minutes: a callback, or the transport, ended its goroutine (runtime.Goexit)")

// work does a job and sends it to ended, even if a callback panics or ends the goroutine.
func (a *processAll) work(ctx context.Context, job Job) {
	opts := *a.options
	if job.Progress != nil {
		opts.Progress = job.Progress
	}
	p := &process{
		meetings: a.meetings, options: &opts, result: &Result{Params: job.Params},
		open: job.Open, uploadOver: sync.OnceFunc(func() { <-a.room }),
		err: errEndedGoroutine, // unless run returns
	}
	defer func() {
		p.panicked = recover()
		p.uploadOver()
		a.ended <- p
	}()
	p.err = p.run(ctx)
}
