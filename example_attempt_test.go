package minutes_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// measured is a transport that counts requests by operation, because a path contains ids.
type measured struct {
	next  http.RoundTripper
	count func(operation minutes.Operation, attempt int)
}

func (m *measured) RoundTrip(req *http.Request) (*http.Response, error) {
	info, ok := minutes.AttemptFromContext(req.Context())
	if ok {
		m.count(info.Operation, info.Number)
	}
	return m.next.RoundTrip(req)
}

// A transport of your own asks which operation a request belongs to, and which attempt it is.
func ExampleAttemptFromContext() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.BadGateway())
	transport := &measured{
		next:  srv.HTTPClient().Transport, // in your program, a clone of http.DefaultTransport
		count: func(operation minutes.Operation, attempt int) { fmt.Println(operation, attempt) },
	}
	client, err := minutes.New(minutestest.BaseURL, srv.Key(),
		minutes.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		log.Fatal(err)
	}

	_, err = client.Usage.Get(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// usage.get 1
	// usage.get 2
}
