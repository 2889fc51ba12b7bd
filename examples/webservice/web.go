package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/meeting-minutes/minutes-go"
)

func routes(q *queue) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /recordings/{name}", q.put)
	mux.HandleFunc("POST /recordings/{name}/retry", q.retry)
	mux.HandleFunc("GET /recordings/{name...}", func(w http.ResponseWriter, r *http.Request) { q.show(w, r, nil, nil) })
	mux.Handle("GET /metrics", promhttp.Handler())
	return mux
}

// put takes a recording. When it responds, the job survives the process.
func (q *queue) put(w http.ResponseWriter, r *http.Request) {
	j := &job{Name: r.PathValue("name"), ID: rand.Text(), Date: minutes.DateOf(time.Now()), State: "queued"}
	if err := receive(r.Context(), q.path(j), r.Body); err != nil {
		_ = os.Remove(q.path(j)) // no job has it
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, _ := json.Marshal(j)
	added, err := q.do(r.Context(), `INSERT INTO jobs (name, job) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING name`, j.Name, string(text))
	if err == nil && added == nil {
		_ = os.Remove(q.path(j)) // there is a job of this name
	}
	q.show(w, r, added, err)
}

// receive writes a recording to disk, and checks that it is one.
func receive(ctx context.Context, path string, body io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(body, minutes.MaxRecordingSize+1))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	recording, err := minutes.FromFile(path)(ctx)
	return errors.Join(err, recording.Close())
}

// retry queues a job again that ended without minutes.
func (q *queue) retry(w http.ResponseWriter, r *http.Request) {
	changed, err := q.do(r.Context(), `UPDATE jobs SET job = json_set(job, '$.state', 'queued', '$.due', 0)
		WHERE name = ? AND state IN ('deleted', 'failed') RETURNING name`, r.PathValue("name"))
	q.show(w, r, changed, err)
}

// show responds with the job of a name, or the latest thousand: 202 if the request queued it.
func (q *queue) show(w http.ResponseWriter, r *http.Request, queued []byte, err error) {
	text, readErr := q.do(r.Context(), `SELECT json_group_array(json(job)) FROM
		(SELECT job FROM jobs WHERE ? IN ('', name) ORDER BY rowid DESC LIMIT 1000)`, r.PathValue("name"))
	if err := errors.Join(err, readErr); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(map[bool]int{true: http.StatusAccepted, false: http.StatusOK}[queued != nil])
	_ = json.NewEncoder(w).Encode(json.RawMessage(text)) // the user may have closed the connection
}
