package rest

import (
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	lost := outcome{err: io.EOF}
	repeatable := facts{repeatable: true}
	retry, stop := decision{retry: true, wait: wait}, decision{wait: wait}
	pauseAndRetry, pauseAndStop := decision{retry: true, wait: wait, pause: true}, decision{wait: wait, pause: true}
	for name, test := range map[string]struct {
		facts   facts // over the defaults below
		outcome outcome
		want    decision
	}{
		"200":                                {repeatable, outcome{status: 200}, stop},
		"302":                                {repeatable, outcome{status: 302}, stop},
		"400":                                {repeatable, outcome{status: 400}, stop},
		"408":                                {repeatable, outcome{status: 408}, stop},
		"409":                                {repeatable, outcome{status: 409}, stop},
		"499":                                {repeatable, outcome{status: 499}, stop},
		"501":                                {repeatable, outcome{status: 501}, stop},
		"505":                                {repeatable, outcome{status: 505}, stop},
		"500, repeatable":                    {repeatable, outcome{status: 500}, retry},
		"502, repeatable":                    {repeatable, outcome{status: 502}, retry},
		"503, repeatable":                    {repeatable, outcome{status: 503}, retry},
		"504, repeatable":                    {repeatable, outcome{status: 504}, retry},
		"lost, repeatable":                   {repeatable, lost, retry},
		"broke off, repeatable":              {repeatable, outcome{err: io.ErrUnexpectedEOF, status: 200}, retry},
		"404 that broke off, repeatable":     {repeatable, outcome{err: io.ErrUnexpectedEOF, status: 404}, retry},
		"500":                                {facts{}, outcome{status: 500}, stop},
		"503":                                {facts{}, outcome{status: 503}, stop},
		"lost":                               {facts{}, lost, stop},
		"never sent":                         {facts{}, outcome{err: testbase.ErrRefused, neverSent: true}, retry},
		"untrusted certificate":              {repeatable, outcome{err: testbase.ErrUntrusted, neverSent: true}, stop},
		"429":                                {facts{}, outcome{status: 429}, pauseAndRetry},
		"429 that broke off":                 {facts{}, outcome{err: io.EOF, status: 429}, stop},
		"429 for a minute":                   {facts{}, outcome{status: 429, retryAfter: time.Minute}, pauseAndRetry},
		"429 for over a minute":              {facts{}, outcome{status: 429, retryAfter: time.Minute + 1}, pauseAndStop},
		"503 for over a minute":              {repeatable, outcome{status: 503, retryAfter: time.Hour}, stop},
		"429, last attempt":                  {facts{number: 5}, outcome{status: 429}, pauseAndStop},
		"last attempt":                       {facts{number: 5, repeatable: true}, lost, stop},
		"last but one":                       {facts{number: 4, repeatable: true}, lost, retry},
		"poll":                               {facts{once: true, repeatable: true}, lost, stop},
		"poll, 429":                          {facts{once: true, repeatable: true}, outcome{status: 429}, pauseAndStop},
		"polled page, 429":                   {facts{once: true, repeatable: true, polledPage: true}, outcome{status: 429}, stop},
		"deadline after the wait":            {facts{repeatable: true, timeLeft: wait + 1}, lost, retry},
		"deadline at the end of the wait":    {facts{repeatable: true, timeLeft: wait}, lost, stop},
		"deadline within a longer pause":     {facts{repeatable: true, timeLeft: time.Minute, pauseLeft: time.Minute}, lost, stop},
		"deadline after a longer pause":      {facts{repeatable: true, timeLeft: time.Hour, pauseLeft: time.Minute}, lost, retry},
		"canceled as a 503 arrived":          {facts{repeatable: true, ctxDone: true}, outcome{status: 503}, decision{wait: wait, stopped: true}},
		"canceled as a 404 arrived":          {facts{repeatable: true, ctxDone: true}, outcome{status: 404}, stop},
		"canceled as a 503 arrived for POST": {facts{ctxDone: true}, outcome{status: 503}, stop},
		"canceled while it was sent":         {facts{repeatable: true, ctxDone: true}, lost, stop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := test.facts
			f.outcome, f.maxRetries, f.wait = test.outcome, 4, wait
			if f.number == 0 {
				f.number = 1
			}
			if f.timeLeft == 0 {
				f.timeLeft = math.MaxInt64
			}
			assert.Equal(t, test.want, decide(f))
		})
	}
}

func TestOutcome_MayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for want, outcomes := range map[bool][]outcome{
		true:  {{status: 200}, {status: 302}, {status: 500}, {status: 502}, {err: io.EOF}, {err: io.EOF, status: 201}},
		false: {{status: 404}, {status: 429}, {err: errors.New("broke off"), status: 404}, {err: testbase.ErrRefused, neverSent: true}},
	} {
		for _, o := range outcomes {
			assert.Equal(t, want, o.mayHaveTakenEffect(), "%+v", o)
		}
	}
}
