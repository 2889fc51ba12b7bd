package upload

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		o          Outcome
		urlExpired bool
		want       verdict
	}{
		"200":                     {o: Outcome{Response: Response{StatusCode: 200}}, want: stored},
		"204":                     {o: Outcome{Response: Response{StatusCode: 204}}, want: stored},
		"307":                     {o: Outcome{Response: Response{StatusCode: 307}}, want: permanent},
		"400":                     {o: Outcome{Response: Response{StatusCode: 400}}, want: permanent},
		"400 to an expired URL":   {o: Outcome{Response: Response{StatusCode: 400}}, urlExpired: true, want: permanent},
		"400 RequestTimeout":      {o: Outcome{Response: Response{StatusCode: 400, Code: "RequestTimeout"}}, want: temporary},
		"400 IncompleteBody":      {o: Outcome{Response: Response{StatusCode: 400, Code: "IncompleteBody"}}, want: temporary},
		"200 with a page":         {o: Outcome{Response: Response{StatusCode: 200, Message: "a page"}}, want: unclear},
		"400 ExpiredToken":        {o: Outcome{Response: Response{StatusCode: 400, Code: "ExpiredToken"}}, want: expired},
		"403":                     {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied"}}, want: permanent},
		"403 to an expired URL":   {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied"}}, urlExpired: true, want: expired},
		"403 that says expired":   {o: Outcome{Response: Response{StatusCode: 403, Code: "AccessDenied", Message: "Request has Expired"}}, want: expired},
		"404":                     {o: Outcome{Response: Response{StatusCode: 404, Code: "NoSuchKey"}}, want: permanent},
		"404 that says expired":   {o: Outcome{Response: Response{StatusCode: 404, Message: "expired"}}, urlExpired: true, want: permanent},
		"405":                     {o: Outcome{Response: Response{StatusCode: 405, Code: "MethodNotAllowed"}}, want: permanent},
		"408":                     {o: Outcome{Response: Response{StatusCode: 408}}, want: temporary},
		"409":                     {o: Outcome{Response: Response{StatusCode: 409, Code: "Conflict"}}, want: permanent},
		"409 OperationAborted":    {o: Outcome{Response: Response{StatusCode: 409, Code: "OperationAborted"}}, want: temporary},
		"411":                     {o: Outcome{Response: Response{StatusCode: 411, Code: "MissingContentLength"}}, want: permanent},
		"413":                     {o: Outcome{Response: Response{StatusCode: 413}}, want: permanent},
		"417":                     {o: Outcome{Response: Response{StatusCode: 417}}, want: permanent},
		"417 that rejects Expect": {o: Outcome{Response: Response{StatusCode: 417}, rejectedHeader: "Expect"}, want: temporary},
		"429":                     {o: Outcome{Response: Response{StatusCode: 429}}, want: temporary},
		"499":                     {o: Outcome{Response: Response{StatusCode: 499}}, want: temporary},
		"500":                     {o: Outcome{Response: Response{StatusCode: 500, Code: "InternalError"}}, want: temporary},
		"501":                     {o: Outcome{Response: Response{StatusCode: 501, Code: "NotImplemented"}}, want: permanent},
		"502":                     {o: Outcome{Response: Response{StatusCode: 502}}, want: temporary},
		"503":                     {o: Outcome{Response: Response{StatusCode: 503, Code: "SlowDown"}}, want: temporary},
		"503 to an expired URL":   {o: Outcome{Response: Response{StatusCode: 503, Code: "SlowDown"}}, urlExpired: true, want: temporary},
		"504":                     {o: Outcome{Response: Response{StatusCode: 504}}, want: temporary},
		"519":                     {o: Outcome{Response: Response{StatusCode: 519}}, want: permanent},
		"520":                     {o: Outcome{Response: Response{StatusCode: 520}}, want: temporary},
		"527":                     {o: Outcome{Response: Response{StatusCode: 527}}, want: temporary},
		"528":                     {o: Outcome{Response: Response{StatusCode: 528}}, want: permanent},
		"no response":             {o: Outcome{}, want: unclear},
		"an unreadable recording": {o: Outcome{noRetry: true}, want: permanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Sent, test.o.urlLeft = 1, time.Second
			if test.urlExpired {
				test.o.urlLeft = 0
			}
			require.Equal(t, test.want, judge(test.o))
		})
	}
	require.Equal(t, temporary, judge(Outcome{urlLeft: 1}), "no response, and nothing was sent")
	require.Equal(t, temporary, judge(Outcome{Response: Response{StatusCode: 503}}), "a 503 before anything was sent")
}

