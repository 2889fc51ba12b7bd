package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// service is the real one, or one in memory.
type service struct {
	client *minutes.Client
	memory *minutestest.Server // nil: the real one
	log    io.Writer
}

// connect goes by the environment, as every program that uses the package can.
func connect(shipped bool, log io.Writer) (*service, error) {
	if os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		client, err := minutes.NewFromEnv(minutes.WithUserAgent("quickstart/1.0"))
		return &service{client: client, log: log}, err
	}
	fmt.Fprintln(log, "Offline, with the in-memory fake. Set MINUTES_BASE_URL and MINUTES_API_KEY to use the real one.")
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 500 * time.Millisecond, Transcribe: time.Second, Write: time.Second}
	acme := &world.Organisations[0]
	acme.Members = append(acme.Members, minutestest.Member{ID: "emp_grace", Name: "Grace Hopper", Role: "Engineer"})
	server := minutestest.New(minutestest.WithWorld(world))
	if shipped {
		// The in-memory fake does not recognise speech. The script sets the
		// text of this recording. For any other one the service invents a text.
		server.Script(minutestest.Script{Transcript: spoken})
	}
	return &service{client: server.Client(), memory: server, log: log}, nil
}

func (s *service) offline() bool { return s.memory != nil }

func (s *service) close() {
	if s.offline() {
		_ = s.memory.Close()
	}
}

// settle spares a newcomer the minimum poll interval of thirty seconds, which
// no setting shortens. Offline, it reads the status from the service itself,
// without a request, until the meeting is done. The client's first poll then
// finds it done. (A test does not even wait as long as this: see
// testing/synctest and package minutestest.) With the real service, settle does
// nothing.
func (s *service) settle(ctx context.Context, id string) error {
	if !s.offline() {
		return nil
	}
	for shown := 1; ; {
		m, _ := s.memory.Meeting(id)
		for _, h := range m.History[shown:] {
			if !h.Status.Final() { // the client will see that
				fmt.Fprintf(s.log, "Status: %s\n", h.Status)
			}
		}
		shown = len(m.History)
		if m.Status.Final() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
