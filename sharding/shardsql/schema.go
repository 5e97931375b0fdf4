// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// schemas caches the columns of tables. Each statement that names an unknown table reads its
// columns itself. A statement that waits for a connection to read them must not block a transaction
// that holds the connection.
type schemas struct {
	mu     sync.Mutex
	tables map[string]plan.Table // by logical names in lower case
}

// connected returns the connection for a query of the schema: the one that the transaction or
// session holds to the database, because its pool may have no other, or otherwise the pool.
type connected func(pool *sql.DB) dialect.Querier

// schema returns the columns of some tables. It omits a table that does not exist or cannot be
// read. complete is then false, because the table may be created later.
func (d *database) schema(ctx context.Context, srv *server, s *sharding.Snapshot, names []string, on connected) (found plan.Schema, complete bool) {
	found, complete = plan.Schema{}, true
	for _, name := range names {
		name = strings.ToLower(name)
		t, known := d.schemas.of(name)
		if !known {
			var err error
			if t, err = d.look(ctx, srv, s, name, on); err != nil {
				complete = false
				continue
			}
			d.schemas.keep(name, t)
		}
		found[name] = t
	}
	return found, complete
}

func (s *schemas) of(table string) (t plan.Table, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known = s.tables[table]
	return t, known
}

func (s *schemas) keep(table string, t plan.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables == nil {
		s.tables = map[string]plan.Table{}
	}
	s.tables[table] = t
}

// look reads the columns of a table; for a sharded table, those of its first physical table,
// because all have the same columns. For tables that are neither sharded nor broadcast it reads
// only the types.
func (d *database) look(ctx context.Context, srv *server, s *sharding.Snapshot, name string, on connected) (plan.Table, error) {
	at := sharding.Target{Table: name}
	t, sharded := s.Lookup(name)
	if sharded {
		targets := t.Map.Targets()
		if len(targets) == 0 {
			return plan.Table{}, sharding.ErrRouteUnread
		}
		at = targets[0]
	}
	pool := on(d.poolOrHome(at.DB))
	routed := sharded || s.IsBroadcast(name)
	found, err := columns(ctx, srv, pool, at.Table, routed)
	if err != nil || !routed {
		return found, err
	}
	if found.Unique, err = unique(ctx, srv, pool, at.Table); err != nil {
		return plan.Table{}, err
	}
	own, err := dialect.OwnValues(ctx, pool, srv, at.Table)
	if err != nil {
		return plan.Table{}, err
	}
	if sharded {
		return found, leads(ctx, srv, pool, at.Table, t, own, found.Columns)
	}
	for column, of := range own {
		kept := found.Columns[column]
		kept.Numbered, kept.Varies, kept.Touched = of.Numbered, of.Varies, of.Touched
		found.Columns[column] = kept
	}
	return found, nil
}

// leads sets what the columns hold that lead to slots, directly or through a lookup table.
func leads(ctx context.Context, srv *server, pool dialect.Querier, table string, t *sharding.Table, own map[string]dialect.Own, to map[string]plan.Column) error {
	rules := map[string]sharding.Rule{t.Key: t.Rule}
	for _, alt := range t.Also {
		rules[alt.Column] = alt.Rule
	}
	for _, l := range t.Lookups {
		if rules[l.Column] == nil {
			rules[l.Column] = nil
		}
	}
	for column, rule := range rules {
		c, _, err := dialect.ReadColumn(ctx, pool, srv, table, column)
		if err != nil {
			return err
		}
		column = strings.ToLower(column)
		kept := to[column]
		kept.Cuts, kept.Type = c.Cuts, c.Type
		if rule != nil {
			kept.Holds, kept.Numbered = holds(c, rule), own[column].Numbered
		}
		to[column] = kept
	}
	return nil
}

// unique reads the columns of a table's unique keys, in lower case.
func unique(ctx context.Context, srv *server, pool dialect.Querier, table string) ([][]string, error) {
	keys, err := dialect.UniqueKeys(ctx, pool, srv, table)
	for _, key := range keys {
		for i := range key {
			key[i] = strings.ToLower(key[i])
		}
	}
	return keys, err
}