// The decision after an attempt. Unless the row says otherwise, up to four retries are allowed,
// the wait is a second, the deadline is in an hour, the URL expires in a minute and the recording
// has two bytes.
func TestDecide(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	part := func(status int) Outcome { // storage responded after one of the two bytes; 0: it did not respond
		return Outcome{Response: Response{StatusCode: status}, Sent: 1, Size: 2, urlLeft: time.Minute}
	}
	change := func(o Outcome, with func(*Outcome)) Outcome { with(&o); return o }
	all := func(status int) Outcome { return change(part(status), func(o *Outcome) { o.Sent = 2 }) }
	nothing := change(part(0), func(o *Outcome) { o.Sent = 0 })
	unreadable := change(part(0), func(o *Outcome) { o.noRetry = true })
	urlExpires := func(in time.Duration, o Outcome) Outcome {
		return change(o, func(o *Outcome) { o.urlLeft = in })
	}
	retryAfter := func(d time.Duration, o Outcome) Outcome {
		return change(o, func(o *Outcome) { o.RetryAfter = d })
	}
	urlExpired := urlExpires(0, part(403))

	first := history{maxRetries: 4}
	last := history{attempts: 4, maxRetries: 4}
	noRetries := history{}
	lostPart := history{attempts: 1, maxRetries: 4, urlMaybeUsedUp: true, maybeStored: true} // an attempt sent a part and got no response
	lostAll := history{attempts: 1, maxRetries: 4, urlMaybeUsedUp: true, maybeStored: true, sentAll: true}
	newURLAfterLoss := history{attempts: 2, maxRetries: 4, maybeStored: true}
	renewed := history{attempts: 1, maxRetries: 4, renewed: true}
	shared := func(h history) history { h.shared = true; return h }

	fail := func(checks int) decision {
		d := decision{checks: checks, retryable: true}
		if checks > 0 {
			d.wait = wait
		}
		return d
	}
	retry := func(checks int) decision { return decision{retry: true, wait: wait, checks: checks, retryable: true} }
	newURL := func(d decision) decision { d.needsURL = true; return d }
	never := func(d decision) decision { d.retryable = false; return d }
	atOnce := func(d decision) decision { d.wait = 0; return d }
	for name, test := range map[string]struct {
		h          history
		o          Outcome
		noTimeLeft bool // for the wait
		want       decision
	}{
		"stored":                              {h: first, o: all(200), want: decision{done: true, retryable: true}},
		"stored, after a lost response":       {h: lostAll, o: all(200), want: decision{done: true, retryable: true}},
		"429":                                 {h: first, o: part(429), want: retry(0)},
		"429, after a part was lost":          {h: lostPart, o: part(429), want: retry(0)},
		"429, after a lost response":          {h: lostAll, o: part(429), want: retry(0)},
		"429, the last attempt":               {h: last, o: part(429), want: fail(0)},
		"429, no retries allowed":             {h: noRetries, o: part(429), want: fail(0)},
		"429, no time left":                   {h: first, o: part(429), noTimeLeft: true, want: fail(0)},
		"429, URL expires during the wait":    {h: first, o: urlExpires(wait, part(429)), want: newURL(retry(0))},
		"429, URL expires after the wait":     {h: first, o: urlExpires(wait+1, part(429)), want: retry(0)},
		"Retry-After of a minute":             {h: first, o: retryAfter(time.Minute, part(429)), want: retry(0)},
		"longer Retry-After":                  {h: first, o: retryAfter(time.Minute+1, part(429)), want: fail(0)},
		"longer Retry-After, after a loss":    {h: lostPart, o: retryAfter(time.Minute+1, part(429)), want: atOnce(fail(1))},
		"nothing sent":                        {h: first, o: nothing, want: retry(0)},
		"nothing sent, after a part was lost": {h: lostPart, o: nothing, want: retry(0)},
		"503, the last attempt":               {h: last, o: part(503), want: fail(1)},
		"503 to everything, the last attempt": {h: last, o: all(503), want: fail(2)},
		"404":                                 {h: first, o: part(404), want: never(fail(0))},
		"404 to everything":                   {h: first, o: all(404), want: never(fail(0))},
		"404 with a new URL":                  {h: newURLAfterLoss, o: part(404), want: never(fail(1))},
		"403, URL may be used up":             {h: lostPart, o: part(403), want: never(newURL(retry(1)))},
		"403, after a lost response":          {h: lostAll, o: part(403), want: never(newURL(retry(2)))},
		"403, URL may be used up, the last":   {h: history{attempts: 4, maxRetries: 4, urlMaybeUsedUp: true, maybeStored: true}, o: part(403), want: never(fail(1))},
		"unreadable":                          {h: first, o: unreadable, want: never(fail(0))},
		"unreadable, after a part was lost":   {h: lostPart, o: unreadable, want: never(fail(1))},
		"part lost":                           {h: first, o: part(0), want: retry(1)},
		"part lost again":                     {h: lostPart, o: part(0), want: newURL(retry(1))},
		"part lost with a new URL":            {h: newURLAfterLoss, o: part(0), want: retry(1)},
		"part lost, the last attempt":         {h: last, o: part(0), want: fail(1)},
		"part lost, no retries allowed":       {h: noRetries, o: part(0), want: fail(1)},
		"part lost, no time left":             {h: first, o: part(0), noTimeLeft: true, want: atOnce(fail(1))},
		"part lost, after a lost response":    {h: lostAll, o: part(0), want: newURL(retry(2))},
		"part lost, URL expires":              {h: first, o: urlExpires(wait, part(0)), want: newURL(retry(1))},
		"response lost":                       {h: first, o: all(0), want: retry(2)},
		"response lost, URL expires":          {h: first, o: urlExpires(0, all(0)), want: newURL(retry(2))},
		"response lost, the last attempt":     {h: last, o: all(0), want: fail(2)},
		"response lost, no retries allowed":   {h: noRetries, o: all(0), want: fail(2)},
		"response lost, no time left":         {h: first, o: all(0), noTimeLeft: true, want: atOnce(fail(2))},
		"URL expired":                         {h: first, o: urlExpired, want: newURL(retry(0))},
		"URL expired, after a lost response":  {h: lostAll, o: urlExpired, want: newURL(retry(0))},
		"URL expired again":                   {h: renewed, o: urlExpired, want: fail(0)},
		"URL expired, no retries allowed":     {h: noRetries, o: urlExpired, want: fail(0)},
		"early 200":                           {h: first, o: change(part(200), func(o *Outcome) { o.Message = "early" }), want: fail(1)},

		"shared, 403":                         {h: shared(first), o: part(403), want: never(fail(1))},
		"shared, 429":                         {h: shared(first), o: part(429), want: retry(0)},
		"shared, part lost":                   {h: shared(first), o: part(0), want: retry(1)},
		"shared, 429, the last attempt":       {h: shared(last), o: part(429), want: fail(1)},
		"shared, response lost, last attempt": {h: shared(last), o: all(0), want: fail(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeLeft := time.Hour
			if test.noTimeLeft {
				timeLeft = wait
			}
			got, _ := decide(test.h, test.o, wait, timeLeft)
			require.Equal(t, test.want, got)
		})
	}
}

