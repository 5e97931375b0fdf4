// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// schemas caches the columns of tables, by logical names in lower case. Each statement that names an
// unknown table reads its columns itself. A statement that waits for a connection to read them must
// not block a transaction that holds the connection.
type schemas struct {
	mu     sync.Mutex
	tables map[string]*description
}

// description is what was read about the columns of a table. Tables are altered while programs run,
// so it is read again when it is older than maxAge. If it then differs, a new description replaces it,
// and all plans that depend on the old one are made again.
type description struct {
	name  string
	at    sharding.Target // whose columns were read
	table plan.Table
	// read is the time of the last reading, since the epoch of description; altered after another
	// description has replaced this one.
	read atomic.Int64
}

const (
	maxAge       = time.Minute
	refusedAge   = 10 * time.Second // before a statement is refused
	renewTimeout = time.Second
	altered      = math.MinInt64 // of description.read
)

var epoch = time.Now() // for monotonic times

// claims reports whether the caller must read the columns again; other callers then use them for
// another while.
func (d *description) claims(age time.Duration) bool {
	read, now := d.read.Load(), int64(time.Since(epoch))
	return read != altered && now-read >= int64(age) && d.read.CompareAndSwap(read, now)
}

// catalog reads, for a session, the columns of the tables of a snapshot.
type catalog struct {
	*session

	of *sharding.Snapshot
}

// described returns the descriptions of some tables. It omits a table that does not exist or cannot be
// read, and returns the reason. The table may be created later.
func (c catalog) described(ctx context.Context, names []string) (found []*description, omitted error) {
	for _, name := range names {
		name = strings.ToLower(name)
		t, at := c.database.schemas.of(name), c.place(name)
		switch moved := t != nil && t.at != at && at != (sharding.Target{}); {
		case t == nil || moved:
			var err error
			if t, err = c.look(ctx, name, at); err != nil {
				omitted = joinErrors(omitted, err)
				continue
			}
			c.database.schemas.keep(t)
		case c.altered(ctx, []*description{t}, maxAge):
			t = c.database.schemas.of(name)
		}
		found = append(found, t)
	}
	return found, omitted
}

// place returns the physical table whose columns are read: for a sharded table the first one, because
// all have the same columns. It is zero while no route of the table is known.
func (c catalog) place(name string) sharding.Target {
	t, sharded := c.of.Lookup(name)
	if !sharded {
		return sharding.Target{Table: name}
	}
	if targets := t.Map.Targets(); len(targets) > 0 {
		return targets[0]
	}
	return sharding.Target{}
}

// altered reports whether one of the tables is no longer as described. It reads a table again whose
// description has an age. It reads nothing in a transaction, which may hold the connections that
// others need.
func (c catalog) altered(ctx context.Context, tables []*description, age time.Duration) (is bool) {
	for _, t := range tables {
		if !c.tx.began() && t.claims(age) {
			c.renew(ctx, t)
		}
		is = is || t.read.Load() == altered
	}
	return is
}

// renew replaces a description if the table is different now. It keeps one that cannot be read again in
// time: the program may itself hold all connections of the pool, for rows that it reads.
func (c catalog) renew(ctx context.Context, t *description) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if now, err := c.look(ctx, t.name, t.at); err == nil && !reflect.DeepEqual(now.table, t.table) {
		c.database.schemas.keep(now)
		t.read.Store(altered)
	}
}

func schemaOf(tables []*description) plan.Schema {
	s := make(plan.Schema, len(tables))
	for _, t := range tables {
		s[t.name] = t.table
	}
	return s
}

func (s *schemas) of(table string) *description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tables[table]
}

func (s *schemas) keep(t *description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables == nil {
		s.tables = map[string]*description{}
	}
	s.tables[t.name] = t
}

// look reads the columns of a table. For tables that are neither sharded nor broadcast it reads only
// the types.
func (c catalog) look(ctx context.Context, name string, at sharding.Target) (*description, error) {
	if at == (sharding.Target{}) {
		return nil, sharding.ErrRouteUnread
	}
	t, sharded := c.of.Lookup(name)
	srv, pool, routed := c.database.server, c.on(c.database.poolOrHome(at.DB)), sharded || c.of.IsBroadcast(name)
	found, err := columns(ctx, srv, pool, at.Table, routed)
	if err == nil && routed {
		err = owned(ctx, srv, pool, at.Table, t, &found)
	}
	if err != nil {
		return nil, err
	}
	d := &description{name: name, at: at, table: found}
	d.read.Store(int64(time.Since(epoch)))
	return d, nil
}

// owned reads the unique keys of a table, and the columns whose values lead to shards or come from the
// database; t is nil for a broadcast table.
func owned(ctx context.Context, srv *server, pool dialect.Querier, table string, t *sharding.Table, to *plan.Table) (err error) {
	if to.Unique, err = unique(ctx, srv, pool, table); err != nil {
		return err
	}
	own, err := dialect.OwnValues(ctx, pool, srv, table)
	if err != nil {
		return err
	}
	if t != nil {
		return leads(ctx, srv, pool, table, t, own, to.Columns)
	}
	for column, of := range own {
		kept := to.Columns[column]
		kept.Numbered, kept.Varies, kept.Touched = of.Numbered, of.Varies, of.Touched
		to.Columns[column] = kept
	}
	return nil
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

// columns reads the names and types of a table's columns, their collations and, if sorts is set, how their
// values compare.
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
		kept, err := describe(ctx, srv, pool, table, c, sorts)
		if err != nil {
			return plan.Table{}, err
		}
		t.Columns[strings.ToLower(c.Name())] = kept
	}
	if srv.Name() == "mysql" {
		err = texts(ctx, pool, table, sorts, t.Columns)
	}
	return t, err
}

// describe returns a column of MySQL, MariaDB or SQLite; see columns.
func describe(ctx context.Context, srv *server, pool dialect.Querier, table string, c *sql.ColumnType, sorts bool) (kept plan.Column, err error) {
	name, mysql := c.DatabaseTypeName(), srv.Name() == "mysql"
	_, scale, isFixed := c.DecimalSize()
	kept.Single = mysql && (name == "FLOAT" || name == "DOUBLE" && isFixed && scale < notFixed)
	switch {
	case isInteger(name):
		kept.Holds = plan.Integers
	case mysql && (name == "BINARY" || name == "VARBINARY"):
		kept.Holds = plan.Bytes
	}
	isText := !mysql && hasTextAffinity(name)
	if !sorts && !isText {
		return kept, nil
	}
	v, err := compares(ctx, srv, pool, table, c)
	if isText && v.Type.Kind == merge.Stored {
		kept.Collation = fmt.Sprint("text ", v.Type.Collation)
	}
	if sorts {
		kept.Value, kept.Least = v, v
	}
	return kept, err
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

// hasTextAffinity reports whether SQLite stores numbers in a column of this type as texts.
func hasTextAffinity(name string) bool {
	name = strings.ToUpper(name)
	has := func(word string) bool { return strings.Contains(name, word) }
	return !has("INT") && (has("CHAR") || has("CLOB") || has("TEXT"))
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
