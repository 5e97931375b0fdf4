// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// CreateTables creates the tables of the file in one database, unsharded.
func (f *File) CreateTables(ctx context.Context, db *sql.DB) error {
	for _, t := range f.Tables {
		if _, err := db.ExecContext(ctx, t.Create); err != nil {
			return fmt.Errorf("table %q: %w", t.Name, err)
		}
	}
	return nil
}

// Try executes the statement in a transaction that it rolls back.
func (s Statement) Try(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(s.execute(ctx, tx), tx.Rollback())
}

// execute reads all rows, because some drivers execute a statement only as far as its rows are
// read.
func (s Statement) execute(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, s.Text, s.Args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // it has been read to its end
	for rows.Next() {
	}
	return rows.Err()
}
