// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Read reads the types of the columns of a table that is neither sharded nor broadcast and, if sorts is set, how
// their values compare.
func Read(ctx context.Context, d dialect.Dialect, db dialect.Querier, table string, sorts bool) (catalog.Table, error) {
	return reader{d, db, table, sorts}.columns(ctx)
}

// ReadRouted reads, in addition, how the values of the columns compare, the unique keys, and what the columns hold
// that lead to shards. t is the sharded table of which the table is a shard, or nil for a broadcast table.
func ReadRouted(ctx context.Context, d dialect.Dialect, db dialect.Querier, table string, t *sharding.Table) (catalog.Table, error) {
	r := reader{d, db, table, true}
	found, err := r.columns(ctx)
	if err != nil {
		return found, err
	}
	keys, err := dialect.UniqueKeys(ctx, db, d, table)
	if err != nil {
		return found, err
	}
	for _, key := range keys {
		found.Primary = found.Primary || key.Primary
		if found.Unique = append(found.Unique, key.Columns); key.Total {
			found.Total = append(found.Total, key.Columns)
		}
		isWhole := func(k dialect.Key) bool { return !k.Partial && slices.Equal(k.Columns, key.Columns) }
		if key.Partial && !slices.ContainsFunc(keys, isWhole) {
			found.Partial = append(found.Partial, key.Columns)
		}
	}
	own, err := dialect.OwnValues(ctx, db, d, table)
	if err != nil {
		return found, err
	}
	for column, of := range own {
		kept := found.Columns[column]
		kept.Numbered, kept.Varies, kept.Touched, kept.Computed = of.Numbered, of.Varies, of.Touched, of.Computed
		found.Columns[column] = kept
	}
	if t == nil {
		return found, nil
	}
	if err := r.leads(ctx, t, found.Columns); err != nil {
		return found, err
	}
	return found, r.kin(ctx, t, found.Columns)
}

type reader struct {
	dialect.Dialect

	db    dialect.Querier
	table string
	sorts bool // how values compare is read, too
}

// leads sets what the columns hold that lead to slots, directly or through a lookup table.
func (r reader) leads(ctx context.Context, t *sharding.Table, to map[string]catalog.Column) (err error) {
	rules := map[string]sharding.Rule{} // nil for a column that has only a lookup table
	for _, l := range t.Lookups {
		rules[l.Column] = nil
	}
	rules[t.Key] = t.Rule
	for _, alt := range t.Also {
		rules[alt.Column] = alt.Rule
	}
	var empty []string
	if len(t.Lookups) > 0 || len(t.Also) > 0 {
		if empty, err = dialect.EmptyColumns(ctx, r.db, r, r.table); err != nil {
			return err
		}
	}
	for column, rule := range rules {
		c, _, err := dialect.ReadColumn(ctx, r.db, r, r.table, column)
		if err != nil {
			return err
		}
		column = strings.ToLower(column)
		kept := to[column]
		kept.Storage, kept.Type, kept.Empty = storage{c, rule == nil}, c.Type, slices.Contains(empty, column)
		if rule != nil {
			kept.Holds = holds(c, rule)
			switch c.Holds {
			case dialect.HoldsTexts, dialect.HoldsBytes, dialect.HoldsPadded, dialect.HoldsClocks, dialect.HoldsForms:
				kept.Formed = true
			}
			if c.Holds == dialect.HoldsClocks && r.Name() == "sqlite" {
				kept.Skew = zonesApart
			}
		}
		to[column] = kept
	}
	return nil
}

// kin sets what the columns hold by which rows share their slots with others.
func (r reader) kin(ctx context.Context, t *sharding.Table, to map[string]catalog.Column) error {
	for column := range t.Kin() {
		kept, has := to[column]
		if !has || t.Leads(column) { // schema.Doctor reports that the table has no such column
			continue
		}
		c, _, err := dialect.ReadColumn(ctx, r.db, r, r.table, cmp.Or(kept.Name, column))
		if err != nil {
			return err
		}
		kept.Holds = holds(c, nil)
		to[column] = kept
	}
	return nil
}

// storage is how a column stores values.
type storage struct {
	dialect.Column

	looked bool // it has only a lookup table, by the texts of its values
}

// Cuts is true also for a value that is no text where the lookup table has texts.
func (s storage) Cuts(value any, ignoring bool) bool {
	return s.looked && s.Renders(value) || s.Column.Cuts(value, ignoring)
}

// zonesApart is more than the distance of any two zones. SQLite keeps the zone of a time, and compares the texts of
// times, in which the clock time comes before the zone.
const zonesApart = 27 * time.Hour

// columns reads the names and types of a table's columns, their collations and, if r.sorts is set, how their
// values compare.
func (r reader) columns(ctx context.Context) (catalog.Table, error) {
	if r.Name() == "postgres" {
		return r.postgresColumns(ctx)
	}
	t := catalog.Table{Columns: map[string]catalog.Column{}}
	err := r.describeAll(ctx, "*", t.Columns)
	if err == nil && r.Name() == "mysql" {
		err = r.texts(ctx, t.Columns)
	}
	return t, err
}

