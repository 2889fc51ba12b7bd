package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Process creates no meeting for a file that is not a recording.
func ExampleFromFile() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	params := &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"}

	_, err := client.Meetings.Process(context.Background(), params, minutes.FromFile("go.mod"), nil)
	fmt.Println(err)
	fmt.Println(len(srv.Requests()), "requests")
	// Output:
	// minutes: path: "go.mod": the content is text/plain, not a recording
	// 0 requests
}

// A reader whose length is not known, such as the output of ffmpeg or an object in S3. It can be
// read only once, so for another try, open a new one.
func ExampleFromReader() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	open := func() *strings.Reader { return strings.NewReader("sound") }

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{
		Title: "Stand-up",
		Date:  "2026-03-10",
	})
	if err != nil {
		log.Fatal(err)
	}
	recording := minutes.FromReader(open(), "audio/mpeg")
	err = client.Meetings.Upload(ctx, m.ID, recording, nil)
	fmt.Println(err)
	err = client.Meetings.Upload(ctx, m.ID, recording, nil)
	fmt.Println(err)
	// Output:
	// <nil>
	// minutes: a Source from FromReader opens only once, since r has been read
}

// A Source of your own opens the recording when its upload begins. This one downloads it from a
// URL, and works again for a retry.
func ExampleSource() {
	fromURL := func(hc *http.Client, address string) minutes.Source {
		return func(ctx context.Context) (minutes.Recording, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				return minutes.Recording{}, errors.Unwrap(err) // without the address, which may be secret
			}
			resp, err := hc.Do(req)
			if err != nil {
				return minutes.Recording{}, errors.Unwrap(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return minutes.Recording{}, fmt.Errorf("downloading the recording: %s", resp.Status)
			}
			return minutes.FromReader(resp.Body, resp.Header.Get("Content-Type"))(ctx)
		}
	}

	srv := minutestest.New()
	defer srv.Close()
	files := httptest.NewServer(http.FileServer(http.Dir("examples/quickstart/recording")))
	defer files.Close()
	params := &minutes.MeetingCreateParams{
		Title:      "Weekly",
		Date:       "2026-11-20",
		ExternalID: "weekly-2026-11-20",
	}
	recording := fromURL(files.Client(), files.URL+"/standup.mp3")
	result, err := srv.Client().Meetings.Process(context.Background(), params, recording, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Meeting.Status)
	fmt.Println(srv.Requests(minutes.OpUpload)[0].Header.Get("Content-Type"))
	// Output:
	// minutes_ready
	// audio/mpeg
}

// FromFile finds the content type by itself. If you know it better, as for a format that this
// package does not know, open the file in a Source of your own.
func ExampleSource_contentType() {
	fromFile := func(path, contentType string) minutes.Source {
		return func(context.Context) (minutes.Recording, error) {
			f, err := os.Open(path) // the Client closes it
			if err != nil {
				return minutes.Recording{}, err
			}
			info, err := f.Stat()
			if err != nil {
				return minutes.Recording{}, errors.Join(err, f.Close())
			}
			return minutes.Recording{Audio: f, Size: info.Size(), ContentType: contentType}, nil
		}
	}

	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	dir, err := os.MkdirTemp("", "recordings-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "call.gsm")
	err = os.WriteFile(path, []byte("\xd0\x00 sound"), 0o600)
	if err != nil {
		log.Fatal(err)
	}

	params := &minutes.MeetingCreateParams{Title: "Interview", Date: "2026-11-20"}
	_, err = client.Meetings.Process(context.Background(), params, minutes.FromFile(path), nil)
	fmt.Println(errors.Is(err, minutes.ErrRecordingFormat))
	recording := fromFile(path, "audio/x-gsm")
	result, err := client.Meetings.Process(context.Background(), params, recording, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Meeting.Status)
	// Output:
	// true
	// minutes_ready
}
