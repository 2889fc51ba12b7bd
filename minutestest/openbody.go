package minutestest

import (
	"io"
	"net/http"
	"slices"
	"time"
)

// openBody is the body of a response until it has been read or closed.
type openBody struct {
	io.ReadCloser
	network *network
	// bubble is whether the response came in a bubble.
	bubble bool
	// at is when it came.
	at  time.Time
	req *http.Request
}

// newOpenBody returns body as one that is open from now on.
func (n *network) newOpenBody(body io.ReadCloser, req *http.Request) *openBody {
	o := &openBody{ReadCloser: body, network: n, bubble: inBubble(), at: time.Now(), req: req}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bodies[o] = struct{}{}
	return o
}

func (o *openBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil {
		o.done()
	}
	return n, err
}

func (o *openBody) Close() error {
	defer o.done()
	return o.ReadCloser.Close()
}

func (o *openBody) done() {
	o.network.mu.Lock()
	delete(o.network.bodies, o)
	o.network.mu.Unlock()
}

// leftOpen returns the responses that are still open after their readers had a moment to end: a
// caller that was just canceled may be about to close.
func (n *network) leftOpen() []*openBody {
	if len(n.open()) > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	return n.open()
}

// open returns the responses that were neither read to the end nor closed, the oldest first.
func (n *network) open() []*openBody {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*openBody
	for body := range n.bodies {
		if n.mine(body.bubble) {
			list = append(list, body)
		}
	}
	slices.SortFunc(list, func(a, b *openBody) int { return a.at.Compare(b.at) })
	return list
}
