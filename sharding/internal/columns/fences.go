// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"context"

	"github.com/shardid/shardid/internal/dialect"
)

// fences is what each change of the fences of package slotstore changes: their versions only rise, and when the rows of a slot have been
// deleted, its fence rises under the same version.
type fences struct{ rows, versions, fenced string }

// HasMoves reports whether a copy of a database has all changes that moves of slots had made in the database when HasMoves was called:
// the rows that were copied there, and the deletions after them. The copy must apply changes in their order.
func HasMoves(ctx context.Context, d dialect.Dialect, database, copied dialect.Querier) (bool, error) {
	want, err := readFences(ctx, d, database)
	if dialect.FaultOf(err) == dialect.NoTable {
		return true, nil // no slot has moved from or to the database
	}
	if err != nil {
		return false, err
	}
	got, err := readFences(ctx, d, copied)
	if dialect.FaultOf(err) == dialect.NoTable {
		return false, nil
	}
	return err == nil && got == want, err
}

func readFences(ctx context.Context, d dialect.Dialect, from dialect.Querier) (f fences, err error) {
	err = from.QueryRowContext(ctx, dialect.Text(d, `SELECT COUNT(*), COALESCE(SUM("version"), 0), COALESCE(SUM("fenced"), 0) FROM "shard_fence"`)).Scan(&f.rows, &f.versions, &f.fenced)
	return f, err
}
