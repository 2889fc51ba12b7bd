package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// fake is the service from one reset to the next, with what the control API has added to it.
type fake struct {
	*minutestest.Server
	// over is done when the fake is replaced; setOver makes it so.
	over    context.Context
	setOver func()

	faults []*fault
	// added is the number of faults, also of those that were removed.
	added int
	ahead time.Duration
}

// fault is a fault as the control API shows it.
type fault struct {
	ID string `json:"id"`
	faultSpec
	// Seen is the number of requests that matched, until the fault was used up.
	Seen int `json:"seen"`
	// Applied is the number of requests that the fault happened to.
	Applied int `json:"applied"`

	injection *minutestest.Injection
}

// faultSpec is the JSON of a fault.
type faultSpec struct {
	Match    minutestest.Match   `json:"match,omitzero"`
	Faults   []minutestest.Fault `json:"faults"`
	Optional bool                `json:"optional,omitempty"`
	// From and To are the window of time, counted from now; nil: from now on, and for ever.
	From *strictjson.Duration `json:"from,omitempty"`
	To   *strictjson.Duration `json:"to,omitempty"`
}

// newFake returns a fake with a world.
func (p *process) newFake(w minutestest.World) (*fake, error) {
	f := &fake{}
	f.over, f.setOver = context.WithCancel(context.Background())
	requests := slog.New(p.settings.logHandler(p.lines))
	options := append(p.settings.options(), minutestest.WithWorld(w), minutestest.WithLog(func(r minutestest.Request) {
		// No secrets: of a URL the path alone, and nothing of headers and bodies.
		requests.Info("request", "method", r.Method, "path", r.Path, "status", r.Status, "took", r.Took,
			"operation", r.Operation, "caller", r.Caller, "code", r.Code, "request_id", r.RequestID, "fault", r.Fault)
	}))
	err := mistake.Catch(func() { f.Server = minutestest.New(options...) })
	return f, err
}

// useless returns faults and scripts that were of no use.
func (f *fake) useless() (faults, scripts []string) {
	for _, t := range f.faults {
		if text := t.injection.Unused(); text != "" {
			faults = append(faults, fmt.Sprintf(`%s: %s: correct its match, or set "optional": true`, t.ID, text))
		}
	}
	for _, s := range f.UnmatchedScripts() {
		target, _ := json.Marshal(s.Target())
		scripts = append(scripts, fmt.Sprintf("no meeting matched the script for %s", target))
	}
	return faults, scripts
}
