// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Ids are BIGINT on the shards, whatever they are on the source. An expression over one may
// overflow there where it did not on the source, or the other way round, and its result may
// be too large for its column. Such an expression is tried on ids, with the other values of
// a row that exists.

// idColumn is a column that is BIGINT on the shards, and how SQL makes its values.
type idColumn struct {
	name    string
	most    int64  // what the source's type holds
	onShard string // casts to the type on the shards; %s is the value
	here    string // casts to the type of the source
}

// tryExpressions tries the expressions of a table that use ids. SQLite does not say which it
// has, and has integers of 64 bits alone.
func tryExpressions(ctx context.Context, p probe, t *openjob.Table) error {
	if p.Database.Name() == "sqlite" {
		return nil
	}
	p.shape = t.Table
	all, err := expressionsOf(ctx, p)
	if err != nil {
		return err
	}
	for _, name := range t.Widened {
		c := idColumn{}
		for _, e := range all {
			if !e.uses(p.Database, name) {
				continue
			}
			if c.name == "" {
				if c, err = newIDColumn(ctx, p, name); err != nil {
					return err
				}
			}
			try := trial{p, c, e, all}
			if rewrites(t, name) {
				err = try.future(ctx, 0)
			} else {
				err = try.run(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rewrites reports whether the column gets new ids on the shards.
func rewrites(t *openjob.Table, column string) bool {
	for i, r := range t.Rewrites {
		if r != nil && strings.EqualFold(t.Columns[i].Name, column) {
			return true
		}
	}
	return false
}

// uses reports whether the expression may contain the column.
func (e computed) uses(d dialect.Dialect, column string) bool {
	if strings.Contains(e.text, d.Quote(column)) {
		return true
	}
	return d.Name() == "postgres" && strings.Contains(e.text, column) // which quotes only some names
}

func newIDColumn(ctx context.Context, p probe, name string) (c idColumn, err error) {
	column, err := dialect.WholeNumbers(ctx, p, p.Database, p.shape.Name, name)
	c = idColumn{name: name, most: column.Most, onShard: "CAST(%s AS SIGNED)", here: "CAST(%s AS SIGNED)"}
	if c.most == 0 {
		c.most = math.MaxInt64
	}
	switch {
	case p.Database.Name() == "postgres":
		c.onShard, c.here = "CAST(%s AS bigint)", "CAST(%s AS "+column.Type+")"
	case strings.Contains(strings.ToLower(column.Type), "unsigned"), strings.Contains(strings.ToLower(column.Type), "zerofill"):
		c.here = "CAST(%s AS UNSIGNED)"
	}
	return c, err
}

// trial is an expression that is tried on values of an id.
type trial struct {
	probe

	id  idColumn
	of  computed
	all []computed
}

// run tries the present ids, and then those that are to come.
func (t trial) run(ctx context.Context) error {
	highest, blocked, err := t.present(ctx)
	if blocked || err != nil {
		return err
	}
	return t.future(ctx, max(highest, 0))
}

// future tries ids above one, on the shards and on the way back from them.
func (t trial) future(ctx context.Context, from int64) error {
	shards, why, err := t.reach(ctx, t.id.onShard, from, math.MaxInt64)
	if err != nil {
		return err
	}
	if why != "" {
		t.later(Warn, fmt.Sprintf("%s uses %s, and does not allow ids above %d on the shards: %s", t.of.what, t.id.name, shards, why),
			"let it take every BIGINT, or drop it, or make sure that no generated id is above that number")
	}
	source, why, err := t.reach(ctx, t.id.here, from, min(t.id.most, shards))
	if err == nil && why != "" {
		t.add(ComputedID, Warn, fmt.Sprintf("%s uses %s, and on the source does not allow ids above %d, which the shards do: a rollback could not bring such rows back: %s", t.of.what, t.id.name, source, why),
			"let it take every BIGINT, or drop it, or make sure that no id is above that number before finalize")
	}
	return err
}

// later adds a finding that holds for shards whose tables the job creates.
func (t trial) later(severity, message, fix string) {
	conf := t.settings().Name
	t.computed[conf] = append(t.computed[conf], Finding{Code: ComputedID, Severity: severity, Table: t.shape.Name, Message: message, Fix: fix})
}

// present tries the rows with the lowest and the highest id, which the shards have to
// accept and for which they have to compute the same.
func (t trial) present(ctx context.Context) (highest int64, blocked bool, err error) {
	for _, order := range []string{"ASC", "DESC"} {
		id, here, why, err := t.read(ctx, t.from("%s", order))
		if err != nil || why != "" || !id.Valid { // a check of MariaDB may be younger than the row
			return 0, false, err
		}
		highest = id.Int64
		_, there, why, err := t.read(ctx, t.from(t.id.onShard, order))
		if err != nil {
			return 0, false, err
		}
		if why == "" && here != there {
			why = fmt.Sprintf("the result is %s there, not %s", textOf(there), textOf(here))
		}
		if why != "" {
			t.later(Block, fmt.Sprintf("%s uses %s, which is BIGINT on the shards, and would fail or have another value there, as in the row with %[2]s = %[3]d: %[4]s", t.of.what, t.id.name, id.Int64, why),
				"let it have the same value for every BIGINT, or drop it, or create the shards' tables by hand")
			return 0, true, nil
		}
	}
	return highest, false, nil
}

func textOf(s sql.NullString) string {
	if !s.Valid {
		return "NULL"
	}
	return "'" + s.String + "'"
}

// reach is the highest id up to which the expression can be computed, and why it cannot be
// for the next one: "" if all can.
func (t trial) reach(ctx context.Context, cast string, from, to int64) (highest int64, why string, err error) {
	try := func(id int64) (string, error) {
		_, value, why, err := t.read(ctx, t.with(fmt.Sprintf(cast, strconv.FormatInt(id, 10))))
		if why == "" && "'"+value.String+"'" == refuses {
			why = "its result is not allowed"
		}
		return why, err
	}
	why, err = try(to)
	if why == "" || err != nil {
		return to, "", err
	}
	for fails := to; fails-from > 1; {
		middle := from + (fails-from)/2
		not, err := try(middle)
		if err != nil {
			return 0, "", err
		}
		if not == "" {
			from = middle
		} else {
			fails, why = middle, not
		}
	}
	return from, why, nil
}

// from selects the expression for the row with the lowest or highest id, which is cast.
func (t trial) from(cast, order string) string {
	id, of := t.Database.Quote(t.id.name), t.Database.Quote(t.shape.Name)
	value := fmt.Sprintf(cast, of+"."+id)
	return fmt.Sprintf("SELECT %s, %s FROM (SELECT %s FROM %s WHERE %[5]s IS NOT NULL ORDER BY %[4]s.%[5]s %[6]s LIMIT 1) AS %[4]s",
		id, t.of.shown, strings.Join(append(t.others(of), value+" AS "+id), ", "), of, id, order)
}

// with selects the expression for an id, with the other values of the row with the highest
// id; without rows, of NULLs.
func (t trial) with(id string) string {
	column, of := t.Database.Quote(t.id.name), t.Database.Quote(t.shape.Name)
	others := strings.Join(append(t.others(of), "1 AS shardid_one"), ", ")
	return fmt.Sprintf("SELECT 0, %s FROM (SELECT shardid_tried.id AS %s, shardid_row.* FROM (SELECT %s AS id) AS shardid_tried LEFT JOIN (SELECT %s FROM %s ORDER BY %[5]s.%[2]s DESC LIMIT 1) AS shardid_row ON true) AS %[5]s",
		t.of.shown, column, id, others, of)
}

// others are the table's other columns.
func (t trial) others(of string) (all []string) {
	for _, c := range t.shape.Columns {
		if !strings.EqualFold(c.Name, t.id.name) {
			all = append(all, of+"."+t.Database.Quote(c.Name))
		}
	}
	for _, e := range t.all {
		if e.column != "" && e.column != t.of.column {
			all = append(all, of+"."+t.Database.Quote(e.column))
		}
	}
	return all
}

// read returns the answer, or why the server refused the query.
func (t trial) read(ctx context.Context, query string) (id sql.NullInt64, value sql.NullString, why string, err error) {
	err = t.QueryRowContext(ctx, query).Scan(&id, &value)
	switch {
	case err == nil || errors.Is(err, sql.ErrNoRows):
		return id, value, "", nil
	case backend.IsMySQL(err, "") || dialect.SQLState(err) != "":
		if !t.Database.MayPass(err) {
			return id, value, err.Error(), nil
		}
	}
	return id, value, "", err
}
