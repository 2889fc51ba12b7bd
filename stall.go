package minutes

import (
	"sync"
	"time"
)

// stallTimeout is how long an upload may move no byte, waiting for the store's
// reply included, before its try is given up.
const stallTimeout = time.Minute

var errStalled error = &stallError{tryTimeoutError{stallTimeout}}

// stallError is a time-out as net.Error knows them.
type stallError struct{ tryTimeoutError }

func (e *stallError) Error() string { return "no byte of the upload moved for " + e.after.String() }

// watchStall calls stalled when sent has not changed for stallTimeout, give or
// take a look.
func watchStall(sent func() int64, stalled func()) (stop func()) {
	const every = stallTimeout / 4
	var (
		mu    sync.Mutex
		timer *time.Timer
		over  bool
		last  = sent()
		since = time.Now()
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if now := sent(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) >= stallTimeout {
			stalled()
			return
		}
		timer.Reset(every)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
