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

// maxExamples is how many rows a finding names.
const maxExamples = 5

// tally counts the wrong rows of one table.
type tally struct {
	rows        int64
	misplaced   count
	unplaceable count
	genes       map[string]*count // by column
}

// count is a number of rows and the first of them.
type count struct {
	n        int64
	examples []Example
}

func (c *count) add(e Example) {
	c.n++
	if len(c.examples) < maxExamples {
		c.examples = append(c.examples, e)
	}
}

// rows checks the keys of a table: by SQL where the rule can be written in SQL, otherwise
// by reading them.
func (d *databaseScan) rows(ctx context.Context, s session, scan *tableScan) error {
	columns, ok := scan.keyColumns()
	if !ok {
		return nil
	}
	moving := append(scan.table.Map.Shared(), scan.table.Map.Held()...)
	check := rowCheck{session: s, tableScan: scan, columns: columns, moving: moving, limit: d.config.MaxRows}
	count := check.read
	if check.inSQL() {
		count = check.count
	}
	t, err := count(ctx)
	if err != nil {
		return err
	}
	scan.Rows, scan.Misplaced = t.rows, t.misplaced.n
	if scan.All, err = check.all(ctx, t.rows); err != nil {
		return err
	}
	scan.report(t)
	return nil
}

// routing returns the sharding key and the columns that carry its slot.
func (scan *tableScan) routing() []string {
	if scan.table == nil {
		return nil
	}
	names := []string{scan.table.Key}
	for _, also := range scan.table.Also {
		names = append(names, also.Column)
	}
	return names
}

// keyColumns finds the columns that lead to a shard.
func (scan *tableScan) keyColumns() ([]column, bool) {
	names := scan.routing()
	var columns []column
	for _, name := range names {
		col, ok := scan.facts.column(name)
		if !ok {
			scan.find(MissingColumn, Error, fmt.Sprintf("there is no column %s, by which the router finds rows, or the user may not see it", name), "add it, grant SELECT on it, or correct the router's tables")
			continue
		}
		columns = append(columns, col)
	}
	return columns, len(columns) == len(names)
}

func (scan *tableScan) report(t tally) {
	if n := t.misplaced.n; n > 0 {
		scan.find(MisplacedRows, Error, rowsAre(n)+" here that the router looks for in another table",
			"move each to the table it belongs to, within one transaction where that is in the same database", t.misplaced.examples...)
	}
	if n := t.unplaceable.n; n > 0 {
		scan.find(UnplaceableRows, Error, fmt.Sprintf("%s here whose %s is NULL or no sharding key", rowsAre(n), scan.table.Key),
			"give them a key and move them, or keep them in another table", t.unplaceable.examples...)
	}
	for _, also := range scan.table.Also {
		if c := t.genes[also.Column]; c != nil && c.n > 0 {
			scan.find(GeneDiffers, Error, fmt.Sprintf("%s here whose %s leads to another slot than %s", rowsAre(c.n), also.Column, scan.table.Key),
				fmt.Sprintf("raise From of %s above these values, or give the rows new ones", also.Column), c.examples...)
		}
	}
	if !scan.All {
		scan.find(PartlyChecked, Info, fmt.Sprintf("only %d rows were looked at", scan.Rows), "allow more rows to see all of them")
	}
}

func rowsAre(n int64) string {
	if n == 1 {
		return "1 row is"
	}
	return fmt.Sprintf("%d rows are", n)
}

// rowCheck checks the first limit rows of a table; all rows if limit is negative.
type rowCheck struct {
	session
	*tableScan

	columns []column        // the key, then those of Also
	moving  []sharding.Slot // slots whose rows may lie in two places
	limit   int64
}

// part is the rows that are checked. It is a subquery only where limit cuts them, because
// the database copies the rows of a subquery.
func (c rowCheck) part() string {
	if c.limit < 0 {
		return c.Quote(c.facts.name)
	}
	return fmt.Sprintf("(SELECT %s FROM %s LIMIT %d) AS part", c.selected(), c.Quote(c.facts.name), c.limit)
}

// all reports whether the table has no further rows.
func (c rowCheck) all(ctx context.Context, rows int64) (bool, error) {
	if c.limit < 0 || rows < c.limit {
		return true, nil
	}
	var others int
	err := c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 AS one FROM %s LIMIT 1 OFFSET %d) AS others", c.Quote(c.facts.name), c.limit)).Scan(&others)
	return others == 0, err
}

// selected is the list of the columns that are read.
func (c rowCheck) selected() string {
	quoted := make([]string, len(c.columns))
	for i, col := range c.columns {
		quoted[i] = c.Quote(col.name)
	}
	return strings.Join(quoted, ", ")
}

// read selects the keys and applies the rule to each in Go.
func (c rowCheck) read(ctx context.Context) (tally, error) {
	t := tally{genes: map[string]*count{}}
	values := make([]any, len(c.columns))
	into := make([]any, len(c.columns))
	for i := range values {
		into[i] = &values[i]
	}
	err := c.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		t.rows++
		c.check(&t, values)
		return nil
	}, "SELECT "+c.selected()+" FROM "+c.part())
	return t, err
}

func (c rowCheck) check(t *tally, values []any) {
	slot, err := c.table.Slot(values[0])
	if err != nil {
		t.unplaceable.add(Example{Key: keyText(values[0])})
		return
	}
	if target, _ := c.table.Map.Target(slot); !c.takes(target, slot) {
		t.misplaced.add(c.example(values[0]))
	}
	for i, also := range c.table.Also {
		other, err := also.Rule.Slot(values[i+1])
		if below(values[i+1], also.From) || err == nil && other == slot {
			continue
		}
		c.gene(t, also.Column).add(Example{Key: keyText(values[i+1])})
	}
}

func (c rowCheck) gene(t *tally, column string) *count {
	if t.genes[column] == nil {
		t.genes[column] = &count{}
	}
	return t.genes[column]
}

// takes reports whether rows of a slot may lie here, where t is the slot's target. While a
// slot is being moved, its rows may lie in two places.
func (c rowCheck) takes(t sharding.Target, s sharding.Slot) bool {
	return t.DB == c.Database && t.Table == c.Physical || slices.Contains(c.moving, s)
}

func (c rowCheck) example(key any) Example {
	e := Example{Key: keyText(key)}
	if slot, err := c.table.Slot(key); err == nil {
		target, _ := c.table.Map.Target(slot)
		e.Belongs = target.String()
	}
	return e
}

// below reports whether the id carries no slot: it is under From, or NULL.
func below(id any, from int64) bool {
	if id == nil {
		return true
	}
	number, _, err := parseID(keyText(id))
	return !errors.Is(err, errNotInteger) && number < from
}

func keyText(key any) string {
	switch key := key.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(key)
	}
	return fmt.Sprint(key)
}
