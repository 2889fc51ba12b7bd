package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/meeting-minutes/minutes-go"
)

const schema = `
CREATE TABLE IF NOT EXISTS jobs (name TEXT PRIMARY KEY, job TEXT NOT NULL, -- as JSON
	state TEXT AS (job ->> 'state'), due INTEGER AS (job ->> 'due')) STRICT;
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (state, due);
CREATE TABLE IF NOT EXISTS states (meeting TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT;
UPDATE jobs SET job = json_set(job, '$.state', 'queued') WHERE state = 'running'; -- in a process that died`

// A job turns a recording into minutes. Its file is kept until it is done.
type job struct {
	Name    string `json:"name"` // the user's
	ID      string `json:"id"`   // ours, and the external id of the meeting
	Date    string `json:"date"`
	State   string `json:"state"`             // queued, running, done, deleted or failed
	Due     int64  `json:"due"`               // a Unix time; not before
	Meeting string `json:"meeting,omitempty"` // its id, unless it failed or was deleted
	Problem string `json:"problem,omitempty"` // the last error
	Minutes string `json:"minutes,omitempty"`
}

// table is the database of one process at a time. The recordings are files beside it.
type table struct {
	db  *sql.DB
	dir string
}

// openTable waits until no other process has the database, or ctx is done.
func openTable(ctx context.Context, dir string) (*table, error) {
	dirErr := os.MkdirAll(dir, 0o700)
	const settings = "_pragma=busy_timeout(500)&_pragma=locking_mode(EXCLUSIVE)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "jobs.db")+"?"+settings)
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, schema)
		for isBusy(err) {
			_, err = db.ExecContext(ctx, schema)
		}
	}
	return &table{db, dir}, errors.Join(dirErr, err)
}

// isBusy reports whether another process had the database for as long as busy_timeout.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_BUSY
}

func (t *table) path(j *job) string {
	return filepath.Join(t.dir, j.ID+filepath.Ext(filepath.Base(j.Name)))
}

// save stores the state of a job.
func (t *table) save(ctx context.Context, j *job) error {
	text, _ := json.Marshal(j) // strings and numbers
	_, err := t.do(ctx, `UPDATE jobs SET job = ? WHERE name = ?`, string(text), j.Name)
	return err
}

// do returns the only column of the first row that a statement returns, or nil without one.
func (t *table) do(ctx context.Context, statement string, args ...any) (text []byte, err error) {
	err = t.db.QueryRowContext(ctx, statement, args...).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return text, err
}

// states is the Client's Store: a row for each meeting that is under way.
type states struct{ *table }

func (s states) Load(ctx context.Context, id string) (state minutes.MeetingState, err error) {
	text, err := s.do(ctx, `SELECT state FROM states WHERE meeting = ?`, id)
	_ = json.Unmarshal(text, &state) // nothing without a row
	return state, err
}

// Save compares and writes in one statement; "{}" is the zero state.
func (s states) Save(ctx context.Context, id string, old, next minutes.MeetingState) (saved bool, err error) {
	before, _ := json.Marshal(old) // times alone
	after, _ := json.Marshal(next)
	changed, err := s.do(ctx, `INSERT INTO states SELECT ?1, ?3
		WHERE ?2 = coalesce((SELECT state FROM states WHERE meeting = ?1), '{}')
		ON CONFLICT DO UPDATE SET state = excluded.state RETURNING meeting`, id, string(before), string(after))
	return changed != nil, err
}

func (s states) Delete(ctx context.Context, id string) error {
	_, err := s.do(ctx, `DELETE FROM states WHERE meeting = ?`, id)
	return err
}
