package upload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a reply other than a success says about another attempt.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply Result
		late  bool
		want  Outcome
	}{
		"307":                   {reply: Result{StatusCode: 307}, want: Hopeless},
		"400":                   {reply: Result{StatusCode: 400}, want: Hopeless},
		"400, late":             {reply: Result{StatusCode: 400}, late: true, want: Hopeless},
		"400 RequestTimeout":    {reply: Result{StatusCode: 400, Code: "RequestTimeout"}, want: Untouched},
		"400 IncompleteBody":    {reply: Result{StatusCode: 400, Code: "IncompleteBody"}, want: Hopeless},
		"400 ExpiredToken":      {reply: Result{StatusCode: 400, Code: "ExpiredToken"}, want: Expired},
		"403":                   {reply: Result{StatusCode: 403, Code: "AccessDenied"}, want: Hopeless},
		"403, late":             {reply: Result{StatusCode: 403, Code: "AccessDenied"}, late: true, want: Expired},
		"403 that says expired": {reply: Result{StatusCode: 403, Code: "AccessDenied", Message: "Request has Expired"}, want: Expired},
		"404":                   {reply: Result{StatusCode: 404, Code: "NoSuchKey"}, want: Hopeless},
		"404 that says expired": {reply: Result{StatusCode: 404, Message: "expired"}, late: true, want: Hopeless},
		"405":                   {reply: Result{StatusCode: 405, Code: "MethodNotAllowed"}, want: Hopeless},
		"408":                   {reply: Result{StatusCode: 408}, want: Untouched},
		"409":                   {reply: Result{StatusCode: 409, Code: "Conflict"}, want: Hopeless},
		"409 OperationAborted":  {reply: Result{StatusCode: 409, Code: "OperationAborted"}, want: Untouched},
		"411":                   {reply: Result{StatusCode: 411, Code: "MissingContentLength"}, want: Hopeless},
		"413":                   {reply: Result{StatusCode: 413}, want: Hopeless},
		"417":                   {reply: Result{StatusCode: 417}, want: Hopeless},
		"429":                   {reply: Result{StatusCode: 429}, want: Untouched},
		"499":                   {reply: Result{StatusCode: 499}, want: Ambiguous},
		"500":                   {reply: Result{StatusCode: 500, Code: "InternalError"}, want: Ambiguous},
		"501":                   {reply: Result{StatusCode: 501, Code: "NotImplemented"}, want: Hopeless},
		"502":                   {reply: Result{StatusCode: 502}, want: Ambiguous},
		"503":                   {reply: Result{StatusCode: 503, Code: "SlowDown"}, want: Ambiguous},
		"503, late":             {reply: Result{StatusCode: 503, Code: "SlowDown"}, late: true, want: Ambiguous},
		"504":                   {reply: Result{StatusCode: 504}, want: Ambiguous},
		"519":                   {reply: Result{StatusCode: 519}, want: Hopeless},
		"520":                   {reply: Result{StatusCode: 520}, want: Ambiguous},
		"527":                   {reply: Result{StatusCode: 527}, want: Ambiguous},
		"528":                   {reply: Result{StatusCode: 528}, want: Hopeless},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.reply.refused(test.late))
		})
	}
}

