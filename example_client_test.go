package minutes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A program makes one Client and shares it.
func ExampleNew() {
	client, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithUserAgent("myapp/1.2"),
		minutes.WithRetries(minutes.RetryPolicy{Max: 6, WaitMin: time.Second, WaitMax: 30 * time.Second}),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client)

	_, err = minutes.New("http://minutes.example.com", "key_example")
	if bad, ok := errors.AsType[*minutes.ParamError](err); ok {
		fmt.Println(bad.Param, bad.Reason)
	}
	// Output:
	// minutes.Client(https://minutes.example.com, key masked)
	// baseURL must use https, because the host is not loopback
}

// Use Do for requests that the package has no method for. It works like every other call. This one
// reads a field that the package does not know.
func ExampleClient_Do() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Path: "/v1/meetings/mtg_1"},
		minutestest.Respond(200, "application/json", `{"id":"mtg_1","title":"Weekly","language":"en"}`))
	client := srv.Client()
	ctx, id := context.Background(), "mtg_1"

	var m struct {
		minutes.Meeting
		Language string `json:"language"`
	}
	_, err := client.Do(ctx, minutes.Request{Method: "GET", Path: "/v1/meetings/" + url.PathEscape(id)}, &m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Title, m.Language)
	// Output: Weekly en
}

// The interface does not document the transcript's path. If your service uses another path, set it
// with one option.
func ExampleWithRoute() {
	_, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithRoute(minutes.OpMeetingsTranscript, "GET", "/v1/transcripts/{meeting_id}"))
	fmt.Println(err)
	// Output: <nil>
}

// API calls and uploads use your own proxy and certificate authority.
func ExampleWithHTTPClient() {
	authorities, err := x509.SystemCertPool()
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile("corporate-ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	if !authorities.AppendCertsFromPEM(pem) {
		log.Fatal("corporate-ca.pem holds no certificate")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example.com:3128"})
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
	client, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithHTTPClient(&http.Client{Transport: transport}),
		minutes.WithUploadTimeouts(minutes.UploadTimeouts{Stall: time.Minute, Response: 15 * time.Minute}), // this proxy scans recordings
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client)
}

// The Client logs its attempts and pauses.
func ExampleWithLogger() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.RateLimit(""))

	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // these values differ each time
			if a.Key == slog.TimeKey || a.Key == "wait" || a.Key == "for" || a.Key == "request_id" {
				return slog.Attr{}
			}
			return a
		},
	}))
	client := srv.Client(minutes.WithLogger(logger), minutes.WithRetries(minutes.RetryPolicy{Max: 1, WaitMin: time.Millisecond, WaitMax: time.Millisecond}))
	if _, err := client.Usage.Get(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// level=DEBUG msg="minutes: attempt of a request" operation=usage.get method=GET path=/v1/usage attempt=1 status=429 code=RATE_LIMITED
	// level=INFO msg="minutes: a 429 pauses all requests" operation=usage.get
	// level=DEBUG msg="minutes: attempt of a request" operation=usage.get method=GET path=/v1/usage attempt=2 status=200
}

// An observer counts attempts: the first gets a 429, the Client pauses, and the second succeeds.
func ExampleWithObserver() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.RateLimit(""))

	observe := minutes.WithObserver(func(_ context.Context, event minutes.Event) {
		switch e := event.(type) {
		case minutes.Attempt:
			fmt.Println(e.Operation, "attempt", e.Number, "answered", e.StatusCode) // and more
		case minutes.RateLimited:
			fmt.Println("all requests pause") // for e.Pause
		case minutes.PollCycle:
			fmt.Println("the poller made", e.Pages+e.Gets, "requests for", e.Waits, "waits")
		}
	})
	client := srv.Client(observe, minutes.WithRetries(minutes.RetryPolicy{Max: 1, WaitMin: time.Millisecond, WaitMax: time.Millisecond})) // or minutes.New(baseURL, key, observe)
	if _, err := client.Usage.Get(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// usage.get attempt 1 answered 429
	// all requests pause
	// usage.get attempt 2 answered 200
}

// Your own transport can ask which operation a request belongs to.
func ExampleAttemptFromContext() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client(minutes.WithHTTPClient(&http.Client{Transport: named{srv.HTTPClient().Transport}}))
	if _, err := client.Members.List(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: members.list 1
}
