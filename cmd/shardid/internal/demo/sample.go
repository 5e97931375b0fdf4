// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"slices"
)

// samplesPerTable is how many existing rows are used as the content of new ones.
const samplesPerTable = 400

// sample is a row of the source.
type sample struct {
	stored []any // as SQLite stores it
	read   []any // as the driver returns it
}

// takeSamples reads rows of t, spread evenly over its keys.
func takeSamples(ctx context.Context, s *source, t *table) ([]sample, error) {
	key, n := quote(t.key), len(t.columns)
	every := max(1, t.rows/samplesPerTable)
	var taken []sample
	err := eachRow(ctx, s.tx, 2*n, func(row []any) error {
		taken = append(taken, sample{stored: row[:n:n], read: row[n:]})
		return nil
	}, "SELECT "+t.selectColumns()+", "+t.columnList()+" FROM "+quote(t.name)+
		" WHERE "+key+" IN (SELECT k FROM (SELECT "+key+" AS k, ROW_NUMBER() OVER (ORDER BY "+key+") AS n FROM "+quote(t.name)+") WHERE n % ? = 0)"+
		" ORDER BY "+key+" LIMIT ?", every, samplesPerTable)
	return taken, err
}

// with returns the sample with the keys of a new row.
func (s sample) with(t *table, key, by int64) sample {
	out := sample{slices.Clone(s.stored), slices.Clone(s.read)}
	for _, values := range [][]any{out.stored, out.read} {
		values[t.keyAt] = key
		values[t.byAt] = by
	}
	return out
}
