package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// A job is queued, done or failed. While an instance works on it, owner is that instance, and due is the end of its lease;
// otherwise due is the earliest time of the next attempt. So in both cases any instance may take a queued job at due.
const schema = `CREATE TABLE IF NOT EXISTS jobs (
	name TEXT PRIMARY KEY, id TEXT NOT NULL, date TEXT NOT NULL, -- the id is the external id of the meeting
	state TEXT NOT NULL DEFAULT 'queued', owner TEXT NOT NULL DEFAULT '', due INTEGER NOT NULL DEFAULT 0, -- in ms
	problem TEXT NOT NULL DEFAULT '', minutes TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (state, due);`

type job struct {
	name, id, date          string
	state, problem, minutes string // after an attempt
	due                     time.Time
}

// table is the database as one instance sees it. The recordings are files beside it.
type table struct {
	db      *sql.DB
	dir, me string // me is a name for this instance
	lease   time.Duration
}

func openTable(ctx context.Context, dir string, lease time.Duration) (*table, error) {
	dirErr := os.MkdirAll(dir, 0o700)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "jobs.db")+"?_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, schema)
	}
	return &table{db, dir, rand.Text(), lease}, errors.Join(dirErr, err)
}

func (t *table) path(j *job) string {
	return filepath.Join(t.dir, j.id+filepath.Ext(filepath.Base(j.name)))
}

// take takes a lease on a job that is due, or returns sql.ErrNoRows. No two instances can take the same job, because one
// statement finds and changes it.
func (t *table) take(ctx context.Context) (j job, err error) {
	now := time.Now()
	err = t.db.QueryRowContext(ctx, `UPDATE jobs SET owner = ?, due = ? WHERE name =
		(SELECT name FROM jobs WHERE state = 'queued' AND due <= ? ORDER BY due LIMIT 1) RETURNING name, id, date`,
		t.me, now.Add(t.lease).UnixMilli(), now.UnixMilli()).Scan(&j.name, &j.id, &j.date)
	return j, err
}

// renew extends the leases of all jobs that this instance works on.
func (t *table) renew(ctx context.Context) error {
	_, err := t.db.ExecContext(ctx, `UPDATE jobs SET due = ? WHERE owner = ?`, time.Now().Add(t.lease).UnixMilli(), t.me)
	return err
}

// finish stores what an attempt came to, and gives up the lease. If another instance has taken over, finish changes
// nothing and returns sql.ErrNoRows, because that instance will store what its own attempt comes to.
func (t *table) finish(ctx context.Context, j *job) error {
	return t.db.QueryRowContext(ctx, `UPDATE jobs SET owner = '', state = ?, due = ?, problem = ?, minutes = ?
		WHERE id = ? AND owner = ? RETURNING name`, j.state, j.due.UnixMilli(), j.problem, j.minutes, j.id, t.me).Scan(&j.name)
}
