package rest

import (
	"cmp"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	lost := Outcome{Err: io.EOF}
	repeatable := circumstances{repeatable: true}
	retry, stop := decision{retry: true, wait: wait}, decision{}
	pauseAndRetry, pauseAndStop := decision{retry: true, wait: wait, pause: wait}, decision{pause: wait}
	for name, test := range map[string]struct {
		now     circumstances // over the defaults below
		outcome Outcome
		want    decision
	}{
		"200":                                {repeatable, Outcome{Status: 200}, stop},
		"302":                                {repeatable, Outcome{Status: 302}, stop},
		"400":                                {repeatable, Outcome{Status: 400}, stop},
		"408":                                {repeatable, Outcome{Status: 408}, stop},
		"409":                                {repeatable, Outcome{Status: 409}, stop},
		"499":                                {repeatable, Outcome{Status: 499}, stop},
		"501":                                {repeatable, Outcome{Status: 501}, stop},
		"505":                                {repeatable, Outcome{Status: 505}, stop},
		"500, repeatable":                    {repeatable, Outcome{Status: 500}, retry},
		"502, repeatable":                    {repeatable, Outcome{Status: 502}, retry},
		"503, repeatable":                    {repeatable, Outcome{Status: 503}, retry},
		"504, repeatable":                    {repeatable, Outcome{Status: 504}, retry},
		"lost, repeatable":                   {repeatable, lost, retry},
		"truncated, repeatable":              {repeatable, Outcome{Err: io.ErrUnexpectedEOF, Status: 200}, retry},
		"truncated 404, repeatable":          {repeatable, Outcome{Err: io.ErrUnexpectedEOF, Status: 404}, retry},
		"500":                                {circumstances{}, Outcome{Status: 500}, stop},
		"503":                                {circumstances{}, Outcome{Status: 503}, stop},
		"lost":                               {circumstances{}, lost, stop},
		"never sent":                         {circumstances{}, Outcome{Err: testbase.ErrRefused, neverSent: true}, retry},
		"untrusted certificate":              {repeatable, Outcome{Err: testbase.ErrUntrusted, neverSent: true}, stop},
		"429":                                {circumstances{}, Outcome{Status: 429}, pauseAndRetry},
		"truncated 429":                      {circumstances{}, Outcome{Err: io.EOF, Status: 429}, stop},
		"429 for a minute":                   {circumstances{}, Outcome{Status: 429, retryAfter: time.Minute}, pauseAndRetry},
		"429 for over a minute":              {circumstances{}, Outcome{Status: 429, retryAfter: time.Minute + 1}, pauseAndStop},
		"503 for over a minute":              {repeatable, Outcome{Status: 503, retryAfter: time.Hour}, stop},
		"429, last attempt":                  {circumstances{retriesLeft: -4}, Outcome{Status: 429}, pauseAndStop},
		"last attempt":                       {circumstances{retriesLeft: -4, repeatable: true}, lost, stop},
		"second to last attempt":             {circumstances{retriesLeft: -3, repeatable: true}, lost, retry},
		"poll":                               {circumstances{retriesLeft: -4, repeatable: true}, lost, stop},
		"poll, 429":                          {circumstances{retriesLeft: -4, repeatable: true}, Outcome{Status: 429}, pauseAndStop},
		"polled page, 429":                   {circumstances{retriesLeft: -4, repeatable: true, polledPage: true}, Outcome{Status: 429}, stop},
		"deadline after the wait":            {circumstances{repeatable: true, timeLeft: wait + 1}, lost, retry},
		"deadline at the end of the wait":    {circumstances{repeatable: true, timeLeft: wait}, lost, stop},
		"deadline within a longer pause":     {circumstances{repeatable: true, timeLeft: time.Minute, pauseLeft: time.Minute}, lost, stop},
		"deadline after a longer pause":      {circumstances{repeatable: true, timeLeft: time.Hour, pauseLeft: time.Minute}, lost, retry},
		"canceled as a 503 arrived":          {circumstances{repeatable: true, timeLeft: -1}, Outcome{Status: 503}, stop},
		"canceled as a 404 arrived":          {circumstances{repeatable: true, timeLeft: -1}, Outcome{Status: 404}, stop},
		"canceled as a 503 arrived for POST": {circumstances{timeLeft: -1}, Outcome{Status: 503}, stop},
		"canceled while it was sent":         {circumstances{repeatable: true, timeLeft: -1}, lost, stop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := test.now
			now.wait = cmp.Or(now.wait, wait)
			now.retriesLeft += 4
			now.timeLeft = cmp.Or(now.timeLeft, math.MaxInt64)
			assert.Equal(t, test.want, decide(test.outcome, now))
		})
	}
}

func TestOutcome_MayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for want, outcomes := range map[bool][]Outcome{
		true:  {{Status: 200}, {Status: 302}, {Status: 500}, {Status: 502}, {Err: io.EOF}, {Err: io.EOF, Status: 201}},
		false: {{Status: 404}, {Status: 429}, {Err: errors.New("broke off"), Status: 404}, {Err: testbase.ErrRefused, neverSent: true}},
	} {
		for _, o := range outcomes {
			assert.Equal(t, want, o.mayHaveTakenEffect(), "%+v", o)
		}
	}
}

func TestCall_Repeatable(t *testing.T) {
	t.Parallel()
	for want, calls := range map[bool][]call{
		true:  {{Response: Response{Route: &route.Route{Repeat: route.Always}}}, {Response: Response{Route: &route.Route{Repeat: route.WithExternalID}}, in: Request{HasExternalID: true}}},
		false: {{Response: Response{Route: &route.Route{}}}, {Response: Response{Route: &route.Route{Repeat: route.WithExternalID}}}, {Response: Response{Route: &route.Route{}}, in: Request{HasExternalID: true}}},
	} {
		for i := range calls {
			assert.Equal(t, want, calls[i].repeatable(), "%v %d", want, i)
		}
	}
}
