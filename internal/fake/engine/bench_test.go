package engine_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func request(key, target string) *http.Request {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return &http.Request{Method: "GET", URL: u, Host: "minutes.test",
		Header: http.Header{"Authorization": {"Bearer " + key}}, Body: http.NoBody, RemoteAddr: "127.0.0.1:5"}
}

// BenchmarkPage is a page of 50 among ten thousand meetings, of which Bob sees a third, and none of
// the dates of the last case exists.
func BenchmarkPage(b *testing.B) {
	s := newRig(b, withAcme(func(o *world.Organisation) {
		o.Meetings = []world.MeetingSpec{{Title: "Private", CreatorID: "emp_ada", Count: 6_667},
			{Title: "Organisation", Count: 3_333}, {Title: "Private", CreatorID: "emp_ada", Count: 6_667}}
	}))
	for _, bm := range []struct{ key, query string }{{"ci", ""}, {"bob", ""}, {"ada", "&date_from=2027-01-01"}} {
		b.Run(fmt.Sprint(bm.key, bm.query), func(b *testing.B) {
			r := request(bm.key, "/v1/meetings?limit=50"+bm.query)
			for b.Loop() {
				s.Serve(r)
			}
		})
	}
}
