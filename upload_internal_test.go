package minutes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// What follows a failed attempt, of four repeats unless the case says otherwise.
func TestUploadNext(t *testing.T) {
	t.Parallel()
	refused := func(status int, code string) attemptEnd {
		return attemptEnd{Failure: storage.Failure{Kind: storage.Refused, StatusCode: status, Code: code}}
	}
	kind := func(k storage.Kind) attemptEnd {
		return attemptEnd{Failure: storage.Failure{Kind: k, Err: context.Canceled}}
	}
	whole := func(e attemptEnd) attemptEnd { e.whole = true; return e }
	none := func(e attemptEnd) attemptEnd { e.none = true; return e }
	late := func(e attemptEnd) attemptEnd { e.late = true; return e }
	hurried := func(e attemptEnd) attemptEnd { e.hurried = true; return e }
	says := func(e attemptEnd, message string) attemptEnd { e.Message = message; return e }

	first := uploadState{attempt: 1, repeats: 4}
	last := uploadState{attempt: 5, repeats: 4}
	once := uploadState{attempt: 1}                                                         // no repeats
	lost := uploadState{attempt: 2, repeats: 4, uses: 1, unsettled: true}                   // after a loss, on its URL
	lostWhole := uploadState{attempt: 2, repeats: 4, uses: 1, unsettled: true, whole: true} // the same, of the whole recording
	fresh := uploadState{attempt: 3, repeats: 4, unsettled: true}                           // after losses, on a new URL
	renewed := uploadState{attempt: 2, repeats: 4, renewed: true}
	plain := uploadState{attempt: 1, repeats: 4, noExpect: true}

	tell := func(looks int) uploadStep { return uploadStep{looks: looks} }
	same := func(looks int) uploadStep { return uploadStep{again: true, looks: looks} }
	renew := func(looks int) uploadStep { return uploadStep{again: true, fresh: true, looks: looks} }
	for name, test := range map[string]struct {
		state uploadState
		end   attemptEnd
		want  uploadStep
	}{
		"never sent":                          {first, kind(storage.NeverSent), same(0)},
		"never sent, after a loss":            {lost, kind(storage.NeverSent), same(0)},
		"never sent, the last":                {last, kind(storage.NeverSent), tell(0)},
		"untrusted":                           {first, kind(storage.Untrusted), tell(0)},
		"unreadable":                          {first, kind(storage.Unreadable), tell(0)},
		"unreadable, after a loss":            {lost, kind(storage.Unreadable), tell(1)},
		"lost on the way":                     {first, kind(storage.Lost), same(1)},
		"lost on the way again":               {lost, kind(storage.Lost), renew(1)},
		"lost on the way, on a new URL":       {fresh, kind(storage.Lost), same(1)},
		"lost on the way, the last":           {last, kind(storage.Lost), tell(1)},
		"lost on the way, no repeats":         {once, kind(storage.Lost), tell(1)},
		"lost before it began":                {first, none(kind(storage.Lost)), same(1)},
		"lost before it began again":          {lost, none(kind(storage.Lost)), renew(0)},
		"lost before it began, the last":      {last, none(kind(storage.Lost)), tell(1)},
		"503 before it began":                 {first, none(refused(503, "SlowDown")), same(1)},
		"503 before it began, after a loss":   {fresh, none(refused(503, "SlowDown")), same(0)},
		"403 before it began, after a loss":   {lost, none(refused(403, "AccessDenied")), renew(1)},
		"reply lost":                          {first, whole(kind(storage.Lost)), same(2)},
		"reply lost again":                    {lostWhole, whole(kind(storage.Lost)), renew(2)},
		"reply lost, the last":                {last, whole(kind(storage.Lost)), tell(2)},
		"reply lost, no repeats":              {once, whole(kind(storage.Lost)), tell(1)},
		"reply lost, in a hurry":              {first, hurried(whole(kind(storage.Lost))), tell(1)},
		"lost on the way, after a lost reply": {lostWhole, kind(storage.Lost), renew(1)},
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
		"417":                                 {first, refused(417, ""), uploadStep{again: true, atOnce: true}},
		"417, no repeats":                     {once, refused(417, ""), uploadStep{again: true, atOnce: true}},
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
			step, _ := test.state.next(test.end)
			if !step.again {
				step.fresh = false // nobody asks
			}
			require.Equal(t, test.want, step)
		})
	}
}

// What is known moves on with each attempt.
func TestUploadState(t *testing.T) {
	t.Parallel()
	first := uploadState{attempt: 1, repeats: 4}
	_, s := first.next(attemptEnd{Failure: storage.Failure{Kind: storage.Lost}, whole: true})
	require.Equal(t, uploadState{attempt: 1, repeats: 4, uses: 1, unsettled: true, whole: true}, s)
	require.Equal(t, 4, s.patience(), "one look for each repeat that is left")
	_, s = first.next(attemptEnd{Failure: storage.Failure{Kind: storage.NeverSent}})
	require.Equal(t, first, s)
	require.Zero(t, s.patience(), "nothing to look for")
	_, s = first.next(attemptEnd{Failure: storage.Failure{Kind: storage.Refused, StatusCode: 417}})
	require.Equal(t, uploadState{repeats: 4, noExpect: true}, s, "the attempt does not count")
	_, s = first.next(attemptEnd{Failure: storage.Failure{Kind: storage.Refused, StatusCode: 400, Code: "ExpiredToken"}})
	require.Equal(t, uploadState{attempt: 1, repeats: 4, renewed: true}, s)
}