// columns reads the names of a table's columns, and how their values compare. It reads that for
// integers only, unless sorts is set.
func columns(ctx context.Context, srv *server, pool dialect.Querier, table string, sorts bool) (plan.Table, error) {
	if srv.Name() == "postgres" {
		return postgresColumns(ctx, pool, table)
	}
	rows, err := pool.QueryContext(ctx, "SELECT * FROM "+srv.Quote(table)+" WHERE 1 = 0") //nolint:unqueryvet // the query returns only the names
	if err != nil {
		return plan.Table{}, fmt.Errorf("columns of %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return plan.Table{}, err
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil { // closed before the next query, for pools of one connection
		return plan.Table{}, err
	}
	t := plan.Table{Columns: make(map[string]plan.Column, len(types))}
	for _, c := range types {
		var kept plan.Column
		switch name := c.DatabaseTypeName(); {
		case isInteger(name):
			kept.Holds = plan.Integers
		case srv.Name() == "mysql" && (name == "BINARY" || name == "VARBINARY"):
			kept.Holds = plan.Bytes
		}
		if sorts {
			if kept.Value, err = compares(ctx, srv, pool, table, c); err != nil {
				return plan.Table{}, err
			}
			kept.Least = kept.Value
		}
		t.Columns[strings.ToLower(c.Name())] = kept
	}
	if sorts && srv.Name() == "mysql" {
		err = texts(ctx, pool, table, t.Columns)
	}
	return t, err
}

// compares returns how a database compares the values of a column. It does not cover texts of MySQL
// and MariaDB.
func compares(ctx context.Context, srv *server, pool dialect.Querier, table string, c *sql.ColumnType) (plan.Value, error) {
	if srv.Name() == "sqlite" {
		found, _, err := dialect.ReadColumn(ctx, pool, srv, table, c.Name())
		collation, known := storedBy[found.Collation]
		if err != nil || !known {
			return plan.Value{}, err
		}
		return plan.Value{Type: merge.Type{Kind: merge.Stored, Collation: collation}}, nil
	}
	name := strings.TrimPrefix(strings.ToUpper(c.DatabaseTypeName()), "UNSIGNED ")
	if _, digits, _ := c.DecimalSize(); name == "FLOAT" && digits < maxDigits { // FLOAT(M, D), whose sums are rounded
		return plan.Value{}, nil
	}
	return sortValues[name], nil
}

// maxDigits is the largest D of a FLOAT(M, D). The driver reports more for a FLOAT without it.
const maxDigits = 31

var storedBy = map[string]merge.Collation{"": merge.Binary, "NOCASE": merge.NoCase, "RTRIM": merge.RTrim}

// sortValues maps the type names of go-sql-driver/mysql.
var sortValues = map[string]plan.Value{
	"TINYINT": ofKind(merge.Integer), "SMALLINT": ofKind(merge.Integer), "MEDIUMINT": ofKind(merge.Integer), "INT": ofKind(merge.Integer), "BIGINT": ofKind(merge.Integer),
	"DECIMAL": ofKind(merge.Decimal), "DOUBLE": ofKind(merge.Float), "FLOAT": {Type: merge.Type{Kind: merge.Float}, As: plan.Double},
	"DATE": ofKind(merge.Time), "DATETIME": ofKind(merge.Time), "TIMESTAMP": ofKind(merge.Time), "TIME": ofKind(merge.Duration),
	"YEAR": {Type: merge.Type{Kind: merge.Integer}, As: plan.Number}, "BIT": {Type: merge.Type{Kind: merge.Integer}, As: plan.Number},
}

// ofKind is how values of a kind compare by themselves.
func ofKind(k merge.Kind) plan.Value { return plan.Value{Type: merge.Type{Kind: k}} }

// isInteger checks a driver's type name. A SQLite column of such a type may hold any value; the
// integers in it compare as integers.
func isInteger(name string) bool {
	switch strings.TrimPrefix(strings.ToUpper(name), "UNSIGNED ") {
	case "BIGINT", "INT", "INTEGER", "MEDIUMINT", "SMALLINT", "TINYINT", "INT2", "INT4", "INT8":
		return true
	}
	return false
}

// holds returns the values of a column that leads to slots, if the database considers the same
// values equal as the rule does.
func holds(c dialect.Column, rule sharding.Rule) plan.Holding {
	switch c.Holds {
	case dialect.HoldsIntegers:
		return plan.Integers
	case dialect.HoldsTexts:
		if c.Collation == "" {
			return plan.Bytes
		}
		return plan.Folded
	case dialect.HoldsBytes:
		return plan.Bytes
	case dialect.HoldsClocks, dialect.HoldsInstants:
		if r, ok := rule.(sharding.IntervalRule); ok && c.Precision == r.Precision() {
			return plan.Times
		}
	}
	return plan.Other
}
