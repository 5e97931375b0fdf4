// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Inspect reports, for every base table of the database, its key, how much of the key's
// range is used, its foreign keys, and the findings that prevent or complicate sharding it.
// It writes nothing. Tables of shardid and of the database itself are left out. In
// PostgreSQL, tables of extensions and tables that an unqualified name does not reach are
// left out, too. The order is by name.
//
// It needs SELECT on the tables; a table without it is an error, not an omission. Each
// counter is read at its own moment, so numbers of a busy database are soon out of date.
func Inspect(ctx context.Context, db *sql.DB) (Report, error) {
	var report Report
	err := withSession(ctx, db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) (err error) {
			report = Report{Dialect: s.Name(), Server: Server{string(s.Kind), s.Version}}
			report.Tables, err = inspectAll(ctx, s, c)
			return err
		})
	})
	if err != nil {
		return Report{}, fmt.Errorf("schema: inspect: %w", err)
	}
	return report, nil
}

// NextID returns the lowest id, at least 1, that is above every id in an integer column and
// that the table has not yet given by itself: the next AUTO_INCREMENT or sequence value, or
// MAX(column)+1, whichever is higher. Seed a tag from it, plus a margin for the rows that
// other writers insert meanwhile.
//
// The error wraps ErrNoTable, ErrNoIntegerKey, ErrNoCounter or ErrKeyExhausted
// where that is the cause.
func NextID(ctx context.Context, db *sql.DB, table, column string) (int64, error) {
	var next uint64
	err := withSession(ctx, db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) (err error) {
			next, err = nextID(ctx, s, c, table, column)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	if next > math.MaxInt64 {
		return 0, fmt.Errorf("%w: %s.%s", ErrKeyExhausted, table, column)
	}
	return int64(next), nil
}

func nextID(ctx context.Context, s session, c catalog, name, column string) (uint64, error) {
	t, err := c.table(ctx, name)
	if err != nil {
		return 0, err
	}
	col, ok := t.column(column)
	if !ok || col.max == 0 {
		return 0, fmt.Errorf("%w: %s.%s", ErrNoIntegerKey, t.name, column)
	}
	if err := col.checkCounter(); err != nil {
		return 0, err
	}
	e, err := readExtent(ctx, s, t.name, col.name)
	if errors.Is(err, errNotInteger) {
		return 0, fmt.Errorf("%w: %w", ErrNoIntegerKey, err)
	}
	return max(col.counter, e.next), err
}

func inspectAll(ctx context.Context, s session, c catalog) ([]Table, error) {
	names, err := c.names(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := []Table{} // [] in JSON
	for _, name := range names {
		if isOwn(s, name) {
			continue
		}
		t, err := inspect(ctx, s, c, name)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func inspect(ctx context.Context, s session, c catalog, name string) (Table, error) {
	facts, err := c.table(ctx, name)
	if err != nil {
		return Table{}, err
	}
	out := Table{
		Name:        facts.name,
		PrimaryKey:  append([]string{}, facts.primaryKey...),
		ForeignKeys: sortedKeys(facts.foreignKeys),
	}
	col, single := facts.key()
	if !single || col.max == 0 {
		out.Findings = keyFindings(s, facts)
		return out, nil
	}
	if err := col.checkCounter(); err != nil {
		return Table{}, err
	}
	e, err := readExtent(ctx, s, facts.name, col.name)
	if errors.Is(err, errNotInteger) {
		out.Findings = append(keyFindings(s, facts), nonInteger(col))
		return out, nil
	}
	if err != nil {
		return Table{}, err
	}
	out.Key = newKey(col, e)
	out.Findings = append(keyFindings(s, facts), useFindings(*out.Key, col, e)...)
	return out, nil
}

func newKey(col column, e extent) *Key {
	k := &Key{
		Column: col.name, Type: col.typ, Unsigned: col.unsigned, AutoIncrement: col.auto,
		Max: col.max, Next: max(col.counter, e.next),
	}
	if !e.empty {
		k.Highest = &e.highest
	}
	k.PercentUsed = math.Round(100*percentUsed(*k)) / 100
	return k
}

func percentUsed(k Key) float64 {
	return min(100, 100*float64(k.Next-1)/float64(k.Max))
}

// sortedKeys orders by columns, as SQLite has no names of foreign keys, and never returns
// nil, which would be null in JSON.
func sortedKeys(keys []ForeignKey) []ForeignKey {
	keys = append([]ForeignKey{}, keys...)
	slices.SortStableFunc(keys, func(a, b ForeignKey) int {
		return cmp.Or(slices.Compare(a.Columns, b.Columns), cmp.Compare(a.References, b.References), cmp.Compare(a.Name, b.Name))
	})
	return keys
}
