package upload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		o    Outcome
		late bool
		want verdict
	}{
		"200":                     {o: Outcome{Response: Response{StatusCode: 200}}, want: stored},
		"204":                     {o: Outcome{Response: Response{StatusCode: 204}}, want: stored},
		"307":                     {o: Outcome{Response: Response{StatusCode: 307}}, want: permanent},
		"400":                     {o: Outcome{Response: Response{StatusCode: 400}}, want: permanent},
		"400, late":               {o: Outcome{Response: Response{StatusCode: 400}}, late: true, want: permanent},
		"400 RequestTimeout":      {o: Outcome{Response: Response{StatusCode: 400, Code: "RequestTimeout"}}, want: notStored},
		"400 IncompleteBody":      {o: Outcome{Response: Response{StatusCode: 400, Code: "IncompleteBody"}}, want: notStored},
		"200 that proves nothing": {o: Outcome{Response: Response{StatusCode: 200, Message: "a page"}}, want: maybeStored},
		"400 ExpiredToken":        {o: Outcome{Response: Response{StatusCode: 400, Code: "ExpiredToken"}}, want: expired},
		"403":                     {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied"}}, want: permanent},
		"403, late":               {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied"}}, late: true, want: expired},
		"403 that says expired":   {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied", Message: "Request has Expired"}}, want: expired},
		"404":                     {o: Outcome{Response: Response{StatusCode: 404, Code: "NoSuchKey"}}, want: permanent},
		"404 that says expired":   {o: Outcome{Response: Response{StatusCode: 404, Message: "expired"}}, late: true, want: permanent},
		"405":                     {o: Outcome{Response: Response{StatusCode: 405, Code: "MethodNotAllowed"}}, want: permanent},
		"408":                     {o: Outcome{Response: Response{StatusCode: 408}}, want: notStored},
		"409":                     {o: Outcome{Response: Response{StatusCode: 409, Code: "Conflict"}}, want: permanent},
		"409 OperationAborted":    {o: Outcome{Response: Response{StatusCode: 409, Code: "OperationAborted"}}, want: notStored},
		"411":                     {o: Outcome{Response: Response{StatusCode: 411, Code: "MissingContentLength"}}, want: permanent},
		"413":                     {o: Outcome{Response: Response{StatusCode: 413}}, want: permanent},
		"417":                     {o: Outcome{Response: Response{StatusCode: 417}}, want: permanent},
		"417 with Expect":         {o: Outcome{Response: Response{StatusCode: 417}, without: "Expect"}, want: notStored},
		"429":                     {o: Outcome{Response: Response{StatusCode: 429}}, want: notStored},
		"499":                     {o: Outcome{Response: Response{StatusCode: 499}}, want: notStored},
		"500":                     {o: Outcome{Response: Response{StatusCode: 500, Code: "InternalError"}}, want: notStored},
		"501":                     {o: Outcome{Response: Response{StatusCode: 501, Code: "NotImplemented"}}, want: permanent},
		"502":                     {o: Outcome{Response: Response{StatusCode: 502}}, want: notStored},
		"503":                     {o: Outcome{Response: Response{StatusCode: 503, Code: "SlowDown"}}, want: notStored},
		"503, late":               {o: Outcome{Response: Response{StatusCode: 503, Code: "SlowDown"}}, late: true, want: notStored},
		"504":                     {o: Outcome{Response: Response{StatusCode: 504}}, want: notStored},
		"519":                     {o: Outcome{Response: Response{StatusCode: 519}}, want: permanent},
		"520":                     {o: Outcome{Response: Response{StatusCode: 520}}, want: notStored},
		"527":                     {o: Outcome{Response: Response{StatusCode: 527}}, want: notStored},
		"528":                     {o: Outcome{Response: Response{StatusCode: 528}}, want: permanent},
		"no response":             {o: Outcome{}, want: maybeStored},
		"an unreadable recording": {o: Outcome{permanent: true}, want: permanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Sent, test.o.urlLeft = 1, time.Second
			if test.late {
				test.o.urlLeft = 0
			}
			require.Equal(t, test.want, judge(test.o))
		})
	}
	require.Equal(t, notStored, judge(Outcome{urlLeft: 1}), "no response, and nothing was sent")
	require.Equal(t, notStored, judge(Outcome{Response: Response{StatusCode: 503}}), "a 503 before anything was sent")
}

// The decision after an attempt. Unless the case says otherwise, up to four retries are allowed,
// the wait is a second, the URL expires in a minute and the recording has two bytes.
func TestDecide(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	sent := func(n int64, status int) Outcome {
		return Outcome{Response: Response{StatusCode: status}, Sent: n, Size: 2, urlLeft: time.Minute}
	}
	nothing, part, all := sent(0, 0), func(status int) Outcome { return sent(1, status) }, func(status int) Outcome { return sent(2, status) }
	with := func(o Outcome, change func(*Outcome)) Outcome { change(&o); return o }
	noTime := func(o Outcome) Outcome { o.noTime = true; return o }
	expires := func(o Outcome, in time.Duration) Outcome { o.urlLeft = in; return o }
	asks := func(o Outcome, d time.Duration) Outcome { o.RetryAfter = d; return o }
	aborted := with(part(0), func(o *Outcome) { o.permanent = true })
	late := expires(part(403), 0)

	begin := history{retries: 4}
	last := history{attempts: 4, retries: 4}
	none := history{}
	lost := history{attempts: 1, retries: 4, urlUsed: true, maybeStored: true}
	lostAll := history{attempts: 1, retries: 4, urlUsed: true, maybeStored: true, sentAll: true}
	fresh := history{attempts: 2, retries: 4, maybeStored: true} // with a new URL
	renewed := history{attempts: 1, retries: 4, renewed: true}
	shared := func(h history) history { h.shared = true; return h }

	fail := func(checks int) decision {
		d := decision{checks: checks, retryable: true}
		if checks > 0 {
			d.wait = wait
		}
		return d
	}
	retry := func(checks int) decision { return decision{retry: true, wait: wait, checks: checks, retryable: true} }
	newURL := func(d decision) decision { d.newURL = true; return d }
	never := func(d decision) decision { d.retryable = false; return d }
	atOnce := func(d decision) decision { d.wait = 0; return d }
	for name, test := range map[string]struct {
		h    history
		o    Outcome
		want decision
	}{
		"stored":                                      {begin, all(200), decision{stored: true, retryable: true}},
		"stored after a lost response":                {lostAll, all(200), decision{stored: true, retryable: true}},
		"not stored":                                  {begin, part(429), retry(0)},
		"not stored, after a loss":                    {lost, part(429), retry(0)},
		"not stored, after a lost response":           {lostAll, part(429), retry(0)},
		"not stored, the last":                        {last, part(429), fail(0)},
		"not stored, no retries":                      {none, part(429), fail(0)},
		"not stored, little time":                     {begin, noTime(part(429)), fail(0)},
		"not stored, until the URL expires":           {begin, expires(part(429), wait), newURL(retry(0))},
		"not stored, just before the URL expires":     {begin, expires(part(429), wait+1), retry(0)},
		"asked to wait for a minute":                  {begin, asks(part(429), time.Minute), retry(0)},
		"asked to wait for longer":                    {begin, asks(part(429), time.Minute+1), fail(0)},
		"asked to wait for longer, after a loss":      {lost, asks(part(429), time.Minute+1), atOnce(fail(1))},
		"nothing was sent":                            {begin, nothing, retry(0)},
		"nothing was sent, after a loss":              {lost, nothing, retry(0)},
		"permanent":                                   {begin, part(404), never(fail(0))},
		"permanent, of the whole recording":           {begin, all(404), never(fail(0))},
		"permanent with a new URL":                    {fresh, part(404), never(fail(1))},
		"permanent, but the URL may be used up":       {lost, part(403), never(newURL(retry(1)))},
		"permanent, after a lost response":            {lostAll, part(403), never(newURL(retry(2)))},
		"permanent, the URL may be used up, the last": {history{attempts: 4, retries: 4, urlUsed: true, maybeStored: true}, part(403), never(fail(1))},
		"an unreadable recording":                     {begin, aborted, never(fail(0))},
		"an unreadable recording, after a loss":       {lost, aborted, never(fail(1))},
		"lost":                                        {begin, part(0), retry(1)},
		"lost again":                                  {lost, part(0), newURL(retry(1))},
		"lost with a new URL":                         {fresh, part(0), retry(1)},
		"lost, the last":                              {last, part(0), fail(1)},
		"lost, no retries":                            {none, part(0), fail(1)},
		"lost, little time":                           {begin, noTime(part(0)), atOnce(fail(1))},
		"lost, after a lost response":                 {lostAll, part(0), newURL(retry(2))},
		"lost, and the URL expires":                   {begin, expires(part(0), wait), newURL(retry(1))},
		"response lost":                               {begin, all(0), retry(2)},
		"response lost, and the URL expires":          {begin, expires(all(0), 0), newURL(retry(2))},
		"response lost, the last":                     {last, all(0), fail(2)},
		"response lost, no retries":                   {none, all(0), fail(2)},
		"response lost, little time":                  {begin, noTime(all(0)), atOnce(fail(2))},
		"expired":                                     {begin, late, newURL(retry(0))},
		"expired, after a lost response":              {lostAll, late, newURL(retry(0))},
		"expired again":                               {renewed, late, fail(0)},
		"expired, no retries":                         {none, late, fail(0)},

		"shared, permanent":         {shared(begin), part(403), never(fail(1))},
		"shared, not stored":        {shared(begin), part(429), retry(0)},
		"shared, lost":              {shared(begin), part(0), retry(1)},
		"shared, the last":          {shared(last), part(429), fail(1)},
		"shared, the response lost": {shared(last), all(0), fail(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := decide(test.h, test.o, wait)
			require.Equal(t, test.want, got)
		})
	}
}

func TestDecide_UpdatesHistory(t *testing.T) {
	t.Parallel()
	begin := history{retries: 4}
	for name, test := range map[string]struct {
		o    Outcome
		want history
	}{
		"lost":          {Outcome{Sent: 1}, history{attempts: 1, retries: 4, urlUsed: true, maybeStored: true}},
		"response lost": {Outcome{Sent: 2}, history{attempts: 1, retries: 4, urlUsed: true, maybeStored: true, sentAll: true}},
		"not stored":    {Outcome{Sent: 1, Response: Response{StatusCode: 429}}, history{attempts: 1, retries: 4}},
		"permanent":     {Outcome{Sent: 2, Response: Response{StatusCode: 404}}, history{attempts: 1, retries: 4, sentAll: true}},
		"expired":       {Outcome{Response: Response{StatusCode: 400, Code: "ExpiredToken"}}, history{attempts: 1, retries: 4, renewed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Size, test.o.urlLeft = 2, time.Minute
			_, got := decide(begin, test.o, time.Second)
			require.Equal(t, test.want, got)
		})
	}
}
