// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// work is how many rows an inspection reads. The statements that read whole tables take
// most of the time.
type work struct {
	rows  map[string]int64 // estimated rows of each table of the source, by its name there
	total int64            // the rows of all tables, times how often they are read
}

// readings is how often the rows of a table are read: for its sharding key, for the columns
// of keys, and for the values on which the rule is tried. On MySQL they are read once more
// where a column may hold values that a copy would change.
const readings = 3

// expect adds the readings of a table to the total.
func (w *work) expect(ctx context.Context, s *backend.Session, name string) error {
	rows, _, err := openjob.Estimate(ctx, s, name)
	w.rows[name] = rows
	w.total += readings * rows
	return err
}

// hasRead reports one reading of a table.
func (i *inspection) hasRead(name string) { i.tell(name, i.work.rows[name], i.work.total) }