// What follows a failed attempt, of four repeats unless the case says otherwise.
func TestNext(t *testing.T) {
	t.Parallel()
	is := func(o Outcome) Result { return Result{Outcome: o, Sent: 1} }
	whole := func(o Outcome) Result { return Result{Outcome: o, Sent: 2, Whole: true} }

	first := State{Attempt: 1, Repeats: 4}
	last := State{Attempt: 5, Repeats: 4}
	once := State{Attempt: 1}                                                         // no repeats, or no time for them
	lost := State{Attempt: 2, Repeats: 4, Uses: 1, Unsettled: true}                   // after a loss
	lostWhole := State{Attempt: 2, Repeats: 4, Uses: 1, Unsettled: true, Whole: true} // the same, of the whole recording
	fresh := State{Attempt: 3, Repeats: 4, Unsettled: true}                           // after two, with a new URL
	renewed := State{Attempt: 2, Repeats: 4, Renewed: true}

	tell := func(looks int) Step { return Step{Looks: looks} }
	repeat := func(looks int) Step { return Step{Again: true, Looks: looks} }
	renew := func(looks int) Step { return Step{Again: true, Fresh: true, Looks: looks} }
	for name, test := range map[string]struct {
		state State
		end   Result
		want  Step
	}{
		"untouched":                         {first, is(Untouched), repeat(0)},
		"untouched, after a loss":           {lost, is(Untouched), repeat(0)},
		"untouched, after a lost reply":     {lostWhole, is(Untouched), repeat(0)},
		"untouched, the last":               {last, is(Untouched), tell(0)},
		"untouched, no repeats":             {once, is(Untouched), tell(0)},
		"hopeless":                          {first, is(Hopeless), tell(0)},
		"hopeless with the whole recording": {first, whole(Hopeless), tell(0)},
		"hopeless with a new URL":           {fresh, is(Hopeless), tell(1)},
		"refused, as the URL may be spent":  {lost, Result{StatusCode: 403}, renew(1)},
		"refused, after a lost reply":       {lostWhole, Result{StatusCode: 403}, renew(1)},
		"hopeless without a reply":          {lost, is(Hopeless), Step{Fresh: true, Looks: 1}},
		"lost before anything was sent":     {first, Result{Outcome: Ambiguous}, repeat(1)},
		"the same again":                    {lost, Result{Outcome: Ambiguous}, renew(0)},
		"lost on the way":                   {first, is(Ambiguous), repeat(1)},
		"lost on the way again":             {lost, is(Ambiguous), renew(1)},
		"lost on the way with a new URL":    {fresh, is(Ambiguous), repeat(1)},
		"lost on the way, the last":         {last, is(Ambiguous), tell(1)},
		"lost on the way, no repeats":       {once, is(Ambiguous), tell(1)},
		"lost, after a lost reply":          {lostWhole, is(Ambiguous), renew(1)},
		"reply lost":                        {first, whole(Ambiguous), repeat(2)},
		"reply lost, the last":              {last, whole(Ambiguous), tell(2)},
		"reply lost, no repeats":            {once, whole(Ambiguous), tell(1)},
		"expired":                           {first, is(Expired), renew(0)},
		"expired, after a lost reply":       {lostWhole, is(Expired), renew(0)},
		"expired again":                     {renewed, is(Expired), Step{Fresh: true}},
		"expired, no repeats":               {once, is(Expired), Step{Fresh: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.state.Next(test.end))
		})
	}
}

// How often the audio is looked for grows with the repeats that are left.
func TestLooks(t *testing.T) {
	t.Parallel()
	for repeats, looks := range []int{1, 2, 2, 3, 4} {
		s := State{Attempt: 1, Repeats: repeats, Unsettled: true, Whole: true}
		require.Equal(t, looks, s.Looks(), "%d repeats", repeats)
	}
}

// What is known moves on with each attempt.
func TestState(t *testing.T) {
	t.Parallel()
	first := State{Attempt: 1, Repeats: 4}
	for _, test := range []struct {
		end  Result
		want State
	}{
		{Result{Outcome: Ambiguous}, State{Attempt: 1, Repeats: 4, Uses: 1, Unsettled: true}},
		{Result{Outcome: Ambiguous, Sent: 2, Whole: true}, State{Attempt: 1, Repeats: 4, Uses: 1, Unsettled: true, Whole: true}},
		{Result{Outcome: Untouched}, first},
		{Result{Outcome: Hopeless}, first},
		{Result{Outcome: Expired}, State{Attempt: 1, Repeats: 4, Renewed: true}},
	} {
		s := first
		s.Next(test.end)
		require.Equal(t, test.want, s)
	}
}
