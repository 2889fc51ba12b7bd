package minutes

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// What an error means: the rows of the table in errors.go. internal/rest tests which requests are
// retried.
func TestErrors_MeanWhatTheTableSays(t *testing.T) {
	t.Parallel()
	const never, atOnce = poll.Transient, poll.Rejected // ends a wait
	for name, test := range map[string]struct {
		err         error
		ends        poll.Kind
		retryable   bool
		keyRejected bool
	}{
		// The wait ends with ctx, whatever the kind.
		"canceled":                {&Error{Err: context.Canceled}, poll.Foreign, false, false},
		"no key":                  {&Error{Err: &rest.KeyError{Err: testbase.ErrUntrusted}}, never, true, false},
		"TLS failure":             {&Error{Err: testbase.ErrUntrusted}, poll.Foreign, false, false},
		"TLS failure after 503":   {&Error{StatusCode: 503, Err: testbase.ErrUntrusted}, poll.Foreign, false, false},
		"4xx of a proxy":          {&Error{Err: &rest.ProxyError{Status: "407"}}, poll.Foreign, false, false},
		"429":                     {&Error{StatusCode: 429}, poll.RateLimited, true, false},
		"pause":                   {&Error{Code: ErrRateLimited}, poll.RateLimited, true, false},
		"401":                     {&Error{StatusCode: 401, Code: ErrUnauthenticated}, poll.KeyRejected, false, true},
		"403 of the key":          {&Error{StatusCode: 403, Code: ErrIPNotAllowed}, poll.KeyRejected, false, true},
		"401 without a code":      {&Error{StatusCode: 401}, poll.Foreign, false, true},
		"no connection":           {&Error{Err: testbase.ErrRefused}, never, true, false},
		"lost connection":         {&Error{Err: io.EOF}, never, true, false},
		"2xx that broke off":      {&Error{StatusCode: 200, Err: io.EOF}, never, true, false},
		"503":                     {&Error{StatusCode: 503}, never, true, false},
		"INTERNAL_ERROR":          {&Error{StatusCode: 500, Code: ErrInternal}, never, true, false},
		"599":                     {&Error{StatusCode: 599}, never, true, false},
		"408":                     {&Error{StatusCode: 408}, never, true, false},
		"2xx with a page":         {&Error{StatusCode: 200, foreign2xx: true}, poll.Foreign, true, false},
		"2xx that is too long":    {&Error{StatusCode: 200, oversized: true}, atOnce, false, false},
		"2xx that does not match": {&Error{StatusCode: 200}, poll.Foreign, false, false},
		"302":                     {&Error{StatusCode: 302}, poll.Foreign, false, false},
		"404 without a code":      {&Error{StatusCode: 404}, poll.Foreign, false, false},
		"minutes not ready":       {&Error{StatusCode: 409, Code: ErrMinutesNotReady}, never, true, false},
		"transcript not ready":    {&Error{StatusCode: 409, Code: ErrTranscriptNotReady}, never, true, false},
		"404":                     {&Error{StatusCode: 404, Code: ErrNotFound}, atOnce, false, false},
		"unknown code":            {&Error{StatusCode: 403, Code: "A_CODE_TO_COME"}, atOnce, false, false},
		"deadline":                {context.DeadlineExceeded, atOnce, true, false},
		"no audio":                {ErrNoAudio, atOnce, true, false},
		"parameter":               {&ParamError{}, atOnce, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrapped := errors.Join(test.err, io.ErrClosedPipe)
			assert.Equal(t, test.ends, failureOf(wrapped).Kind)
			assert.Equal(t, test.retryable, Retryable(wrapped))
			assert.Equal(t, test.keyRejected, KeyRejected(wrapped))
		})
	}
}