func TestDecide_UpdatesHistory(t *testing.T) {
	t.Parallel()
	begin := history{maxRetries: 4}
	for name, test := range map[string]struct {
		o    Outcome
		want history
	}{
		"part lost":     {Outcome{Sent: 1}, history{attempts: 1, maxRetries: 4, urlMaybeUsedUp: true, maybeStored: true}},
		"response lost": {Outcome{Sent: 2}, history{attempts: 1, maxRetries: 4, urlMaybeUsedUp: true, maybeStored: true, sentAll: true}},
		"429":           {Outcome{Sent: 1, Response: Response{StatusCode: 429}}, history{attempts: 1, maxRetries: 4}},
		"503":           {Outcome{Sent: 1, Response: Response{StatusCode: 503}}, history{attempts: 1, maxRetries: 4, maybeStored: true}},
		"404":           {Outcome{Sent: 2, Response: Response{StatusCode: 404}}, history{attempts: 1, maxRetries: 4, sentAll: true}},
		"URL expired":   {Outcome{Response: Response{StatusCode: 400, Code: "ExpiredToken"}}, history{attempts: 1, maxRetries: 4, renewed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Size, test.o.urlLeft = 2, time.Minute
			_, got := decide(begin, test.o, time.Second, time.Hour)
			require.Equal(t, test.want, got)
		})
	}
}

func TestHeaderRejectedBy(t *testing.T) {
	t.Parallel()
	sent := http.Header{"Expect": {"100-continue"}, "Content-Md5": {"1B2M2Y8AsgTpgAmY7PhCfg=="}}
	for name, test := range map[string]struct {
		r    Response
		sent http.Header
		want string
	}{
		"417":                             {Response{StatusCode: 417}, sent, "Expect"},
		"417 without Expect":              {Response{StatusCode: 417}, http.Header{}, ""},
		"400 InvalidDigest":               {Response{StatusCode: 400, Code: "InvalidDigest"}, sent, "Content-Md5"},
		"400 BadDigest":                   {Response{StatusCode: 400, Code: "BadDigest"}, sent, ""},
		"403 SignatureDoesNotMatch":       {Response{StatusCode: 403, Code: "SignatureDoesNotMatch"}, sent, "Content-Md5"},
		"403 because it is not signed":    {Response{StatusCode: 403, Message: "There were headers present which were not signed"}, sent, "Content-Md5"},
		"403 without the header":          {Response{StatusCode: 403, Code: "SignatureDoesNotMatch"}, http.Header{}, ""},
		"403 AccessDenied":                {Response{StatusCode: 403, Code: "AccessDenied"}, sent, ""},
		"200 that mentions the signature": {Response{StatusCode: 200, Message: "signature"}, sent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, headerRejectedBy(test.r, test.sent))
		})
	}
}
