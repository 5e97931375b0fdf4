// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// parents reports rows that refer to rows which are not on their shard, for each of the table's Parents.
func (d *databaseScan) parents(ctx context.Context, s session, c catalog, scan *tableScan) error {
	for _, p := range scan.table.Parents {
		parent := d.parentOf(scan, p)
		if parent == "" {
			continue
		}
		if _, ok := scan.facts.column(p.Column); !ok {
			scan.find(MissingColumn, Error, fmt.Sprintf("there is no column %s, which refers to %s, or the user may not see it", p.Column, p.Table),
				"add it, grant SELECT on it, or correct the Parents of the router's table")
			continue
		}
		facts, err := c.table(ctx, parent)
		if errors.Is(err, ErrNoTable) { // it is a finding by itself
			continue
		} else if err != nil {
			return err
		}
		if _, ok := facts.column(p.ParentID()); !ok {
			scan.find(MissingColumn, Error, fmt.Sprintf("%s has no column %s, to which %s refers, or the user may not see it", parent, p.ParentID(), p.Column),
				"add it, grant SELECT on it, or correct the Parents of the router's table")
			continue
		}
		n, examples, err := scan.orphans(ctx, s, p, parent, d.config.MaxRows)
		if err != nil {
			return err
		}
		if n > 0 {
			scan.find(MissingParent, Warning, fmt.Sprintf("%s here whose %s is no %s of %s; a query that joins them with rows of another shard does not find those", rowsAre(n), p.Column, p.ParentID(), parent),
				"move the rows to the shards of their parents, delete those of deleted parents, and set "+p.Column+" to NULL where there is no parent", examples...)
		}
	}
	return nil
}

// parentOf returns the physical table with the parents of a table's rows, "" if the parent is not scanned. The targets of a
// group have one order.
func (d *databaseScan) parentOf(scan *tableScan, p sharding.Parent) string {
	i := slices.IndexFunc(d.tables, func(other *tableScan) bool { return other.table != nil && strings.EqualFold(other.Table, p.Table) })
	at := slices.Index(scan.table.Map.Targets(), sharding.Target{DB: scan.Database, Table: scan.Physical})
	if i < 0 || at < 0 {
		return ""
	}
	return d.tables[i].table.Map.Targets()[at].Table
}

// orphans counts the rows without a parent among the first most rows, of all rows if most is negative, and returns what some
// of them refer to.
func (scan *tableScan) orphans(ctx context.Context, s session, p sharding.Parent, parent string, most int64) (n int64, examples []Example, err error) {
	column, rows := s.Quote(p.Column), s.Quote(scan.facts.name)
	if most >= 0 {
		rows = fmt.Sprintf("(SELECT %s FROM %s LIMIT %d)", column, rows, most)
	}
	from := fmt.Sprintf(" FROM %s AS child WHERE child.%s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %s AS parent WHERE parent.%s = child.%s)",
		rows, column, s.Quote(parent), s.Quote(p.ParentID()), column)
	if err := s.QueryRowContext(ctx, "SELECT COUNT(*)"+from).Scan(&n); err != nil || n == 0 {
		return 0, nil, err
	}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var id any
		err := rows.Scan(&id)
		examples = append(examples, Example{Key: keyText(id)})
		return err
	}, fmt.Sprintf("SELECT DISTINCT child.%s%s ORDER BY 1 LIMIT %d", column, from, maxExamples))
	return n, examples, err
}
