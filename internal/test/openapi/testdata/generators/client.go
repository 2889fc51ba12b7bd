// Command client does the main job with the client that oapi-codegen generates.
package main

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/oapi-codegen/runtime/types"

	"generated/api"
)

func main() {
	ctx := context.Background()
	client, err := api.NewClientWithResponses(os.Getenv("MINUTES_BASE_URL"),
		api.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+os.Getenv("MINUTES_API_KEY"))
			return nil
		}))
	check(err)
	date := types.Date{Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	created, err := client.CreateMeetingWithResponse(ctx, api.MeetingCreate{Title: "Weekly", Date: date})
	check(err)
	id := created.JSON201.Id
	target, err := client.CreateUploadURLWithResponse(ctx, id, api.UploadRequest{ContentType: "audio/mpeg"})
	check(err)
	put, err := http.NewRequest(http.MethodPut, target.JSON200.UploadUrl, bytes.NewReader(make([]byte, 32_000)))
	check(err)
	put.Header.Set("Content-Type", "audio/mpeg")
	uploaded, err := http.DefaultClient.Do(put)
	check(err)
	expect(uploaded.StatusCode == http.StatusOK, "the recording is stored")
	meeting, err := client.GetMeetingWithResponse(ctx, id)
	check(err)
	expect(meeting.JSON200.Status == api.MinutesReady, "the minutes are ready")
	format := api.GetMinutesParamsFormat("markdown")
	minutes, err := client.GetMinutesWithResponse(ctx, id, &api.GetMinutesParams{Format: &format})
	check(err)
	expect(strings.HasPrefix(minutes.JSON200.Content, "# Weekly"), "the minutes have content")

	unknown := api.Status("archiving") // the service may add it
	expect(meeting.JSON200.Status != unknown, "no value is rejected")

	const fault = `{"match":{"operation":"usage.get"},"faults":[{"kind":"rate_limit","retry_after":"1"}]}`
	_, err = http.Post(os.Getenv("MINUTES_CONTROL_URL")+"/faults", "application/json", strings.NewReader(fault))
	check(err)
	limited, err := client.GetUsageWithResponse(ctx)
	check(err)
	expect(limited.StatusCode() == http.StatusTooManyRequests, "a 429 is a response")
	log.Print("oapi-codegen: the main job is done")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func expect(ok bool, what string) {
	if !ok {
		log.Fatal("not so: ", what)
	}
}
