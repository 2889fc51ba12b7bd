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

	"github.com/meeting-minutes/minutes-go"
)

func routes(w *worker) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /recordings/{name}", w.put)
	mux.HandleFunc("POST /recordings/{name}/retry", func(rw http.ResponseWriter, r *http.Request) {
		_, err := w.db.ExecContext(r.Context(), `UPDATE jobs SET state = 'queued', due = 0 WHERE name = ? AND state = 'failed'`, r.PathValue("name"))
		w.show(rw, r, err)
	})
	mux.HandleFunc("GET /recordings/{name...}", func(rw http.ResponseWriter, r *http.Request) { w.show(rw, r, nil) })
	return mux
}

// put takes a recording. When it responds, the job survives the instance. A name that is known changes nothing.
func (w *worker) put(rw http.ResponseWriter, r *http.Request) {
	j := &job{name: r.PathValue("name"), id: rand.Text(), date: minutes.DateOf(time.Now())}
	if err := receive(r.Context(), w.path(j), r.Body); err != nil {
		_ = os.Remove(w.path(j)) // no job has it
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	added, err := w.db.ExecContext(r.Context(), `INSERT INTO jobs (name, id, date) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, j.name, j.id, j.date)
	if err == nil {
		if n, _ := added.RowsAffected(); n == 0 {
			_ = os.Remove(w.path(j)) // the job of this name has another
		}
	}
	w.show(rw, r, err)
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

// show responds with the job of a name, or with the latest thousand.
func (w *worker) show(rw http.ResponseWriter, r *http.Request, err error) {
	var text []byte
	readErr := w.db.QueryRowContext(r.Context(), `SELECT json_group_array(json_object('name', name, 'state', state, 'problem', problem, 'minutes', minutes))
		FROM (SELECT * FROM jobs WHERE ? IN ('', name) ORDER BY rowid DESC LIMIT 1000)`, r.PathValue("name")).Scan(&text)
	if err := errors.Join(err, readErr); err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(json.RawMessage(text)) // the user may have closed the connection
}
