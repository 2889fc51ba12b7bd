package network_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A firewall that forgets its connections drops their packets. Calls, waits and uploads
// work again within a minute, on new connections.
func TestClient_RecoversFromDroppedConnections(t *testing.T) {
	t.Parallel()
	for name, front := range fronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const recovery = time.Minute
			const pollInterval = 30 * time.Second
			o := newOrigin(t)
			l := newLine(t, front(t, o))
			l.add("drop", `"before": 0`)
			client := o.client(t, l.url())

			o.Script(minutestest.Script{Title: "Held", Hold: minutes.StatusTranscribing})
			held := create(t, client, "Held")
			require.NoError(t, client.Meetings.Upload(t.Context(), held, testkit.Audio(100_000), nil))
			other := create(t, client, "Weekly")
			polled := make(chan struct{}, 10)
			tasks := map[string]func(context.Context) error{
				"call": func(ctx context.Context) error {
					_, err := client.Usage.Get(ctx)
					return err
				},
				"upload": func(ctx context.Context) error {
					return client.Meetings.Upload(ctx, other, testkit.Audio(100_000), nil)
				},
				"wait": func(context.Context) error { // begins before the drop
					ctx, cancel := context.WithTimeout(t.Context(), pollInterval+recovery)
					defer cancel()
					onStatus := func(*minutes.Meeting) { polled <- struct{}{} }
					_, err := client.Meetings.Wait(ctx, held, &minutes.WaitOptions{OnStatus: onStatus})
					return err
				},
			}
			var group sync.WaitGroup
			begin := func(name string) {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), recovery)
					defer cancel()
					began := time.Now()
					err := tasks[name](ctx)
					t.Logf("%s ended after %v: %v", name, time.Since(began).Round(time.Second), err)
					assert.NoError(t, err, name)
				})
			}
			begin("wait")
			select {
			case <-polled:
			case <-time.After(recovery):
				require.Fail(t, "the wait has not polled")
			}
			for _, r := range o.Requests() {
				t.Logf("before the drop: %s over %s", r.Operation, r.Header.Get("X-Seen-Proto"))
			}
			l.dropConnections()
			require.True(t, o.Release(held))
			begin("call")
			begin("upload")
			group.Wait()
		})
	}
}

// Over a distance an upload takes about as long as a plain PUT over HTTP/1.1. The server's
// window for a stream of HTTP/2, often 64 KiB, would limit it.
func TestUpload_AsFastAsHTTP1OverDistance(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	l := newLine(t, haproxy(t, o))
	l.roundTrip(100 * time.Millisecond)
	client := o.client(t, l.url())
	recording, sum := testkit.Noise(10 << 20)
	fastest := func(send func(id string)) time.Duration {
		best := time.Hour
		for range 2 { // one timing may be noise
			id := create(t, client, "Weekly")
			began := time.Now()
			send(id)
			best = min(best, time.Since(began))
			testkit.RequireArrived(t, o.Server, id, sum)
		}
		return best
	}
	plain := fastest(func(id string) { plainPut(t, client, id, recording) })
	upload := fastest(func(id string) {
		require.NoError(t, client.Meetings.Upload(t.Context(), id, recording, nil))
	})
	t.Logf("10 MiB: plain PUT over HTTP/1.1 %v, Upload %v", plain, upload)
	assert.Less(t, upload.Seconds()/plain.Seconds(), 3.0)
}

// plainPut uploads as a program without this package does, on a new connection.
func plainPut(t *testing.T, client *minutes.Client, id string, source minutes.Source) {
	t.Helper()
	rec, err := source(t.Context())
	require.NoError(t, err)
	target, err := client.Meetings.UploadURL(t.Context(), id, rec.ContentType)
	require.NoError(t, err)
	data := make([]byte, rec.Size)
	_, err = rec.Audio.ReadAt(data, 0)
	require.NoError(t, err)
	url := target.UploadURL.Reveal()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(data))
	require.NoError(t, err)
	req.Header.Set("Content-Type", rec.ContentType)
	withoutHTTP2 := map[string]func(string, *tls.Conn) http.RoundTripper{}
	transport := &http.Transport{TLSNextProto: withoutHTTP2}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
