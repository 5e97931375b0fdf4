// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"context"

	"github.com/shardid/shardid/internal/dialect"
)

// fences summarizes shard_fence, in which package slotstore stores what each shard accepts. Each change of it changes one of these sums:
// versions only rise, and when the rows of a slot have been deleted, its fence rises under the same version.
type fences struct{ rows, versions, fenced string }

// HasMoves reports whether a copy of a database has all changes that moves of slots had made in the database when HasMoves was called:
// the rows that were copied there, and the deletions after them. The copy must apply changes in their order. If the database
// cannot be asked, it reports false; an error is one of the copy.
func HasMoves(ctx context.Context, d dialect.Dialect, database, copied dialect.Querier) (bool, error) {
	want, err := readFences(ctx, d, database)
	switch {
	case dialect.FaultOf(err) == dialect.NoTable: // no slot has moved from or to the database
		return true, nil
	case err != nil:
		return false, nil //nolint:nilerr // said above
	}
	got, err := readFences(ctx, d, copied)
	if dialect.FaultOf(err) == dialect.NoTable { // it has not received the first move
		return false, nil
	}
	return err == nil && got == want, err
}

func readFences(ctx context.Context, d dialect.Dialect, from dialect.Querier) (f fences, err error) {
	err = from.QueryRowContext(ctx, dialect.Text(d, `SELECT COUNT(*), COALESCE(SUM("version"), 0), COALESCE(SUM("fenced"), 0) FROM "shard_fence"`)).Scan(&f.rows, &f.versions, &f.fenced)
	return f, err
}
