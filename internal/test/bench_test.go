package test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
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
		if err := json.Unmarshal(body, refused); err != nil {
			return fmt.Errorf("status %s, retry after %s", resp.Status, resp.Header.Get("Retry-After"))
		}
		return refused
	}
	return json.Unmarshal(body, into)
}

// beside measures ours as the benchmark's work, and alternates it with raw. It
// reports the cost of raw, and the ratio of ours to raw: the median over the
// rounds, since a shared machine has slow moments. If prepare is not nil,
// beside calls it before each round of n times and does not measure it.
func beside(b *testing.B, prepare func(n int), ours, raw func()) {
	const turn = 32
	var (
		before, after  runtime.MemStats
		objects, bytes uint64
		rawTime        time.Duration
		ratios         []float64
	)
	b.ReportAllocs()
	for done, n := -1, 1; done < b.N; done, n = done+n, min(turn, b.N-done-n) {
		b.StopTimer()
		if prepare != nil {
			prepare(n)
		}
		runtime.ReadMemStats(&before)
		start := time.Now()
		for range n {
			raw()
		}
		tookRaw := time.Since(start)
		runtime.ReadMemStats(&after)
		if done >= 0 {
			objects += after.Mallocs - before.Mallocs
			bytes += after.TotalAlloc - before.TotalAlloc
			rawTime += tookRaw
			b.StartTimer()
		}
		start = time.Now()
		for range n {
			ours()
		}
		if took := time.Since(start); done >= 0 {
			ratios = append(ratios, float64(took)/float64(tookRaw))
		}
	}
	b.StopTimer()
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-raw-time")
	b.ReportMetric(float64(rawTime.Nanoseconds())/float64(b.N), "raw-ns/op")
	b.ReportMetric(float64(objects)/float64(b.N), "raw-allocs/op")
	b.ReportMetric(float64(bytes)/float64(b.N), "raw-B/op")
}

const benchID = "mtg_0123456789abcdefghij"

// benchMeeting is a meeting of 500 bytes.
var benchMeeting = func() string {
	const m = `{"id":"` + benchID + `","title":"%s","date":"2026-11-20","time":"14:30","status":"transcribing",` +
		`"visibility":"organisation","template_id":"tpl_standard","participant_ids":["emp_ada","emp_bob","emp_chloe"],` +
		`"project_id":"prj_apollo","external_id":"crm-00004711","duration_seconds":1800,"created_at":1795000000,"updated_at":1795000600}`
	return fmt.Sprintf(m, strings.Repeat("w", 500-len(m)+len("%s")))
}()

// fixed is a response that is always the same.
type fixed struct {
	status int
	header http.Header
	body   string
}

func (c fixed) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	maps.Copy(w.Header(), c.header)
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, c.body)
}

// RoundTrip returns the response without a network, so that only the client's
// cost is measured.
func (c fixed) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.status, Header: c.header, Request: req,
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}, nil
}

// listen serves the response over loopback without allocating, so that only the
// client's allocations are counted.
func (c fixed) listen(b *testing.B) (base string) {
	var reply strings.Builder
	fmt.Fprintf(&reply, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", c.status, http.StatusText(c.status), len(c.body))
	require.NoError(b, c.header.Write(&reply))
	reply.WriteString("\r\n" + c.body)
	bytes := []byte(reply.String())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { _ = l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == len("\r\n") { // its end: it has no body
				if _, err := conn.Write(bytes); err != nil {
					return
				}
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + l.Addr().String()
}

const benchHost = "https://api.example.com"

// networks are the ways between a benchmark's client and its service: none at
// all, a socket, and a socket with net/http behind it in the same process.
var networks = []struct {
	name string
	to   func(b *testing.B, c fixed) (base string, transport http.RoundTripper)
}{
	{"stub", func(_ *testing.B, c fixed) (string, http.RoundTripper) { return benchHost, c }},
	{"socket", func(b *testing.B, c fixed) (string, http.RoundTripper) {
		t := &http.Transport{}
		b.Cleanup(t.CloseIdleConnections)
		return c.listen(b), t
	}},
	{"httptest", func(b *testing.B, c fixed) (string, http.RoundTripper) {
		srv := httptest.NewServer(c)
		b.Cleanup(srv.Close)
		return srv.URL, srv.Client().Transport
	}},
}

const benchKey = "key_0123456789abcdef"

// ourClient has its retries, its limit on a try's time, and a limiter that lets
// everything pass.
func ourClient(b *testing.B, base string, transport http.RoundTripper, opts ...minutes.Option) *minutes.Client {
	opts = append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: transport}), minutes.WithRateLimit(1e9, 1e9)}, opts...)
	c, err := minutes.New(base, benchKey, opts...)
	require.NoError(b, err)
	return c
}

