// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
)

// The applications work with this file until the switch. It is a copy of the source, which
// is not changed, so that the verification can compare with it.
const liveFile = "live.db"

// bindLimit keeps statements small: the time that the driver needs for binding grows with
// the square of the number of parameters.
const bindLimit = 128

// makeLive creates the copy. A source that the demo has created is copied as a file, with
// its foreign keys; of a user's source, only the tables that are to be sharded are copied.
func makeLive(ctx context.Context, f folder, s *source, made bool) (*sql.DB, error) {
	if made {
		if err := copyFile(f.file(sourceFile), f.file(liveFile)); err != nil {
			return nil, err
		}
		return f.create(ctx, liveFile)
	}
	db, err := f.create(ctx, liveFile)
	if err != nil {
		return nil, err
	}
	if err := load(ctx, s, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // both are the demo's own
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                     // the file is only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// load fills db with the tables of the source as they are in its snapshot.
func load(ctx context.Context, s *source, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for _, t := range s.tables {
		if err := loadTable(ctx, s, tx, t); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func loadTable(ctx context.Context, s *source, tx *sql.Tx, t *table) error {
	if _, err := tx.ExecContext(ctx, t.createTable()); err != nil {
		return err
	}
	l := &loader{tx: tx, table: t}
	if err := eachRow(ctx, s.tx, len(t.columns), func(row []any) error { return l.add(ctx, row) }, t.selectAll(t.name)); err != nil {
		return err
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	// The next id is the one that the source would have given.
	if _, err := tx.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = ? WHERE name = ?", t.next-1, t.name); err != nil {
		return err
	}
	if t.by == t.key {
		return nil
	}
	_, err := tx.ExecContext(ctx, t.createIndex())
	return err
}

// loader collects rows into statements of several.
type loader struct {
	tx    *sql.Tx
	table *table
	args  []any
}

func (l *loader) add(ctx context.Context, row []any) error {
	l.args = append(l.args, row...)
	if len(l.args)+len(row) <= bindLimit {
		return nil
	}
	return l.flush(ctx)
}

func (l *loader) flush(ctx context.Context) error {
	n := len(l.args) / len(l.table.columns)
	if n == 0 {
		return nil
	}
	_, err := l.tx.ExecContext(ctx, l.table.insertRows(n), l.args...)
	l.args = l.args[:0]
	return err
}
