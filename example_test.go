package minutes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A program makes one Client and shares it.
func ExampleNew() {
	client, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithUserAgent("myapp/1.2"),
		minutes.WithRetries(6, time.Second, 30*time.Second),
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
	// baseURL must be https, since the host is not loopback
}

// A proxy and a certificate authority of one's own.
func ExampleWithHTTPClient() {
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile("testdata/ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("certificates added:", authorities.AppendCertsFromPEM(pem))

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
	client, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithHTTPClient(&http.Client{Transport: transport}),
		minutes.WithUploadTimeouts(time.Minute, 15*time.Minute), // the proxy scans recordings
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client)
	// Output:
	// certificates added: true
	// minutes.Client(https://minutes.example.com, key masked)
}

func ExampleMeetingsService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	starts := time.Date(2026, 3, 9, 14, 30, 0, 0, time.UTC)
	params := &minutes.MeetingCreateParams{
		Title:          "Budget",
		Date:           minutes.DateOf(starts),
		Time:           minutes.TimeOfDay(starts),
		ExternalID:     "crm-4711", // makes it safe to run this again
		ParticipantIDs: []string{"emp_ada", "emp_ben"},
	}
	for range 2 {
		m, created, err := client.Meetings.Create(ctx, params)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title, m.Date, m.Time, m.Status, created)
	}
	// Output:
	// Budget 2026-03-09 14:30 created true
	// Budget 2026-03-09 14:30 created false
}

func ExampleMeetingsService_Upload() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
	if err != nil {
		log.Fatal(err)
	}
	// A file is opened with OpenRecording; this comes from elsewhere.
	rec, err := minutes.RecordingFromReader(strings.NewReader(strings.Repeat("sound", 1000)), "audio/mpeg")
	if err != nil {
		log.Fatal(err)
	}
	defer rec.Close()

	var last int64
	err = client.Meetings.Upload(ctx, m.ID, rec, &minutes.UploadOptions{
		Progress: func(sent, total int64) { last = 100 * sent / total },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d %% of %d bytes\n", last, rec.Size)
	// Output: 100 % of 5000 bytes
}

func ExampleMeetingsService_All() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	for _, title := range []string{"Budget", "Stand-up", "Retrospective"} {
		_, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-03-10"})
		if err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range client.Meetings.All(ctx, &minutes.MeetingListParams{DateFrom: "2026-03-01"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title)
	}
	// Output:
	// Retrospective
	// Stand-up
	// Budget
}

func ExampleMeetingsService_FindByExternalID() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	_, err := client.Meetings.FindByExternalID(context.Background(), "crm-4711")
	if errors.Is(err, minutes.ErrNotFound) {
		fmt.Println("no such meeting yet")
	}
	// Output: no such meeting yet
}

func ExampleMeetingsService_Update() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Budget", Date: "2026-03-09", Time: "14:30", ProjectID: "prj_apollo"})
	if err != nil {
		log.Fatal(err)
	}
	m, err = client.Meetings.Update(ctx, m.ID, &minutes.MeetingUpdateParams{
		Title: new("Budget, second round"),
		Time:  new(""), // clears it; what is nil stays
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %s, %q, %s\n", m.Title, m.Date, m.Time, m.ProjectID)
	// Output: Budget, second round, 2026-03-09, "", prj_apollo
}

// A refusal has a code to branch on, and a request id for the support.
func ExampleError() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	_, err := client.Meetings.Minutes(context.Background(), "mtg_unknown", minutes.FormatMarkdown)
	switch {
	case errors.Is(err, minutes.ErrMinutesNotReady):
		fmt.Println("later")
	case errors.Is(err, minutes.ErrNotFound):
		refused, _ := errors.AsType[*minutes.Error](err)
		fmt.Println(refused.StatusCode, refused.Code, refused.RequestID != "")
	}
	// Output: 404 NOT_FOUND true
}

func ExampleMembersService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	member, err := client.Members.Create(context.Background(), &minutes.MemberCreateParams{
		Name:        "Grace Hopper",
		Description: "Consultant; knows compilers.", // helps to tell who spoke
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(member.Name, member.Status)
	// Output: Grace Hopper no_account
}

func ExampleVocabularyService_Add() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	vocabulary, err := client.Vocabulary.Add(context.Background(), "Prometheus")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vocabulary.Terms)
	// Output: [Kubernetes PostgreSQL Grafana Prometheus]
}

// The interface does not show where a transcript is; a service that has it
// elsewhere needs one option.
func ExampleWithRoute() {
	_, err := minutes.New("https://minutes.example.com", "key_example",
		minutes.WithRoute(minutes.OpTranscript, "GET", "/v1/transcripts/{meeting_id}"))
	fmt.Println(err)
	// Output: <nil>
}

// A file that is no recording is refused before it is uploaded.
func ExampleOpenRecording() {
	_, err := minutes.OpenRecording("go.mod")
	fmt.Println(err)
	// Output: minutes: path: is not a known audio format; fill a Recording with its ContentType
}
