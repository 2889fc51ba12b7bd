package minutestest

import (
	"net/http"
	"sync"
)

// holdback keeps the last byte of a response until journal and audit have
// recorded the request. So a client with the whole response finds the request
// there.
type holdback struct {
	http.ResponseWriter
	last [1]byte
	held bool
}

var holdbacks = sync.Pool{New: func() any { return new(holdback) }}

func hold(w http.ResponseWriter) *holdback {
	h := holdbacks.Get().(*holdback)
	h.ResponseWriter = w
	return h
}

func (h *holdback) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return h.ResponseWriter.Write(p)
	}
	if h.held {
		h.held = false
		if _, err := h.ResponseWriter.Write(h.last[:]); err != nil {
			return 0, err
		}
	}
	n, err := h.ResponseWriter.Write(p[:len(p)-1])
	if err != nil {
		return n, err
	}
	h.last[0], h.held = p[len(p)-1], true
	return len(p), nil
}

// Unwrap is for [http.ResponseController].
func (h *holdback) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// release sends the last byte. The holdback must not be used afterwards.
func (h *holdback) release() {
	if h.held {
		_, _ = h.ResponseWriter.Write(h.last[:])
	}
	*h = holdback{}
	holdbacks.Put(h)
}
