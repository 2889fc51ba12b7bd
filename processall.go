package minutes

import (
	"cmp"
	"context"
	"iter"
	"sync"
)

// Job is one recording for [MeetingsService.ProcessAll].
type Job struct {
	Params   *MeetingCreateParams    // with an ExternalID, so that the job can be run again
	Source   Source                  // of the recording; as for Process
	Progress func(sent, total int64) // in place of ProcessOptions.Progress, unless nil
}

// ProcessAll does many jobs, each as [MeetingsService.Process] does one, and yields each
// as it ends: the Result, whose Params are the job's, and the error if the job failed. One
// job's failure does not stop the others. Two jobs with the same ExternalID have one
// meeting: one of them uploads, and both yield its minutes. ProcessAll asks for the next job
// only when fewer jobs than [WithUploadConcurrency] says have their upload ahead of them; any
// number of jobs wait. It needs the scopes of Process. If jobs or opts are invalid, it yields
// one *ParamError with a nil Result.
//
// ProcessAll reads jobs on another goroutine, as [MeetingsService.WaitAll] reads ids: data
// that jobs shares with the loop needs a lock. It calls Source, OnStatus and Progress on many
// goroutines. If Source or OnStatus ends its goroutine, as [runtime.Goexit] and a test's
// FailNow do, the job ends with an error.
//
// When ctx ends, ProcessAll begins no other job and yields those under way with their
// errors. When the loop is left, it cancels them; with an ExternalID, a later run continues
// them. In both cases the yield of jobs returns false: at once if jobs is blocked in yield,
// otherwise for the next job, which does not begin.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil)); err != nil {
			yield(nil, err)
			return
		}
		c := &collector[Job]{yield: yield, canceled: func(bool) bool { return true }}
		room := make(chan struct{}, s.core().slots.limit) // a token for each job until its upload is over
		c.begin = func(job Job) bool {
			if c.ctx.Err() != nil {
				return true
			}
			opts := *o
			if job.Progress != nil {
				opts.Progress = job.Progress
			}
			p := &process{meetings: s, options: &opts, result: &Result{Params: job.Params}, source: job.Source,
				uploadOver: sync.OnceFunc(func() { <-room })}
			c.start(p.result, func() error {
				defer p.uploadOver()
				return p.run(c.ctx)
			})
			return true
		}
		c.run(ctx, func(yield func(Job) bool) {
			room <- struct{}{}
			for job := range jobs {
				if !yield(job) {
					return
				}
				select {
				case room <- struct{}{}: // only then ask for the next job
				case <-c.ctx.Done():
					return
				}
			}
		})
	}
}
