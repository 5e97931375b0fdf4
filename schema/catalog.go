// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// catalog reads table definitions from a database.
type catalog interface {
	// names returns the base tables of shardid and of the user, without the database's system
	// tables.
	names(ctx context.Context) ([]string, error)
	// table wraps ErrNoTable when there is no base table of this name.
	table(ctx context.Context, name string) (table, error)
	// close restores the connection's settings that opening the catalog has changed.
	close(ctx context.Context) error
}

func openCatalog(ctx context.Context, s session) (catalog, error) {
	switch s.Name() {
	case "sqlite":
		return sqliteCatalog{s}, nil
	case "postgres":
		return openPostgresCatalog(ctx, s)
	}
	return openMySQLCatalog(ctx, s)
}

// table is what Inspect, NextID and Apply need to know about a table.
type table struct {
	name        string
	exact       bool   // names are case-sensitive
	engine      string // "" except in MySQL
	columns     []column
	primaryKey  []string
	foreignKeys []ForeignKey
	uniqueKeys  []uniqueKey // without the primary key
}

type column struct {
	name     string
	typ      string // as the database says it, without width
	max      uint64 // largest value of an integer type; 0 for other types
	unsigned bool
	auto     bool   // the table numbers new rows here by itself
	reuses   bool   // auto, and the database may reuse numbers of deleted rows
	counter  uint64 // the next number as the database keeps it; 0 when it keeps none
	sequence string // the sequence that keeps the counter, in PostgreSQL
	end      uint64 // its largest value
	hidden   bool   // the user may not read it
}

// uniqueKey is a constraint or an index that keeps values from repeating.
type uniqueKey struct {
	name    string // "" when the database generated it
	columns []string
}

// readUniqueKeys runs a query that returns the name of a key and one of its columns per
// row, NULL for an expression. The rows of one key must be adjacent.
func readUniqueKeys(ctx context.Context, s session, query string, args ...any) ([]uniqueKey, error) {
	var keys []uniqueKey
	err := s.each(ctx, func(rows *sql.Rows) error {
		var name string
		var column sql.NullString
		if err := rows.Scan(&name, &column); err != nil {
			return err
		}
		if !column.Valid {
			column.String = "an expression"
		}
		if last := len(keys) - 1; last < 0 || keys[last].name != name {
			keys = append(keys, uniqueKey{name: name})
		}
		key := &keys[len(keys)-1]
		key.columns = append(key.columns, column.String)
		return nil
	}, query, args...)
	return keys, err
}

// column finds a column by name, ignoring case unless names are exact.
func (t table) column(name string) (column, bool) {
	for _, c := range t.columns {
		if c.name == name || !t.exact && strings.EqualFold(c.name, name) {
			return c, true
		}
	}
	return column{}, false
}

// checkCounter returns an error when the column has a counter whose value cannot be read.
func (c column) checkCounter() error {
	if c.hidden {
		return fmt.Errorf("%w: %s of column %s", ErrNoCounter, c.sequence, c.name)
	}
	return nil
}

// key returns the single column of the primary key, if it has just one.
func (t table) key() (column, bool) {
	if len(t.primaryKey) != 1 {
		return column{}, false
	}
	return t.column(t.primaryKey[0])
}

// isLookup reports whether the table has the columns and the key of a lookup table that package lookups creates: a value, the
// sharding key of its row, and a claim.
func (t table) isLookup() bool {
	if len(t.columns) != 3 || t.columns[2].name != "claim" || t.columns[2].max == 0 || len(t.uniqueKeys)+len(t.foreignKeys) > 0 {
		return false
	}
	n := len(t.primaryKey)
	for i := range min(n, 3) {
		if t.primaryKey[i] != t.columns[i].name {
			return false
		}
	}
	return n == 2 || n == 1 && t.columns[0].max == 0
}

var slotTables = []string{"shard_map", "shard_slot", "shard_lease", "shard_fence", "shard_fence_table"}

// isOwn reports whether the table is one that Apply or the packages migrate and slotstore
// create.
func isOwn(s session, name string) bool {
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(lower, "shardid_"), slices.Contains(slotTables, lower):
		return true
	}
	for _, t := range ownTables {
		if t.name == name || s.Name() != "postgres" && strings.EqualFold(t.name, name) {
			return true
		}
	}
	return false
}

// inCatalog opens the catalog for f and closes it whether or not f fails.
func inCatalog(ctx context.Context, s session, f func(catalog) error) error {
	c, err := openCatalog(ctx, s)
	if err != nil {
		return err
	}
	err = f(c)
	// The connection returns to a pool, so its settings are restored even when ctx has ended.
	if closeErr := c.close(context.WithoutCancel(ctx)); err == nil {
		err = closeErr
	}
	return err
}
