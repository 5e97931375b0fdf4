// SPDX-License-Identifier: Apache-2.0

package sqlrun

import (
	"context"
	"database/sql"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
)

// Execer is the part of *sql.DB, *sql.Conn and *sql.Tx that Create needs.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// createdConcurrently are the SQLSTATEs with which PostgreSQL answers IF NOT EXISTS when another process
// creates the same table: it checks before it inserts the table's catalog entries. They are a
// unique violation, and the errors that the type or the table exists.
var createdConcurrently = []string{"23505", "42710", "42P07"}

// Create executes a CREATE … IF NOT EXISTS that several processes may execute at once.
func Create(ctx context.Context, on Execer, text string) error {
	create := func() error {
		return Retry(ctx, nil, func() error {
			_, err := on.ExecContext(ctx, text)
			return err
		})
	}
	err := create()
	if slices.Contains(createdConcurrently, dialect.SQLState(err)) {
		return create()
	}
	return err
}
