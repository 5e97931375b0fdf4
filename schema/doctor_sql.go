// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// inSQL reports whether the database can compute the slots by itself: the columns are
// integers and the rules can be written in SQL.
func (c rowCheck) inSQL() bool {
	for i, col := range c.columns {
		if _, ok := c.slotSQL(i, 1); !ok || col.max == 0 {
			return false
		}
	}
	return true
}

// rule returns the rule of the i-th column.
func (c rowCheck) rule(i int) sharding.Rule {
	if i == 0 {
		return c.table.Rule
	}
	return c.table.Also[i-1].Rule
}

// slotSQL is the slot of the i-th column modulo n.
func (c rowCheck) slotSQL(i, n int) (string, bool) {
	value := c.Quote(c.columns[i].name)
	if c.Name() == "postgres" {
		value = "CAST(" + value + " AS BIGINT)"
	}
	return sharding.Describe(c.rule(i)).SQL(value, n)
}

// condition is an SQL condition of wrong rows, and where they are counted.
type condition struct {
	sql   string
	shown int // index of the column whose value is shown
	into  *count
}

// count has the database count wrong rows, and reads examples of them.
func (c rowCheck) count(ctx context.Context) (tally, error) {
	t := tally{genes: map[string]*count{}}
	conditions := c.conditions(&t)
	selected := []string{"COUNT(*)"}
	into := []any{&t.rows}
	for i := range conditions {
		selected = append(selected, "COALESCE(SUM(CASE WHEN "+conditions[i].sql+" THEN 1 ELSE 0 END), 0)")
		into = append(into, &conditions[i].into.n)
	}
	if err := c.QueryRowContext(ctx, "SELECT "+strings.Join(selected, ", ")+" FROM "+c.part()).Scan(into...); err != nil {
		return t, err
	}
	for _, cond := range conditions {
		if cond.into.n == 0 {
			continue
		}
		if err := c.findExamples(ctx, cond); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (c rowCheck) conditions(t *tally) []condition {
	unplaceable := c.notInteger(0)
	all := []condition{{unplaceable, 0, &t.unplaceable}}
	if elsewhere, some := c.elsewhere(); some {
		all = append(all, condition{"NOT (" + unplaceable + ") AND " + elsewhere, 0, &t.misplaced})
	}
	for i, also := range c.table.Also {
		differs := fmt.Sprintf("NOT (%s) AND NOT (%s) AND %s >= %d AND %s <> %s",
			unplaceable, c.notInteger(i+1), c.Quote(c.columns[i+1].name), also.From, c.slot(0), c.slot(i+1))
		all = append(all, condition{differs, i + 1, c.gene(t, also.Column)})
	}
	return all
}

// notInteger is needed because SQLite keeps values of any type in a column.
func (c rowCheck) notInteger(i int) string {
	column := c.Quote(c.columns[i].name)
	if c.Name() == "sqlite" {
		return "typeof(" + column + ") <> 'integer'"
	}
	return column + " IS NULL"
}

// slot is the slot of the i-th column, as an expression.
func (c rowCheck) slot(i int) string {
	expression, _ := c.slotSQL(i, c.rule(i).Slots())
	return expression
}

// elsewhere is true for keys that belong to other targets; some is false when there are no
// others.
func (c rowCheck) elsewhere() (condition string, some bool) {
	targets := c.table.Cycle()
	if len(c.moving) > 0 {
		targets = slices.Repeat(targets, c.table.Rule.Slots()/len(targets))
	}
	var here []string
	for slot, target := range targets {
		if c.takes(target, sharding.Slot(slot)) {
			here = append(here, strconv.Itoa(slot))
		}
	}
	if len(here) == 0 { // a target without slots takes no rows
		return "1 = 1", true
	}
	expression, _ := c.slotSQL(0, len(targets))
	return expression + " NOT IN (" + strings.Join(here, ", ") + ")", len(here) < len(targets)
}

func (c rowCheck) findExamples(ctx context.Context, cond condition) error {
	return c.each(ctx, func(rows *sql.Rows) error {
		var key any
		if err := rows.Scan(&key); err != nil {
			return err
		}
		e := c.example(key)
		if cond.shown > 0 {
			e.Belongs = ""
		}
		cond.into.examples = append(cond.into.examples, e)
		slices.SortFunc(cond.into.examples, func(a, b Example) int { return strings.Compare(a.Key, b.Key) })
		return nil
	}, fmt.Sprintf("SELECT %s FROM %s WHERE %s LIMIT %d", c.Quote(c.columns[cond.shown].name), c.part(), cond.sql, maxExamples))
}
