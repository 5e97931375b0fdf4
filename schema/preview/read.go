// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// Statement is what the shards will do differently with one statement.
type Statement struct {
	Text   string          `json:"statement"` // with ? in place of its values
	Change sharding.Change `json:"-"`
	// Becomes is Change in words.
	Becomes string `json:"becomes"`
	// Times is how often processes have sent it since they found it.
	Times int64 `json:"times"`
	// Reason is why it will be refused, and what to do; "" for other changes.
	Reason string    `json:"reason,omitempty"`
	Found  time.Time `json:"found"` // when it was found first
	Seen   time.Time `json:"seen"`  // when a process that sent it last wrote
}

// Found is what all processes have written so far. Times are by the clock of the source.
type Found struct {
	// Statements are the worst first; of equal ones, the most frequent.
	Statements []Statement `json:"statements"`
	// Recorded is when a process last wrote; nil when none has, so that nothing is known.
	Recorded *time.Time `json:"recorded"`
	// Now is when the findings were read.
	Now time.Time `json:"now"`
	// Looked is when somebody last read the findings for the job, nil when nobody has.
	Looked *time.Time `json:"looked"`
	// Unseen is how many statements that will be refused were found since then.
	Unseen int64 `json:"unseen"`
}

// Refused is how many of the statements the shards will refuse.
func (f Found) Refused() (n int64) {
	for _, s := range f.Statements {
		if s.Change == sharding.WillBeRefused {
			n++
		}
	}
	return n
}

// Within returns the findings of the last time d: without the statements that no process has sent in it, such as those that
// were changed since. Recorded is nil if no process has written in it.
func (f Found) Within(d time.Duration) Found {
	since := f.Now.Add(-d)
	f.Statements = slices.DeleteFunc(slices.Clone(f.Statements), func(s Statement) bool { return s.Seen.Before(since) })
	if f.Recorded != nil && f.Recorded.Before(since) {
		f.Recorded = nil
	}
	return f
}

// Read returns what processes have written into the source so far, and when somebody read
// it for the job. It changes nothing. If the tables do not exist, no process has written
// anything.
func Read(ctx context.Context, source *sql.DB, job string) (Found, error) {
	t, err := openTable(ctx, source)
	if err != nil {
		return Found{}, wrap("ask the source", err)
	}
	found := Found{Statements: []Statement{}}
	var now int64
	if err := source.QueryRowContext(ctx, "SELECT "+t.clock()).Scan(&now); err != nil {
		return Found{}, wrap("read the source", err)
	}
	found.Now = time.Unix(now, 0).UTC()
	for _, read := range []func() error{
		func() error { return t.readStatements(ctx, &found) },
		func() error { return t.readLook(ctx, job, &found) },
	} {
		if err := read(); err != nil && !missing(err) {
			return Found{}, wrap("read the source", err)
		}
	}
	return found, nil
}

func (t table) readStatements(ctx context.Context, found *Found) error {
	return sqlrun.Each(ctx, t.db, func(rows *sql.Rows) error {
		var id string
		var s Statement
		var text, reason sql.NullString
		var first, last int64
		if err := rows.Scan(&id, &s.Change, &s.Times, &first, &last, &text, &reason); err != nil {
			return err
		}
		s.Text, s.Reason, s.Becomes = text.String, reason.String, s.Change.String()
		s.Found, s.Seen = time.Unix(first, 0).UTC(), time.Unix(last, 0).UTC()
		if s.Text == "" { // the row of the recorders
			found.Recorded = &s.Seen
			return nil
		}
		found.Statements = append(found.Statements, s)
		return nil
	}, "SELECT id, outcome, times, found, seen, statement, reason FROM "+statementTable+" WHERE outcome > 0 OR id = '' ORDER BY outcome DESC, times DESC, id")
}

func (t table) readLook(ctx context.Context, job string, found *Found) error {
	found.Unseen = found.Refused()
	var looked, refused int64
	err := t.db.QueryRowContext(ctx, dialect.Text(t.d, "SELECT looked, refused FROM "+lookTable+" WHERE job = ?"), job).Scan(&looked, &refused)
	if errors.Is(err, sql.ErrNoRows) || err == nil && looked == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	at := time.Unix(looked, 0).UTC()
	found.Looked, found.Unseen = &at, max(0, found.Unseen-refused)
	return nil
}

// NoteLook stores that somebody has read the findings for the job.
func NoteLook(ctx context.Context, source *sql.DB, job string, found Found) error {
	t, err := openTable(ctx, source)
	if err != nil {
		return wrap("ask the source", err)
	}
	note := func() error {
		if err := t.insert(ctx, lookTable, "job", "?", job); err != nil {
			return err
		}
		return t.run(ctx, "UPDATE "+lookTable+" SET looked = "+t.clock()+", refused = ? WHERE job = ?", found.Refused(), job)
	}
	err = note()
	if missing(err) {
		if err = t.create(ctx); err == nil {
			err = note()
		}
	}
	if err != nil {
		return wrap(fmt.Sprintf("note in %s that somebody looked", lookTable), err)
	}
	return nil
}
