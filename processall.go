package minutes

import (
	"cmp"
	"context"
	"iter"
	"sync"
)

// Job is one recording for [MeetingsService.ProcessAll].
type Job struct {
	Params   *MeetingCreateParams    // must not be nil; with an ExternalID, you can run the job again
	Source   Source                  // must not be nil
	Progress func(sent, total int64) // if not nil, replaces ProcessOptions.Progress
}

// ProcessAll processes many jobs, each like [MeetingsService.Process]. When a job ends, ProcessAll
// yields the Result, with the job's Params, and the error if the job failed. The key needs the
// scopes of Process.
//
//   - The failure of one job does not stop the others.
//   - Two jobs with the same ExternalID share one meeting. Both yield the same minutes.
//   - ProcessAll starts as many jobs as [WithUploadConcurrency] allows. When the upload of a job
//     ends, ProcessAll reads and starts the next job.
//   - ProcessAll ranges over jobs on another goroutine. Data that the iterator shares with the loop
//     needs a lock. Each job calls Source, OnStatus and Progress on its own goroutines.
//   - When ctx ends, ProcessAll starts no other job, and yields the running jobs with their errors.
//     When you leave the loop, ProcessAll cancels the running jobs.
//
// Errors: those of Process. If jobs is nil or opts are invalid, ProcessAll only yields a
// *[ParamError] with a nil Result.
func (s *MeetingsService) ProcessAll(ctx context.Context, jobs iter.Seq[Job], opts *ProcessOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("jobs", jobs != nil)); err != nil {
			yield(nil, err)
			return
		}
		c := &collector[Job]{yield: yield, canceled: func(bool) bool { return true }}
		room := make(chan struct{}, cap(s.core.slots)) // a token for each job before the end of its upload
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
				case room <- struct{}{}: // read the next job only after that
				case <-c.ctx.Done():
					return
				}
			}
		})
	}
}
