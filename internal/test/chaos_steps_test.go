package test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// A step is one call of a caller, with its attempts. It draws its troubles from its
// own generator, so they do not depend on other calls.
type step struct {
	name     string
	single   bool // its operations run one after the other
	ctx      context.Context
	rnd      *rand.Rand
	mu       sync.Mutex
	over     time.Time // when ctx was done
	attempts []*attempt
}

type attempt struct {
	op        minutes.Operation
	begun     time.Time
	connected time.Time // zero without a connection
	status    int
	lost      bool // no response, or only a part
	dial      bool // and not even a connection
	late      bool // it takes effect later
	noRetry   bool // its Retry-After is long
	edge      bool // something in front of the service rejected it for good
	page      bool // a page of the poller, which paces pages itself
}

// mayHaveTakenEffect reports whether it may have taken effect without a response.
func (t *attempt) mayHaveTakenEffect() bool { return t.lost && !t.dial || t.status >= 500 }

// retryable reports whether another attempt may succeed.
func (t *attempt) retryable() bool {
	return t.lost || t.status >= 499 || t.status == 429 || t.status == 408 || t.status == 403 && t.op == minutes.OpUpload
}

// forbids reports whether its response forbids that op follows. The minutes after a wait
// are requested again in each cycle. A page in front of storage does not prevent a retry
// if an earlier attempt may have stored the recording.
func (t *attempt) forbids(op minutes.Operation) bool {
	again := op == minutes.OpMeetingsMinutes || op == minutes.OpMeetingsTranscript || op == minutes.OpUpload && t.status > 0
	return t.op == op && !again && (t.noRetry || t.edge)
}

type stepKey struct{}

// note updates an attempt. Polls have no step and are not recorded.
func (s *step) note(change func()) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}
}

func (s *step) any(is func(*attempt) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.attempts, is)
}

// last returns the last attempt, or nil.
func (s *step) last() *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attempts) == 0 {
		return nil
	}
	return s.attempts[len(s.attempts)-1]
}

const attemptsPerCall = 5

// puts returns how often the recording was sent. The caller holds mu.
func (s *step) puts() int {
	n := 0
	for _, t := range s.attempts {
		if t.op == minutes.OpUpload {
			n++
		}
	}
	return n
}

// exhausted reports whether the Client made all attempts that it may make, or whether
// a response forbids another one.
func (s *step) exhausted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := 0
	for i, t := range s.attempts {
		if i > 0 && s.attempts[i-1].op == t.op {
			row++
		} else {
			row = 1
		}
		switch {
		case t.noRetry, t.edge, !t.retryable() && t.status >= 400, t.op == minutes.OpUpload && t.status == http.StatusOK: // an early response
			return true
		case t.op == minutes.OpUpload:
		case row >= attemptsPerCall && t.retryable():
			return true
		}
	}
	return s.puts() >= attemptsPerCall || len(s.attempts) > 1 && s.rejectedTwice()
}

// rejectedTwice reports whether the store rejected two URLs: the Client replaces an
// expired one only once.
func (s *step) rejectedTwice() bool {
	n := 0
	for _, t := range s.attempts {
		if t.status == http.StatusForbidden {
			n++
		}
	}
	return n > 1
}

// step starts a call.
func (c *chaos) step(ctx context.Context, name string, rnd *rand.Rand) *step {
	s := &step{name: name, single: true, rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))}
	s.ctx = context.WithValue(ctx, stepKey{}, s)
	context.AfterFunc(ctx, func() { s.note(func() { s.over = time.Now() }) })
	return s
}

// mayHaveTakenEffect reports whether any attempt may have taken effect.
func (s *step) mayHaveTakenEffect() bool { return s.any((*attempt).mayHaveTakenEffect) }
