// SPDX-License-Identifier: Apache-2.0

package lookups

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Statement is a statement that creates a lookup table in one database.
type Statement struct {
	// DB is the router's name of the database, "" for the home database.
	DB   string
	Text string
}

// DDL returns the statements that create a lookup table in all its databases. Its columns have the
// types and collations of the table's columns on its first shard.
func DDL(ctx context.Context, c Config) (all []Statement, err error) {
	p, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	definition, err := p.definition(ctx)
	if err != nil {
		return nil, err
	}
	for _, at := range p.places() {
		all = append(all, Statement{at.DB, "CREATE TABLE IF NOT EXISTS " + p.dialect.Quote(at.Table) + definition})
	}
	return all, nil
}

// Create executes the statements of [DDL]. An existing table is not changed.
func Create(ctx context.Context, c Config) error {
	all, err := DDL(ctx, c)
	for _, s := range all {
		db := c.Home
		if s.DB != "" {
			db = c.Router.DB(s.DB)
		}
		if _, err := db.ExecContext(ctx, s.Text); err != nil {
			return fmt.Errorf("lookups: %s: %w", s.Text, err)
		}
	}
	return err
}

// places are the physical lookup tables.
func (p *pass) places() []sharding.Target {
	if t, ok := p.Router.Table(p.lookup.Table); ok {
		return t.Map.Targets()
	}
	return []sharding.Target{{Table: p.lookup.Table}}
}

func (p *pass) definition(ctx context.Context) (string, error) {
	var columns []string
	for _, column := range []string{p.lookup.Column, p.table.Key} {
		typ, err := p.typeOf(ctx, column)
		if err != nil {
			return "", err
		}
		columns = append(columns, p.dialect.Quote(column)+" "+typ+" NOT NULL")
	}
	key := `"v"`
	if !p.lookup.Unique {
		key = `"v", "k"`
	}
	end := ""
	if p.dialect.Name() == "mysql" {
		end = " ENGINE=InnoDB"
	}
	return " (" + strings.Join(columns, ", ") + ", " + p.dialect.Quote(sharding.ClaimColumn) + " BIGINT NOT NULL, " + p.text("PRIMARY KEY ("+key+")") + ")" + end, nil
}

// The types of columns, with the properties that decide how their values compare.
const (
	mysqlType = `SELECT CONCAT(COLUMN_TYPE, COALESCE(CONCAT(' CHARACTER SET ', CHARACTER_SET_NAME, ' COLLATE ', COLLATION_NAME), ''))
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = ?`
	postgresType = `SELECT format_type(a.atttypid, a.atttypmod) || COALESCE((SELECT ' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(c.collname)
		FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = a.attcollation AND c.collname <> 'default'), '')
		FROM pg_attribute a WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attname = $2`
	sqliteType = `SELECT type FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE`
)

func (p *pass) typeOf(ctx context.Context, column string) (typ string, err error) {
	at := p.table.Map.Targets()[0]
	db := p.Router.DB(at.DB)
	query := map[string]string{"mysql": mysqlType, "postgres": postgresType, "sqlite": sqliteType}[p.dialect.Name()]
	if err := db.QueryRowContext(ctx, query, at.Table, column).Scan(&typ); errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("lookups: %s has no column %s, or does not exist; create it first", at, column)
	} else if err != nil {
		return "", fmt.Errorf("lookups: column %s of %s: %w", column, at, err)
	}
	if p.dialect.Name() != "sqlite" {
		return typ, nil
	}
	found, _, err := dialect.ReadColumn(ctx, db, p.dialect, at.Table, column)
	if err == nil && found.Collation != "" {
		typ += " COLLATE " + found.Collation
	}
	return typ, err
}
