package storage

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// What follows a failed attempt, of four repeats unless the case says otherwise.
func TestNext(t *testing.T) {
	t.Parallel()
	refused := func(status int, code string) End {
		return End{Failure: Failure{Kind: Refused, StatusCode: status, Code: code}}
	}
	kind := func(k Kind) End {
		return End{Failure: Failure{Kind: k, Err: context.Canceled}}
	}
	whole := func(e End) End { e.Whole = true; return e }
	none := func(e End) End { e.None = true; return e }
	late := func(e End) End { e.Late = true; return e }
	hurried := func(e End) End { e.Hurried = true; return e }
	says := func(e End, message string) End { e.Message = message; return e }

	first := State{Attempt: 1, Repeats: 4}
	last := State{Attempt: 5, Repeats: 4}
	once := State{Attempt: 1}                                                         // no repeats
	lost := State{Attempt: 2, Repeats: 4, Uses: 1, Unsettled: true}                   // after a loss, on its URL
	lostWhole := State{Attempt: 2, Repeats: 4, Uses: 1, Unsettled: true, Whole: true} // the same, of the whole recording
	fresh := State{Attempt: 3, Repeats: 4, Unsettled: true}                           // after losses, on a new URL
	renewed := State{Attempt: 2, Repeats: 4, Renewed: true}
	plain := State{Attempt: 1, Repeats: 4, NoExpect: true}

	tell := func(looks int) Step { return Step{Looks: looks} }
	same := func(looks int) Step { return Step{Again: true, Looks: looks} }
	renew := func(looks int) Step { return Step{Again: true, Fresh: true, Looks: looks} }
	for name, test := range map[string]struct {
		state State
		end   End
		want  Step
	}{
		"never sent":                          {first, kind(NeverSent), same(0)},
		"never sent, after a loss":            {lost, kind(NeverSent), same(0)},
		"never sent, the last":                {last, kind(NeverSent), tell(0)},
		"untrusted":                           {first, kind(Untrusted), tell(0)},
		"unreadable":                          {first, kind(Unreadable), tell(0)},
		"unreadable, after a loss":            {lost, kind(Unreadable), tell(1)},
		"lost on the way":                     {first, kind(Lost), same(1)},
		"lost on the way again":               {lost, kind(Lost), renew(1)},
		"lost on the way, on a new URL":       {fresh, kind(Lost), same(1)},
		"lost on the way, the last":           {last, kind(Lost), tell(1)},
		"lost on the way, no repeats":         {once, kind(Lost), tell(1)},
		"lost before it began":                {first, none(kind(Lost)), same(1)},
		"lost before it began again":          {lost, none(kind(Lost)), renew(0)},
		"lost before it began, the last":      {last, none(kind(Lost)), tell(1)},
		"503 before it began":                 {first, none(refused(503, "SlowDown")), same(1)},
		"503 before it began, after a loss":   {fresh, none(refused(503, "SlowDown")), same(0)},
		"403 before it began, after a loss":   {lost, none(refused(403, "AccessDenied")), renew(1)},
		"reply lost":                          {first, whole(kind(Lost)), same(2)},
		"reply lost again":                    {lostWhole, whole(kind(Lost)), renew(2)},
		"reply lost, the last":                {last, whole(kind(Lost)), tell(2)},
		"reply lost, no repeats":              {once, whole(kind(Lost)), tell(1)},
		"reply lost, in a hurry":              {first, hurried(whole(kind(Lost))), tell(1)},
		"lost on the way, after a lost reply": {lostWhole, kind(Lost), renew(1)},
		"408":                                 {first, refused(408, ""), same(0)},
		"429":                                 {first, refused(429, ""), same(0)},
		"429, after a lost reply":             {lostWhole, refused(429, ""), same(0)},
		"429, in a hurry":                     {first, hurried(refused(429, "")), tell(0)},
		"429, in a hurry after a lost reply":  {lostWhole, hurried(refused(429, "")), tell(1)},
		"400 RequestTimeout":                  {first, refused(400, "RequestTimeout"), same(0)},
		"400 IncompleteBody":                  {first, refused(400, "IncompleteBody"), tell(0)},
		"400 ExpiredToken":                    {first, refused(400, "ExpiredToken"), renew(0)},
		"400 ExpiredToken again":              {renewed, refused(400, "ExpiredToken"), tell(0)},
		"400, late":                           {first, late(refused(400, "")), tell(0)},
		"403":                                 {first, refused(403, "AccessDenied"), tell(0)},
		"403, late":                           {first, late(refused(403, "AccessDenied")), renew(0)},
		"403, late again":                     {renewed, late(refused(403, "AccessDenied")), tell(0)},
		"403 that says expired":               {first, says(refused(403, "AccessDenied"), "Request has Expired"), renew(0)},
		"403 on a URL that may be spent":      {lost, refused(403, "AccessDenied"), renew(1)},
		"403 on one that served for all":      {lostWhole, refused(403, "AccessDenied"), renew(1)},
		"403 on a new URL, after losses":      {fresh, refused(403, "AccessDenied"), tell(1)},
		"404 on a URL that may be spent":      {lost, refused(404, "NoSuchKey"), renew(1)},
		"405":                                 {first, refused(405, "MethodNotAllowed"), tell(0)},
		"409":                                 {first, refused(409, "Conflict"), tell(0)},
		"409 OperationAborted":                {first, refused(409, "OperationAborted"), same(0)},
		"411":                                 {first, refused(411, "MissingContentLength"), tell(0)},
		"413":                                 {first, refused(413, ""), tell(0)},
		"417":                                 {first, refused(417, ""), Step{Again: true, AtOnce: true}},
		"417, no repeats":                     {once, refused(417, ""), Step{Again: true, AtOnce: true}},
		"417 without Expect":                  {plain, refused(417, ""), tell(0)},
		"307":                                 {first, refused(307, ""), tell(0)},
		"499":                                 {first, refused(499, ""), same(1)},
		"500":                                 {first, refused(500, "InternalError"), same(1)},
		"501":                                 {first, refused(501, "NotImplemented"), tell(0)},
		"502":                                 {first, refused(502, ""), same(1)},
		"503":                                 {first, refused(503, "SlowDown"), same(1)},
		"503, in a hurry":                     {first, hurried(refused(503, "SlowDown")), tell(1)},
		"504":                                 {first, refused(504, ""), same(1)},
		"504 with the whole recording":        {first, whole(refused(504, "")), same(2)},
		"519":                                 {first, refused(519, ""), tell(0)},
		"520":                                 {first, refused(520, ""), same(1)},
		"527":                                 {first, refused(527, ""), same(1)},
		"528":                                 {first, refused(528, ""), tell(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, _ := test.state.Next(test.end)
			if !step.Again {
				step.Fresh = false // nobody asks
			}
			require.Equal(t, test.want, step)
		})
	}
}

// What is known moves on with each attempt.
func TestState(t *testing.T) {
	t.Parallel()
	first := State{Attempt: 1, Repeats: 4}
	_, s := first.Next(End{Failure: Failure{Kind: Lost}, Whole: true})
	require.Equal(t, State{Attempt: 1, Repeats: 4, Uses: 1, Unsettled: true, Whole: true}, s)
	require.Equal(t, 4, s.Patience(), "one look for each repeat that is left")
	_, s = first.Next(End{Failure: Failure{Kind: NeverSent}})
	require.Equal(t, first, s)
	require.Zero(t, s.Patience(), "nothing to look for")
	_, s = first.Next(End{Failure: Failure{Kind: Refused, StatusCode: 417}})
	require.Equal(t, State{Repeats: 4, NoExpect: true}, s, "the attempt does not count")
	_, s = first.Next(End{Failure: Failure{Kind: Refused, StatusCode: 400, Code: "ExpiredToken"}})
	require.Equal(t, State{Attempt: 1, Repeats: 4, Renewed: true}, s)
}
