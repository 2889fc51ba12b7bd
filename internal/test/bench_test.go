package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// The benchmarks compare with net/http and encoding/json, used as a careful
// programmer would use them by hand: a context, the headers, a limit on the
// body, a check of the status, one json.Unmarshal, a connection that is reused.

// byHand is a client of the service that has no retries, no limiter and no
// types but those it needs.
type byHand struct {
	http      *http.Client
	base, key string
}

// refusedByHand is the service's error envelope.
type refusedByHand struct {
	Status  int `json:"-"`
	Refusal struct {
		Code      string         `json:"code"`
		Message   string         `json:"message"`
		RequestID string         `json:"request_id"`
		Details   map[string]any `json:"details"`
	} `json:"error"`
}

func (e *refusedByHand) Error() string { return e.Refusal.Code + ": " + e.Refusal.Message }

func (c *byHand) do(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("User-Agent", "by-hand/1.0")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		refused := &refusedByHand{Status: resp.StatusCode}
		err := json.Unmarshal(body, refused)
		if err != nil {
			return fmt.Errorf("status %s, retry after %s", resp.Status, resp.Header.Get("Retry-After"))
		}
		return refused
	}
	return json.Unmarshal(body, into)
}

// measure runs both as sub-benchmarks, so that their allocations and times can be compared.
func measure(b *testing.B, ours, raw func()) {
	for _, side := range []struct {
		name string
		work func()
	}{{"ours", ours}, {"raw", raw}} {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				side.work()
			}
		})
	}
}

const benchID = "mtg_0123456789abcdefghij"

// benchMeeting is a meeting of 500 bytes.
var benchMeeting = func() string {
	const m = `{"id":"` + benchID + `","title":"%s","date":"2026-11-20","time":"14:30","status":"transcribing",` +
		`"visibility":"organisation","template_id":"tpl_standard",` +
		`"participant_ids":["emp_ada","emp_bob","emp_chloe"],` +
		`"project_id":"prj_apollo","external_id":"crm-00004711","duration_seconds":1800,` +
		`"created_at":1795000000,"updated_at":1795000600}`
	return fmt.Sprintf(m, strings.Repeat("w", 500-len(m)+len("%s")))
}()

// fixed is a transport that always gives the same response, without a network, so that only the
// client's cost is measured.
type fixed struct {
	status int
	header http.Header
	body   string
}

func (c fixed) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.status, Header: c.header, Request: req,
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}, nil
}

const benchHost = "https://api.example.com"

const benchKey = "key_0123456789abcdef"

// ourClient has its retries, its limit on a try's time, and a limiter that lets
// everything pass.
func ourClient(b *testing.B, transport http.RoundTripper) *minutes.Client {
	c, err := minutes.New(benchHost, benchKey,
		minutes.WithHTTPClient(&http.Client{Transport: transport}), minutes.WithRateLimit(1e9, 1e9))
	require.NoError(b, err)
	return c
}

func rawClient(base string, transport http.RoundTripper) *byHand {
	return &byHand{&http.Client{Transport: transport}, base, benchKey}
}

var jsonHeader = http.Header{
	"Content-Type":  {"application/json; charset=utf-8"},
	"Cache-Control": {"private, max-age=30"},
}

// BenchmarkGetOne gets a meeting of 500 bytes.
func BenchmarkGetOne(b *testing.B) {
	transport := fixed{200, jsonHeader, benchMeeting}
	c := ourClient(b, transport)
	raw := rawClient(benchHost, transport)
	ctx := b.Context()
	check := func(m *minutes.Meeting, err error) {
		if err != nil || m.Date != "2026-11-20" {
			b.Fatal(m, err)
		}
	}
	measure(b, func() { check(c.Meetings.Get(ctx, benchID)) }, func() {
		m := new(minutes.Meeting)
		err := raw.do(ctx, http.MethodGet, "/v1/meetings/"+benchID, m)
		check(m, err)
	})
}

// BenchmarkError decodes an error response with details into a typed error.
func BenchmarkError(b *testing.B) {
	transport := fixed{409, jsonHeader, `{"error":{"code":"MINUTES_NOT_READY",` +
		`"message":"The minutes are not ready yet.",` +
		`"request_id":"req_0123456789abcdef","details":{"status":"transcribing"}}}`}
	c := ourClient(b, transport)
	raw := rawClient(benchHost, transport)
	ctx := b.Context()
	measure(b, func() {
		_, err := c.Meetings.Get(ctx, benchID)
		if e, ok := errors.AsType[*minutes.Error](err); !ok || e.Code != minutes.ErrMinutesNotReady {
			b.Fatal(err)
		}
	}, func() {
		if raw.do(ctx, http.MethodGet, "/v1/meetings/"+benchID, new(minutes.Meeting)) == nil {
			b.Fatal("no error")
		}
	})
}

// BenchmarkListAll lists 10,000 meetings in pages of 50. B/op and allocs/op are of all of them.
func BenchmarkListAll(b *testing.B) {
	const n = 10_000
	const perPage = 50
	pages := make([]string, n/perPage)
	for i := range pages {
		next := strconv.Itoa(i + 1)
		if i == len(pages)-1 {
			next = ""
		}
		meetings := strings.Repeat(benchMeeting+",", perPage-1) + benchMeeting
		pages[i] = `{"meetings":[` + meetings + `],"next_cursor":"` + next + `"}`
	}
	transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		page, _ := strconv.Atoi(req.URL.Query().Get("cursor"))
		return fixed{200, jsonHeader, pages[page]}.RoundTrip(req)
	})
	c := ourClient(b, transport)
	raw := rawClient(benchHost, transport)
	ctx := b.Context()
	check := func(read int, err error) {
		if read != n || err != nil {
			b.Fatal(read, err)
		}
	}
	measure(b, func() {
		read := 0
		for _, err := range c.Meetings.All(ctx, nil) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
		check(read, nil)
	}, func() {
		read := 0
		cursor := ""
		for more := true; more; more = cursor != "" {
			var page minutes.MeetingPage
			check(n, raw.do(ctx, http.MethodGet, "/v1/meetings?limit=50&cursor="+cursor, &page))
			read += len(page.Meetings)
			cursor = page.NextCursor
		}
		check(read, nil)
	})
}
