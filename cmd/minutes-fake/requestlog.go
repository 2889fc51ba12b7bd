package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

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

// served tells of a request that the service or its storage has answered.
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

// refused tells of one that did not get past the edge.
func (l requestLog) refused(r *http.Request) {
	l.write([]slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("fault", "edge limit"), slog.Int("status", http.StatusTooManyRequests),
	})
}

func (l requestLog) write(line []slog.Attr) {
	l.to.LogAttrs(context.Background(), slog.LevelInfo, "request", line...)
}