func rawClient(base string, transport http.RoundTripper) *byHand {
	return &byHand{&http.Client{Transport: transport}, base, benchKey}
}

var jsonHeader = http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Cache-Control": {"private, max-age=30"}}

// BenchmarkGetOne gets a meeting of 500 bytes.
func BenchmarkGetOne(b *testing.B) {
	for _, network := range networks {
		b.Run(network.name, func(b *testing.B) {
			base, transport := network.to(b, fixed{200, jsonHeader, benchMeeting})
			c, raw, ctx := ourClient(b, base, transport), rawClient(base, transport), b.Context()
			check := func(m *minutes.Meeting, err error) {
				if err != nil || m.Date != "2026-11-20" {
					b.Fatal(m, err)
				}
			}
			beside(b, nil,
				func() { check(c.Meetings.Get(ctx, benchID)) },
				func() {
					m := new(minutes.Meeting)
					err := raw.do(ctx, http.MethodGet, "/v1/meetings/"+benchID, m)
					check(m, err)
				})
		})
	}
}

// BenchmarkError decodes an error response into a typed error.
func BenchmarkError(b *testing.B) {
	for _, refusal := range []struct {
		name  string
		reply fixed
		is    minutes.ErrorCode
	}{
		{"409 with details", fixed{409, jsonHeader, `{"error":{"code":"MINUTES_NOT_READY","message":"The minutes are not ready yet.",` +
			`"request_id":"req_0123456789abcdef","details":{"status":"transcribing"}}}`}, minutes.ErrMinutesNotReady},
		{"bare 429", fixed{429, http.Header{"Retry-After": {"7"}}, ""}, minutes.ErrRateLimited},
	} {
		for _, network := range networks[:2] {
			b.Run(refusal.name+"/"+network.name, func(b *testing.B) {
				base, transport := network.to(b, refusal.reply)
				raw, ctx := rawClient(base, transport), b.Context()
				var clients []*minutes.Client // a 429 cools a Client down: one for each
				beside(b, func(n int) {
					clients = clients[:0]
					for range n {
						clients = append(clients, ourClient(b, base, transport, minutes.WithMaxRetries(0)))
					}
				}, func() {
					c := clients[0]
					clients = clients[1:]
					_, err := c.Meetings.Get(ctx, benchID)
					if e, ok := errors.AsType[*minutes.Error](err); !ok || e.Code != refusal.is {
						b.Fatal(err)
					}
				}, func() {
					if raw.do(ctx, http.MethodGet, "/v1/meetings/"+benchID, new(minutes.Meeting)) == nil {
						b.Fatal("no error")
					}
				})
			})
		}
	}
	b.Run("storage 403/stub", benchmarkStorageError)
}

// benchmarkStorageError uploads to a store that rejects uploads. For either
// side it takes two requests: one for the URL, and the PUT.
func benchmarkStorageError(b *testing.B) {
	const target = `{"upload_url":"https://storage.example.com/recordings/` + benchID + `?X-Amz-Credential=AKIDEXAMPLE&` +
		`X-Amz-Signature=0123456789abcdef0123456789abcdef","expires_in":900,"method":"PUT"}`
	const refusal = `<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message><Resource>/recordings/` + benchID +
		`</Resource><RequestId>17C4A2B8E0D1F3A5</RequestId></Error>`
	xmlHeader := http.Header{"Content-Type": {"application/xml"}}
	transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPut {
			return fixed{403, xmlHeader, refusal}.RoundTrip(req)
		}
		return fixed{200, jsonHeader, target}.RoundTrip(req)
	})
	c, raw := ourClient(b, benchHost, transport), rawClient(benchHost, transport)
	source, ctx := testkit.Audio(10), b.Context()
	rec, err := source(ctx)
	require.NoError(b, err)
	beside(b, nil, func() {
		err := c.Meetings.Upload(ctx, benchID, source, nil)
		if e, ok := errors.AsType[*minutes.StorageError](err); !ok || e.Code != "SignatureDoesNotMatch" {
			b.Fatal(err)
		}
	}, func() {
		var t minutes.UploadTarget
		if err := raw.do(ctx, http.MethodPost, "/v1/meetings/"+benchID+"/upload-url", &t); err != nil {
			b.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, t.UploadURL.Reveal(), io.NewSectionReader(rec.Audio, 0, rec.Size))
		if err != nil {
			b.Fatal(err)
		}
		req.ContentLength = rec.Size
		req.Header.Set("Content-Type", rec.ContentType)
		req.Header.Set("Expect", "100-continue")
		resp, err := raw.http.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		var refused struct {
			Code, Message string
			RequestID     string `xml:"RequestId"`
		}
		if err := xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&refused); err != nil || refused.Code == "" {
			b.Fatal(err)
		}
	})
}

