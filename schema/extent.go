// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// extent is the range of the integers in a column.
type extent struct {
	empty   bool
	lowest  int64
	highest int64  // the largest int64 when beyond
	beyond  bool   // ids above the largest int64 exist
	next    uint64 // the lowest number above all ids, at least 1
}

// errNotInteger exists because SQLite stores values of any type in a column.
var errNotInteger = errors.New("a value is not an integer")

// readExtent reads the lowest and the highest value of a column. It uses two subqueries,
// each of which uses the key's index; with MIN and MAX in one, SQLite would scan the table.
func readExtent(ctx context.Context, s session, table, column string) (extent, error) {
	var low, high sql.NullString
	end := func(f string) string {
		return "(SELECT " + f + "(" + s.Quote(column) + ") FROM " + s.Quote(table) + ")"
	}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT "+end("MIN")+", "+end("MAX")).Scan(&low, &high)
	})
	if err != nil {
		return extent{}, err
	}
	e, err := parseExtent(low, high)
	if err != nil {
		return extent{}, fmt.Errorf("%s.%s: %w", table, column, err)
	}
	return e, nil
}

func parseExtent(low, high sql.NullString) (extent, error) {
	if !high.Valid {
		return extent{empty: true, next: 1}, nil
	}
	lowest, _, err := parseID(low.String)
	if err != nil {
		return extent{}, err
	}
	highest, unsigned, err := parseID(high.String)
	if err != nil {
		return extent{}, err
	}
	return extent{lowest: lowest, highest: highest, beyond: unsigned > math.MaxInt64, next: max(1, saturatingInc(unsigned))}, nil
}

// parseID returns an id as int64, limited to its range, and as uint64, 0 when negative.
func parseID(text string) (int64, uint64, error) {
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(min(u, math.MaxInt64)), u, nil
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, 0, errNotInteger
	}
	return i, 0, nil
}

func saturatingInc(u uint64) uint64 {
	if u == math.MaxUint64 {
		return u
	}
	return u + 1
}
