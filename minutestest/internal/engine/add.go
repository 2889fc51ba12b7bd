package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Add creates the meeting that body describes, a JSON object as in a create, for a member or an integration. Unless
// status is created, the meeting gets a recording of one second and continues to status at once, without quota and
// without regard to scripts. From there it continues by itself. Add returns the meeting's id.
func (s *Service) Add(organisation, creator string, body []byte, status minutes.Status) (id string, err error) {
	w := s.world.Load()
	o := w.orgs[organisation]
	if o == nil {
		return "", fmt.Errorf("engine: there is no organisation %q", organisation)
	}
	c := &call{world: w, org: o, now: wallClock(), key: &key{caller: creator, visibility: defaultPersonalVisibility}}
	o.lock(c.now)
	if in := o.integrations[creator]; in != nil {
		c.key.visibility = in.DefaultVisibility
	}
	o.unlock()
	f, _ := parseForm(body)
	if _, rejection := c.create(f); rejection != nil {
		return "", fmt.Errorf("engine: %s: %s", string(rejection.code), rejection.message)
	}
	if c.status == http.StatusOK {
		return "", errors.New("engine: the external id is another meeting's already")
	}
	if status != minutes.StatusCreated {
		o.skip(c, status)
	}
	return c.x.MeetingID, nil
}

// skip takes the meeting that c has created to a status.
func (o *organisation) skip(c *call, status minutes.Status) {
	o.lock(c.now)
	defer o.unlock()
	m, sel := o.meetings[c.x.MeetingID], Selector{MeetingID: c.x.MeetingID}
	if m == nil {
		return // it was deleted meanwhile
	}
	o.world.scripts[sel] = Script{Outcome: minutes.StatusMinutesReady}
	if status.Failed() {
		o.world.scripts[sel] = Script{Outcome: status}
	}
	recording := make([]byte, bytesPerSecond)
	credits, seconds := o.credits, o.seconds
	o.credits, o.seconds = 1, o.reserved+1
	o.arrive(m, &job{contentType: "audio/mpeg", size: int64(len(recording)), sha256: sha256.Sum256(recording), seconds: 1, received: c.now})
	for m.status != status && !m.status.Final() {
		o.schedule.remove(m)
		o.step(m, c.now)
	}
	o.credits, o.seconds = credits, seconds
	delete(o.world.scripts, sel)
	o.plan(m, c.now)
}
