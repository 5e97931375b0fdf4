// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// mysqlCatalog reads information_schema.
type mysqlCatalog struct {
	session
	database string
	restore  func(context.Context) error // of the session's setting
}

var _ catalog = (*mysqlCatalog)(nil)

func openMySQLCatalog(ctx context.Context, s session) (*mysqlCatalog, error) {
	var database sql.NullString
	if err := s.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, err
	}
	if !database.Valid {
		return nil, ErrNoDatabase
	}
	restore, err := dialect.PresentStatistics(ctx, s.Conn, s.Dialect) // AUTO_INCREMENT is one of them
	return &mysqlCatalog{s, database.String, restore}, err
}

func (c *mysqlCatalog) names(ctx context.Context) ([]string, error) {
	return c.list(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND "+mysqlBaseTable, c.database)
}

const mysqlBaseTable = "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"

func (c *mysqlCatalog) table(ctx context.Context, name string) (table, error) {
	var t table
	var counter sql.Null[uint64]
	err := c.QueryRowContext(ctx, "SELECT TABLE_NAME, ENGINE, AUTO_INCREMENT FROM information_schema.TABLES"+
		" WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND "+mysqlBaseTable, c.database, name).Scan(&t.name, &t.engine, &counter)
	if errors.Is(err, sql.ErrNoRows) {
		return t, fmt.Errorf("%w: %s in database %s", ErrNoTable, name, c.database)
	}
	if err != nil {
		return t, err
	}
	if t.columns, err = c.columns(ctx, t.name, counter.V); err != nil {
		return t, err
	}
	if t.primaryKey, err = c.primaryKey(ctx, t.name); err != nil {
		return t, err
	}
	if t.foreignKeys, err = c.foreignKeys(ctx, t.name); err != nil {
		return t, err
	}
	t.uniqueKeys, err = c.uniqueKeys(ctx, t.name)
	return t, err
}

// close restores the session's setting.
func (c *mysqlCatalog) close(ctx context.Context) error { return c.restore(ctx) }

func (c *mysqlCatalog) columns(ctx context.Context, table string, counter uint64) ([]column, error) {
	var columns []column
	err := c.each(ctx, func(rows *sql.Rows) error {
		var col column
		var full, extra string
		if err := rows.Scan(&col.name, &col.typ, &full, &extra); err != nil {
			return err
		}
		col.unsigned = strings.Contains(strings.ToLower(full), "unsigned")
		col.max = mysqlMax(col.typ, col.unsigned)
		if col.auto = strings.Contains(strings.ToLower(extra), "auto_increment"); col.auto {
			col.counter = counter
		}
		columns = append(columns, col)
		return nil
	}, "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, EXTRA FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION", c.database, table)
	return columns, err
}

// mysqlMax returns the largest value of an integer type, 0 for other types.
func mysqlMax(typ string, unsigned bool) uint64 {
	bits := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[strings.ToLower(typ)]
	if bits == 0 {
		return 0
	}
	if !unsigned {
		bits--
	}
	return uint64(math.MaxUint64) >> (64 - bits)
}

func (c *mysqlCatalog) primaryKey(ctx context.Context, table string) ([]string, error) {
	return c.list(ctx, "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"+
		" WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION", c.database, table)
}

func (c *mysqlCatalog) foreignKeys(ctx context.Context, table string) ([]ForeignKey, error) {
	var keys []ForeignKey
	err := c.each(ctx, func(rows *sql.Rows) error {
		var fk ForeignKey
		var column, database, referenced string
		if err := rows.Scan(&fk.Name, &column, &database, &fk.References, &referenced, &fk.OnDelete, &fk.OnUpdate); err != nil {
			return err
		}
		if database != c.database {
			fk.References = database + "." + fk.References
		}
		if last := len(keys) - 1; last < 0 || keys[last].Name != fk.Name {
			keys = append(keys, fk)
		}
		keys[len(keys)-1].add(column, referenced)
		return nil
	}, "SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME,"+
		" r.DELETE_RULE, r.UPDATE_RULE FROM information_schema.KEY_COLUMN_USAGE k"+
		" JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA"+
		" AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME"+
		" WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.REFERENCED_TABLE_NAME IS NOT NULL"+
		" ORDER BY k.CONSTRAINT_NAME, k.ORDINAL_POSITION", c.database, table)
	return keys, err
}

func (c *mysqlCatalog) uniqueKeys(ctx context.Context, table string) ([]uniqueKey, error) {
	return readUniqueKeys(ctx, c.session, "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS"+
		" WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 AND INDEX_NAME <> 'PRIMARY' ORDER BY INDEX_NAME, SEQ_IN_INDEX", c.database, table)
}
