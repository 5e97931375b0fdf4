// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/preflight"
)

// SilentAfter is how long the leading runner may write nothing until it counts as dead. It
// writes every two seconds.
const SilentAfter = 15 * time.Second

// Status is the state of a job and of its runner.
type Status struct {
	Progress

	// Runner is the runner that led last. It is nil when none has written anything: the job
	// has not begun, or its runner may not write to the source.
	Runner *Runner `json:"runner"`
	// Request is how many seconds ago the last request to lead the job for a moment has ended (see Ask), as a Cutover does
	// that lets a runner make room. It is negative while the request lasts, and nil when there was none.
	Request *int64 `json:"request_ended"`
	// Lag is an upper bound for the age, in seconds, of the oldest change that waits to be
	// applied: to the shards before the switch, to the source after it. It is precise to the
	// two seconds between a runner's writes. It is 0 when no change waits, and nil when it is
	// unknown: for changes made before any runner had caught up.
	Lag *int64 `json:"lag_seconds"`
	// Left is how long the copy will take, in seconds, at the speed of the last minute; nil
	// when nothing is copied, or the speed is unknown.
	Left *int64 `json:"eta_seconds"`
	// Changed says why no runner with this configuration can go on: a table or the configuration is not what it was
	// when the job began. It says what to do. It is "" if nothing has changed, or a runner leads, which ends with
	// ErrChanged.
	Changed string `json:"changed,omitempty"`
	// Oldest is the longest open transaction of others on the source. It is nil when there is
	// none, when OldestUnknown has a reason, and on SQLite, which does not show transactions.
	Oldest *Transaction `json:"oldest_transaction"`
	// OldestUnknown says why the server does not show transactions, and what to do.
	OldestUnknown string `json:"oldest_transaction_unknown,omitempty"`
	// Switches are the last twenty switches in which writers waited, the newest first.
	Switches []PastSwitch `json:"switches,omitempty"`
}

// Runner is the runner that led last. Times are those of the source's clock.
type Runner struct {
	Host     string `json:"host"`
	PID      int64  `json:"pid"`
	Epoch    int64  `json:"epoch"`
	Leads    bool   `json:"leads"`     // heard within SilentAfter, and has not ended
	Silent   int64  `json:"silent"`    // seconds since its last write
	Leading  int64  `json:"leading"`   // seconds from when it began to lead until its last write
	Does     string `json:"does"`      // what it did at its last write, "" when it has ended
	Cause    string `json:"throttled"` // the last answer of Config.Cause, "" when not throttled
	Copied   int64  `json:"rows_per_second"`
	Followed int64  `json:"changes_per_second"`

	caught int64 // how long ago all changes had been applied, -1 if unknown
}

// Transaction is an open transaction on the source.
type Transaction struct {
	Connection int64 `json:"connection"` // as KILL takes it
	Seconds    int64 `json:"seconds"`    // since it began
}

// NeedsRunner reports whether the phase of the job needs a runner, and none is active.
func (s Status) NeedsRunner() bool {
	switch s.Phase {
	case PhaseNone, PhaseFinalized, PhaseAborted:
		return false
	}
	return s.Runner == nil || !s.Runner.Leads
}

// Status reads the state of the job and of its runner. It changes nothing, needs no runner,
// and may be called from any host.
func (j *Job) Status(ctx context.Context) (Status, error) {
	p, err := j.Progress(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{Progress: p}
	err = j.atSource(ctx, func(s *backend.Session) (err error) {
		if st.Runner, err = runner(ctx, s, j.cfg.Name); err != nil {
			return err
		}
		if st.Request, err = lastRequest(ctx, s, j.cfg.Name); err != nil {
			return err
		}
		if st.Switches, err = pastSwitches(ctx, s, j.cfg.Name); err != nil {
			return err
		}
		st.Oldest, st.OldestUnknown, err = oldestTransaction(ctx, s)
		return err
	})
	if err != nil {
		return Status{}, err
	}
	st.estimate()
	if st.Changed, err = changed(ctx, j, st); err != nil {
		return Status{}, err
	}
	return st, nil
}

// changed returns Status.Changed. It asks nothing while a runner leads, which may be renaming tables.
func changed(ctx context.Context, j *Job, st Status) (string, error) {
	behind := st.Phase == PhaseSwitched
	if !st.NeedsRunner() || !behind && st.Phase != PhaseCopying && st.Phase != PhaseFollowing {
		return "", nil
	}
	w, err := j.open(ctx)
	if err != nil {
		return "", fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.Close()
	if err = w.sameSetup(ctx); err == nil {
		err = w.CheckSame(ctx, behind)
	}
	if !errors.Is(err, ErrChanged) { // a runner says what else is wrong, and waits for a database that is away
		return "", nil
	}
	return strings.TrimPrefix(err.Error(), ErrChanged.Error()+": "), nil
}

// estimate computes the fields that depend on others.
func (s *Status) estimate() {
	switch s.Phase {
	case PhaseNone, PhaseFinalized, PhaseAborted:
		return
	}
	switch {
	case s.Backlog == 0:
		s.Lag = new(int64)
	case s.Runner != nil && s.Runner.caught >= 0:
		s.Lag = &s.Runner.caught
	}
	if s.Phase != PhaseCopying || s.NeedsRunner() || s.Runner.Copied == 0 {
		return
	}
	var rows float64
	for _, t := range s.Tables {
		rows += float64(t.Rows) * (1 - t.Copied)
	}
	left := int64(rows) / s.Runner.Copied
	s.Left = &left
}

// runner reads what the leading runner wrote last.
func runner(ctx context.Context, s *backend.Session, job string) (*Runner, error) {
	there, err := s.Database.Exists(ctx, s, lead.RunnerTable)
	if err != nil || !there {
		return nil, err
	}
	var r Runner
	var host, does, cause sql.NullString
	err = s.QueryRowContext(ctx, withClock(s.Database, "SELECT host, pid, epoch, doing, cause, "+now+" - heard, heard - began, copied, followed, CASE WHEN caught = 0 THEN -1 ELSE "+now+" - caught END"+
		" FROM "+lead.RunnerTable+" WHERE job = ? AND heard > 0"), job).
		Scan(&host, &r.PID, &r.Epoch, &does, &cause, &r.Silent, &r.Leading, &r.Copied, &r.Followed, &r.caught)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no runner has written yet
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", lead.RunnerTable, err)
	}
	r.Host, r.Does, r.Cause = host.String, does.String, cause.String
	r.Leads = does.Valid && r.Silent <= int64(SilentAfter.Seconds())
	return &r, nil
}

// oldestTransaction finds the longest open transaction of the server, except that of its
// own connection, or says why it is unknown.
func oldestTransaction(ctx context.Context, s *backend.Session) (t *Transaction, unknown string, err error) {
	found, err := preflight.Oldest(ctx, s)
	switch {
	case dialect.FaultOf(err) == dialect.NoRight:
		return nil, "not shown to this user; GRANT PROCESS ON *.* to it", nil
	case errors.Is(err, preflight.ErrNotListed):
		return nil, err.Error(), nil
	case err != nil || found == nil:
		return nil, "", err
	}
	return &Transaction{Connection: found.Connection, Seconds: found.Seconds}, "", nil
}