// BenchmarkListAll lists 10,000 meetings in pages of 50.
func BenchmarkListAll(b *testing.B) {
	const n, perPage = 10_000, 50
	pages := make([]string, n/perPage)
	for i := range pages {
		next := strconv.Itoa(i + 1)
		if i == len(pages)-1 {
			next = ""
		}
		pages[i] = `{"meetings":[` + strings.Repeat(benchMeeting+",", perPage-1) + benchMeeting + `],"next_cursor":"` + next + `"}`
	}
	requests := 0
	transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		requests++
		page, _ := strconv.Atoi(req.URL.Query().Get("cursor"))
		return fixed{200, jsonHeader, pages[page]}.RoundTrip(req)
	})
	c, raw, ctx := ourClient(b, benchHost, transport), rawClient(benchHost, transport), b.Context()
	list := func(each func(read int) bool) {
		read := 0
		for _, err := range c.Meetings.All(ctx, nil) {
			if err != nil {
				b.Fatal(err)
			}
			if read++; !each(read) {
				return
			}
		}
		if read != n {
			b.Fatal(read)
		}
	}
	ours := func() { list(func(int) bool { return true }) }
	beside(b, nil, ours, func() {
		read, cursor := 0, ""
		for more := true; more; more = cursor != "" {
			var page minutes.MeetingPage
			if err := raw.do(ctx, http.MethodGet, "/v1/meetings?limit=50&cursor="+cursor, &page); err != nil {
				b.Fatal(err)
			}
			read += len(page.Meetings)
			cursor = page.NextCursor
		}
		if read != n {
			b.Fatal(read)
		}
	})

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ours()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/item")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/item")

	requests = 0
	list(func(read int) bool { return read < perPage })
	b.ReportMetric(float64(requests), "requests-of-a-stopped-loop")

	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // pools empty in two
		runtime.ReadMemStats(&after)
		return int64(after.HeapAlloc)
	}
	idle, most := inUse(), int64(0)
	list(func(read int) bool {
		if read%1025 == 0 {
			most = max(most, inUse())
		}
		return true
	})
	b.ReportMetric(float64(most-idle), "live-B")
}

// BenchmarkUnknownFields shows why no type of the package keeps unknown fields:
// with encoding/json, each way to find them costs allocations for every
// meeting, even if there are none. A hand-written JSON reader would avoid that,
// but is not worth its lines. Client.Do returns such fields.
func BenchmarkUnknownFields(b *testing.B) {
	const perPage = 50
	page := []byte(`{"meetings":[` + strings.Repeat(benchMeeting+",", perPage-1) + benchMeeting + `]}`)
	for name, decode := range map[string]func() (meetings int, err error){
		"none": func() (int, error) {
			var p minutes.MeetingPage
			err := json.Unmarshal(page, &p)
			return len(p.Meetings), err
		},
		"method": func() (int, error) {
			var p struct{ Meetings []*hooked }
			err := json.Unmarshal(page, &p)
			return len(p.Meetings), err
		},
		"method-and-map": func() (int, error) {
			var p struct{ Meetings []*mapped }
			err := json.Unmarshal(page, &p)
			return len(p.Meetings), err
		},
		"second-pass": func() (int, error) {
			var p minutes.MeetingPage
			if err := json.Unmarshal(page, &p); err != nil {
				return 0, err
			}
			var all struct{ Meetings []map[string]json.RawMessage }
			err := json.Unmarshal(page, &all)
			return len(p.Meetings), err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				if n, err := decode(); err != nil || n != perPage {
					b.Fatal(n, err)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*perPage), "allocs/item")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perPage), "ns/item")
		})
	}
}

// hooked has a method that could search for unknown fields, and does not.
type hooked struct{ plain }

type plain minutes.Meeting

func (m *hooked) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &m.plain) }

// mapped searches for them.
type mapped struct {
	plain
	Extra map[string]json.RawMessage
}

func (m *mapped) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &m.plain); err != nil {
		return err
	}
	return json.Unmarshal(data, &m.Extra)
}
