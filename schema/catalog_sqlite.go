// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// sqliteCatalog reads SQLite's pragma functions.
type sqliteCatalog struct{ session }

var _ catalog = sqliteCatalog{}

// Virtual tables and their shadow tables have other types than 'table'.
const sqliteBaseTable = `l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\_%' ESCAPE '\'`

func (c sqliteCatalog) names(ctx context.Context) ([]string, error) {
	return c.list(ctx, "SELECT l.name FROM pragma_table_list l WHERE "+sqliteBaseTable)
}

func (c sqliteCatalog) table(ctx context.Context, name string) (table, error) {
	t, numbers, err := c.find(ctx, name)
	if err != nil {
		return t, err
	}
	if err = c.readColumns(ctx, &t); err != nil {
		return t, err
	}
	if err = c.readNumbering(ctx, &t, numbers); err != nil {
		return t, err
	}
	if t.foreignKeys, err = c.foreignKeys(ctx, t.name); err != nil {
		return t, err
	}
	t.uniqueKeys, err = c.uniqueKeys(ctx, t.name)
	return t, err
}

func (sqliteCatalog) close(context.Context) error { return nil }

// sqliteNumbers says how a table with a single-column key numbers its rows.
type sqliteNumbers struct {
	byRowID       bool // the key is the rowid under another name
	autoincrement bool
}

func (c sqliteCatalog) find(ctx context.Context, name string) (table, sqliteNumbers, error) {
	var t table
	var create string
	var keyIndexes int
	err := c.QueryRowContext(ctx, "SELECT l.name, s.sql, (SELECT COUNT(*) FROM pragma_index_list(l.name) i WHERE i.origin = 'pk')"+
		" FROM pragma_table_list l JOIN sqlite_schema s ON s.type = 'table' AND s.name = l.name"+
		" WHERE l.name = ? COLLATE NOCASE AND "+sqliteBaseTable, name).Scan(&t.name, &create, &keyIndexes)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %s", ErrNoTable, name)
	}
	// INT PRIMARY KEY, INTEGER PRIMARY KEY DESC and WITHOUT ROWID tables have an index for the
	// key; a rowid needs none.
	return t, sqliteNumbers{keyIndexes == 0, sqltext.HasWord(create, sqltext.SQLite, "AUTOINCREMENT")}, err
}

func (c sqliteCatalog) readColumns(ctx context.Context, t *table) error {
	key := map[int]string{}
	err := c.each(ctx, func(rows *sql.Rows) error {
		var col column
		var inKey int
		if err := rows.Scan(&col.name, &col.typ, &inKey); err != nil {
			return err
		}
		// SQLite's own rule: such a column prefers integers, of 64 bits.
		if strings.Contains(strings.ToUpper(col.typ), "INT") {
			col.max = math.MaxInt64
		}
		t.columns = append(t.columns, col)
		key[inKey] = col.name
		return nil
	}, "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", t.name)
	for i := 1; key[i] != ""; i++ {
		t.primaryKey = append(t.primaryKey, key[i])
	}
	return err
}

func (c sqliteCatalog) readNumbering(ctx context.Context, t *table, numbers sqliteNumbers) error {
	if len(t.primaryKey) != 1 || !numbers.byRowID {
		return nil
	}
	for i := range t.columns {
		col := &t.columns[i]
		if col.name != t.primaryKey[0] {
			continue
		}
		col.auto, col.reuses = true, !numbers.autoincrement
		if numbers.autoincrement {
			return c.readCounter(ctx, t.name, col)
		}
	}
	return nil
}

// readCounter reads sqlite_sequence. It exists in every database that has an AUTOINCREMENT
// table, and has a row for each such table into which a row was inserted.
func (c sqliteCatalog) readCounter(ctx context.Context, table string, col *column) error {
	var last sql.NullInt64
	err := c.QueryRowContext(ctx, "SELECT MAX(seq) FROM sqlite_sequence WHERE name = ?", table).Scan(&last)
	if last.Int64 > 0 {
		col.counter = uint64(last.Int64) + 1
	}
	return err
}

func (c sqliteCatalog) foreignKeys(ctx context.Context, table string) ([]ForeignKey, error) {
	var keys []ForeignKey
	last := -1
	err := c.each(ctx, func(rows *sql.Rows) error {
		var fk ForeignKey
		var id int
		var column string
		var referenced sql.NullString
		if err := rows.Scan(&id, &column, &fk.References, &referenced, &fk.OnDelete, &fk.OnUpdate); err != nil {
			return err
		}
		if id != last {
			keys, last = append(keys, fk), id
		}
		keys[len(keys)-1].add(column, referenced.String)
		return nil
	}, `SELECT id, "from", "table", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq`, table)
	if err != nil {
		return nil, err
	}
	return keys, c.resolve(ctx, keys)
}

// resolve fills in the referenced columns that a foreign key does not name: they are the
// other table's primary key.
func (c sqliteCatalog) resolve(ctx context.Context, keys []ForeignKey) error {
	for i := range keys {
		if keys[i].ReferencedColumns[0] != "" {
			continue
		}
		columns, err := c.list(ctx, "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", keys[i].References)
		if err != nil {
			return err
		}
		keys[i].ReferencedColumns = columns
	}
	return nil
}

// uniqueKeys returns the keys in the order of their columns. Keys of a table's definition
// have no name, as SQLite generates meaningless ones for them.
func (c sqliteCatalog) uniqueKeys(ctx context.Context, table string) ([]uniqueKey, error) {
	keys, err := readUniqueKeys(ctx, c.session, `SELECT i.name, x.name FROM pragma_index_list(?) i JOIN pragma_index_xinfo(i.name) x`+
		` WHERE i."unique" AND i.origin <> 'pk' AND x.key ORDER BY i.name, x.seqno`, table)
	for i := range keys {
		if strings.HasPrefix(keys[i].name, "sqlite_autoindex_") {
			keys[i].name = ""
		}
	}
	slices.SortStableFunc(keys, func(a, b uniqueKey) int { return slices.Compare(a.columns, b.columns) })
	return keys, err
}
