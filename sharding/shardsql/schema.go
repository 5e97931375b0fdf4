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

// schemas keeps what the databases say of the columns of tables. A table is looked
// at when a statement names it for the first time, by each statement that does: who waits
// for a connection to look must not keep a transaction waiting that holds it.
type schemas struct {
	mu     sync.Mutex
	tables map[string]plan.Table // by logical names in lower case
}

// connected returns what a database is asked on: the connection that the asking
// transaction or session has there, as its pool may have no other one, or the pool.
type connected func(pool *sql.DB) dialect.Querier

// schema returns what is known of some tables. A table that does not exist, or that
// may not be read, is left out; complete is false then, as it may come to exist.
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

// look reads the columns of a table: of a sharded one, those of its first physical
// table, as all are made alike. Of tables that are neither sharded nor broadcast the
// types are enough.
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

// leads takes in what the columns of a table hold that lead to slots, by themselves or by a
// lookup table.
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

// columns reads the names of a table's columns, and how values of them compare: those
// of integers alone unless sorts says that more is wanted.
func columns(ctx context.Context, srv *server, pool dialect.Querier, table string, sorts bool) (plan.Table, error) {
	if srv.Name() == "postgres" {
		return postgresColumns(ctx, pool, table)
	}
	rows, err := pool.QueryContext(ctx, "SELECT * FROM "+srv.Quote(table)+" WHERE 1 = 0") //nolint:unqueryvet // their names are what is asked for
	if err != nil {
		return plan.Table{}, fmt.Errorf("columns of %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return plan.Table{}, err
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil { // before the next query, for pools of one connection
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
			if kept.Value.Type, err = compares(ctx, srv, pool, table, c); err != nil {
				return plan.Table{}, err
			}
		}
		t.Columns[strings.ToLower(c.Name())] = kept
	}
	if sorts && srv.Name() == "mysql" {
		err = texts(ctx, pool, table, t.Columns)
	}
	return t, err
}

// compares returns how a database compares the values of a column but for texts of
// MySQL and MariaDB.
func compares(ctx context.Context, srv *server, pool dialect.Querier, table string, c *sql.ColumnType) (merge.Type, error) {
	if srv.Name() == "sqlite" {
		found, _, err := dialect.ReadColumn(ctx, pool, srv, table, c.Name())
		collation, known := storedBy[found.Collation]
		if err != nil || !known {
			return merge.Type{}, err
		}
		return merge.Type{Kind: merge.Stored, Collation: collation}, nil
	}
	return merge.Type{Kind: sortKinds[strings.TrimPrefix(strings.ToUpper(c.DatabaseTypeName()), "UNSIGNED ")]}, nil
}

var storedBy = map[string]merge.Collation{"": merge.Binary, "NOCASE": merge.NoCase, "RTRIM": merge.RTrim}

// sortKinds are by the words that go-sql-driver/mysql uses for types. FLOAT is
// missing: its text and its value differ.
var sortKinds = map[string]merge.Kind{
	"TINYINT": merge.Integer, "SMALLINT": merge.Integer, "MEDIUMINT": merge.Integer, "INT": merge.Integer, "BIGINT": merge.Integer,
	"DECIMAL": merge.Decimal, "DOUBLE": merge.Float, "DATE": merge.Time, "DATETIME": merge.Time, "TIMESTAMP": merge.Time, "TIME": merge.Duration,
}

// isInteger goes by the words that the drivers use for types. SQLite's columns of
// these types hold whatever is put into them, and compare integers as such.
func isInteger(name string) bool {
	switch strings.TrimPrefix(strings.ToUpper(name), "UNSIGNED ") {
	case "BIGINT", "INT", "INTEGER", "MEDIUMINT", "SMALLINT", "TINYINT", "INT2", "INT4", "INT8":
		return true
	}
	return false
}

// holds returns what a column that leads to slots holds, as far as the database
// takes the same values for equal as the rule does.
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
