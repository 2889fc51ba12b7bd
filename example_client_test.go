package minutes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A program makes one Client and shares it.
func ExampleNew() {
	client, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithUserAgent("myapp/1.2"),
		minutes.WithMaxRetries(6),
	)
	if err != nil {
		log.Fatal(err)
	}
	_ = client // such as client.Meetings.Process

	_, err = minutes.New("http://minutes.example.com", "key_example")
	if bad, ok := errors.AsType[*minutes.ParamError](err); ok {
		fmt.Println(bad.Param, bad.Reason)
	}
	// Output:
	// baseURL must use https, because the host is not loopback (see WithInsecureHTTP)
}

// Use Do for requests that the package has no method for. It works like every other call. This one
// reads a field that the package does not know.
func ExampleClient_Do() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Path: "/v1/meetings/mtg_1"},
		minutestest.Respond(200, "application/json", `{"id":"mtg_1","title":"Weekly","language":"en"}`))
	client := srv.Client()
	id := "mtg_1"

	request := minutes.Request{Method: "GET", Path: "/v1/meetings/" + url.PathEscape(id)}
	var m struct {
		minutes.Meeting
		Language string `json:"language"`
	}
	_, err := client.Do(context.Background(), request, &m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Title, m.Language)
	// Output: Weekly en
}

// Read a field that a type of this package lacks, from the response behind any call.
func ExampleContextWithResponse() {
	srv := minutestest.New()
	defer srv.Close()
	body := `{"id":"mtg_1","title":"Weekly","status":"created","language":"en"}`
	srv.Inject(minutestest.Match{Path: "/v1/meetings/mtg_1"},
		minutestest.Respond(200, "application/json", body))
	client := srv.Client()

	var resp minutes.Response
	ctx := minutes.ContextWithResponse(context.Background(), &resp)
	m, err := client.Meetings.Get(ctx, "mtg_1")
	if err != nil {
		log.Fatal(err)
	}
	var extra struct {
		Language string `json:"language"`
	}
	err = json.Unmarshal(resp.Body, &extra)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Title, extra.Language, resp.StatusCode)
	// Output: Weekly en 200
}

// Send a trace id, or the header that a gateway asks for, with every request of a call.
func ExampleContextWithHeader() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	ctx := minutes.ContextWithHeader(context.Background(), http.Header{
		"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	})
	_, err := client.Usage.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(srv.Requests()[0].Header.Get("Traceparent"))
	// Output: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}

// The key is in a file, which a secret store replaces before it revokes the old key. Calls and
// waits go on with the new key.
func ExampleWithAPIKeyFunc() {
	srv := minutestest.New()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "secrets-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	keyFile := filepath.Join(dir, "minutes-key")
	store := func(key string) {
		err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600)
		if err != nil {
			log.Fatal(err)
		}
	}
	store("key_ada")

	readKey := func(context.Context) (string, error) {
		key, err := os.ReadFile(keyFile)
		return string(key), err
	}
	client, err := minutes.New(minutestest.BaseURL, "", // in your program, without the next line
		minutes.WithHTTPClient(srv.HTTPClient()),
		minutes.WithAPIKeyFunc(readKey))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err = client.Usage.Get(context.Background())
		fmt.Println(srv.Requests()[len(srv.Requests())-1].Caller, err)

		store("key_ci")
		srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ada").Revoked = true })
	}
	// Output:
	// emp_ada <nil>
	// int_ci <nil>
}

// The API reference does not show the transcript's path. If your service uses another one, set it
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
		// This proxy scans a recording before it responds.
		minutes.WithUploadTimeouts(minutes.UploadTimeouts{Response: 15 * time.Minute}),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client)
}

// The Client logs each attempt at debug level.
func ExampleWithLogger() {
	srv := minutestest.New()
	defer srv.Close()

	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if slices.Contains([]string{"level", "operation", "attempt", "status", "code"}, a.Key) {
				return a
			}
			return slog.Attr{} // left out here, because some of them differ each time
		},
	}))
	client := srv.Client(minutes.WithLogger(logger))
	_, _ = client.Usage.Get(context.Background())
	_, _ = client.Meetings.Get(context.Background(), "mtg_unknown")
	// Output:
	// level=DEBUG operation=usage.get attempt=1 status=200
	// level=DEBUG operation=meetings.get attempt=1 status=404 code=NOT_FOUND
}

// An observer gets the same attempts as values, for metrics and alerts.
func ExampleWithObserver() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.RateLimit("30"))

	observe := minutes.WithObserver(func(_ context.Context, a minutes.Attempt) {
		fmt.Println(a.Operation, a.Number, a.StatusCode)
		if a.Pause > 0 {
			fmt.Println("all requests pause for", a.Pause)
		}
	})
	client := srv.Client(observe, minutes.WithMaxRetries(0)) // or minutes.New(baseURL, key, observe)
	_, err := client.Usage.Get(context.Background())
	fmt.Println(errors.Is(err, minutes.ErrRateLimited))
	// Output:
	// usage.get 1 429
	// all requests pause for 30s
	// true
}

func ExampleVocabularyService_Replace() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	vocabulary, err := client.Vocabulary.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	terms := append(vocabulary.Terms, "Prometheus", "Grafana Loki")
	vocabulary, err = client.Vocabulary.Replace(ctx, terms)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(vocabulary.Terms), "of", vocabulary.MaxTerms)
	// Output: 5 of 500
}
