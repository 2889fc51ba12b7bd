package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"sync"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// requestLog writes one line for each request. There is no secret in it: of a
// URL the path alone, and of headers and bodies nothing.
type requestLog struct{ to *slog.Logger }

func newRequestLog(form string, w io.Writer) requestLog {
	switch form {
	case "json":
		return requestLog{slog.New(slog.NewJSONHandler(w, nil))}
	case "text":
		return requestLog{slog.New(slog.NewTextHandler(w, nil))}
	}
	return requestLog{slog.New(slog.DiscardHandler)}
}

// served logs a request that the service or its storage has handled.
func (l requestLog) served(r minutestest.Request) {
	line := []slog.Attr{slog.String("method", r.Method), slog.String("path", r.Path)}
	for _, field := range []struct{ name, value string }{
		{"operation", string(r.Operation)}, {"caller", r.Caller}, {"code", r.Code}, {"request_id", r.RequestID}, {"fault", r.Fault},
	} {
		if field.value != "" {
			line = append(line, slog.String(field.name, field.value))
		}
	}
	line = append(line, slog.Int("status", r.Status), slog.Duration("took", r.Took))
	l.write(line)
}

// rejected logs a request that the edge rejected.
func (l requestLog) rejected(r *http.Request) {
	l.write([]slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("fault", "edge limit"), slog.Int("status", http.StatusTooManyRequests),
	})
}

func (l requestLog) write(line []slog.Attr) {
	l.to.LogAttrs(context.Background(), slog.LevelInfo, "request", line...)
}

// counts counts requests, since the journal keeps the last ones only.
type counts struct {
	mu sync.Mutex
	of map[minutes.Operation]map[int]int // by operation, "" for a path of none, and by status
}

func (c *counts) add(r minutestest.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[minutes.Operation]map[int]int)
	}
	if c.of[r.Operation] == nil {
		c.of[r.Operation] = make(map[int]int)
	}
	c.of[r.Operation][r.Status]++
}

func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = nil
}

func (c *counts) all() map[minutes.Operation]map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[minutes.Operation]map[int]int)
	for op, statuses := range c.of {
		all[op] = maps.Clone(statuses)
	}
	return all
}
