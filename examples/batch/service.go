package main

import (
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// connect goes by the environment: to the real service, or to one in memory.
func connect(uploads int) (client *minutes.Client, offline bool, err error) {
	if os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		client, err = minutes.NewFromEnv(minutes.WithUserAgent("batch/1.0"), minutes.WithUploadConcurrency(uploads))
		return client, false, err
	}
	return impatientServer().Client(minutes.WithUploadConcurrency(uploads)), true, nil
}

// impatientServer spares a newcomer the minimum poll interval of thirty
// seconds, which no setting shortens. Four times a second it accepts a
// recording, and has its minutes written before it responds to the upload. The
// client's first poll, which follows, finds them. (A test need not wait at all:
// see testing/synctest and package minutestest.)
func impatientServer() *minutestest.Server {
	var server *minutestest.Server
	pace := time.NewTicker(250 * time.Millisecond) // a client polls five times a second
	server = minutestest.New(minutestest.WithLog(func(r minutestest.Request) {
		if r.Operation == minutes.OpUpload && r.Status == 200 {
			<-pace.C
			server.Advance(r.MeetingID, minutes.StatusMinutesReady) // or the failure that it comes to
		}
	}))
	return server
}
