package rest

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestMain(m *testing.M) { testbase.Main(m) }

// service is a fake transport. answers[i] is its answer to attempt i, and the last answer repeats.
type service struct {
	answers []answer

	mu   sync.Mutex
	sent []time.Time
	reqs []*http.Request
}

// answer is a response, or an error if status is 0.
type answer struct {
	status     int
	retryAfter string
	err        error
	body       io.Reader
	after      time.Duration
	location   string
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	a := s.answers[min(len(s.sent), len(s.answers)-1)]
	s.sent = append(s.sent, time.Now())
	s.reqs = append(s.reqs, req)
	s.mu.Unlock()
	if Sleep(req.Context(), a.after) != nil {
		return nil, context.Cause(req.Context())
	}
	if a.status == 0 {
		return nil, a.err
	}
	resp := &http.Response{
		StatusCode: a.status,
		Header:     http.Header{},
		Body:       io.NopCloser(strings.NewReader("{}")),
		Request:    req,
	}
	if a.body != nil {
		resp.Body = io.NopCloser(a.body)
	}
	if a.retryAfter != "" {
		resp.Header.Set("Retry-After", a.retryAfter)
	}
	if a.location != "" {
		resp.Header.Set("Location", a.location)
	}
	return resp, nil
}

const apiKey = "key_0123456789/abcdef"

func newClient(transport http.RoundTripper, change ...func(*Config)) *Client {
	cfg := Config{
		Base:       &url.URL{Scheme: "https", Host: "minutes.example", Path: "/base"},
		Key:        FixedKey(apiKey),
		UserAgent:  "test/1",
		Transport:  transport,
		Timeout:    30 * time.Second,
		MaxRetries: 4,
		Throttle:   NewThrottle(rate.NewLimiter(rate.Inf, 0)),
		Mask:       NewMask(apiKey),
	}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg)
}

func noRetries(cfg *Config) { cfg.MaxRetries = 0 }

// The requests of most tests: one that may be repeated, and one that may not.
var (
	get    = Request{Method: http.MethodGet, Path: "/v1/usage", Repeatable: true}
	create = Request{Method: http.MethodPost, Path: "/v1/projects", Body: []string{"a"}}
)