// describeAll describes the columns of a select list, which are those of the table.
func (r reader) describeAll(ctx context.Context, list string, to map[string]catalog.Column) error {
	rows, err := r.db.QueryContext(ctx, "SELECT "+list+" FROM "+r.Quote(r.table)+" WHERE 1 = 0")
	if err != nil {
		return fmt.Errorf("columns of %s: %w", r.table, err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil { // closed before the next query, for pools of one connection
		return err
	}
	for _, c := range types {
		kept, err := r.describe(ctx, c)
		if err != nil {
			return err
		}
		kept.Invisible = list != "*"
		name := strings.TrimPrefix(c.Name(), r.table+".") // with columnsWithAlias, MySQL's driver adds the table
		to[strings.ToLower(name)] = kept
	}
	return nil
}

// describe returns a column of MySQL, MariaDB or SQLite; see columns. It does not say how texts of MySQL and MariaDB
// compare.
func (r reader) describe(ctx context.Context, c *sql.ColumnType) (kept catalog.Column, err error) {
	if r.Name() == "sqlite" {
		return r.stored(ctx, c)
	}
	name := strings.TrimPrefix(strings.ToUpper(c.DatabaseTypeName()), "UNSIGNED ")
	_, scale, isFixed := c.DecimalSize()
	kept.Single = name == "FLOAT" || name == "DOUBLE" && isFixed && scale < NotFixed
	v := sortValues[name]
	kept.Unsigned = v == catalog.OfKind(merge.Integer) && strings.HasPrefix(strings.ToUpper(c.DatabaseTypeName()), "UNSIGNED ")
	switch {
	case v == catalog.OfKind(merge.Integer):
		kept.Holds = catalog.Integers
	case name == "BINARY", name == "VARBINARY":
		kept.Holds = catalog.Bytes
	}
	if r.sorts && !(name == "FLOAT" && scale < NotFixed) { // FLOAT(M, D), whose sums are rounded
		kept.Value, kept.Least = v, v
	}
	return kept, nil
}

// stored returns a column of SQLite. One of integers may hold any value; the integers in it compare as integers.
func (r reader) stored(ctx context.Context, c *sql.ColumnType) (kept catalog.Column, err error) {
	holds := dialect.Affinity(strings.ToLower(c.DatabaseTypeName()))
	if holds == dialect.HoldsIntegers {
		kept.Holds = catalog.Integers
	}
	if !r.sorts && holds != dialect.HoldsTexts {
		return kept, nil
	}
	found, _, err := dialect.ReadColumn(ctx, r.db, r, r.table, c.Name())
	collation, known := storedBy[found.Collation]
	if err != nil || !known {
		return kept, err
	}
	if holds == dialect.HoldsTexts {
		kept.Collation = fmt.Sprint("text ", collation)
	}
	if r.sorts {
		kept.Value = catalog.Value{Type: merge.Type{Kind: merge.Stored, Collation: collation}}
		kept.Least = kept.Value
	}
	return kept, nil
}

// NotFixed is the scale that MySQL reports of a FLOAT or a DOUBLE without one. The scale of others is less.
const NotFixed = 31

var storedBy = map[string]merge.Collation{"": merge.Binary, "NOCASE": merge.NoCase, "RTRIM": merge.RTrim}

// sortValues maps the type names of go-sql-driver/mysql.
var sortValues = map[string]catalog.Value{
	"TINYINT": catalog.OfKind(merge.Integer), "SMALLINT": catalog.OfKind(merge.Integer), "MEDIUMINT": catalog.OfKind(merge.Integer), "INT": catalog.OfKind(merge.Integer), "BIGINT": catalog.OfKind(merge.Integer),
	"DECIMAL": catalog.OfKind(merge.Decimal), "DOUBLE": catalog.OfKind(merge.Float), "FLOAT": {Type: merge.Type{Kind: merge.Float}, As: catalog.Double},
	"DATE": catalog.OfKind(merge.Time), "DATETIME": catalog.OfKind(merge.Time), "TIMESTAMP": catalog.OfKind(merge.Time), "TIME": catalog.OfKind(merge.Duration),
	"YEAR": {Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}, "BIT": {Type: merge.Type{Kind: merge.Integer}, As: catalog.Number},
}

// Leads reports whether each value of a column leads to one shard by a rule, in whatever form the database takes it.
func Leads(c dialect.Column, rule sharding.Rule) bool {
	return holds(c, rule).EqualByRule()
}

// holds returns the values of a column that leads to slots, if the database considers the same
// values equal as the rule does.
func holds(c dialect.Column, rule sharding.Rule) catalog.Holding {
	switch c.Holds {
	case dialect.HoldsIntegers:
		return catalog.Integers
	case dialect.HoldsTexts:
		if c.Collation == "" {
			return catalog.Bytes
		}
		return catalog.Folded
	case dialect.HoldsBytes, dialect.HoldsPadded:
		return catalog.Bytes
	case dialect.HoldsForms:
		if c.IsUUID() {
			return catalog.UUIDs
		}
	case dialect.HoldsClocks, dialect.HoldsInstants:
		if r, ok := rule.(sharding.IntervalRule); ok && c.Precision == r.Precision() {
			return catalog.Times
		}
	}
	return catalog.Other
}
