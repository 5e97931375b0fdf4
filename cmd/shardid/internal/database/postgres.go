// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// openPostgres opens postgres://user:password@host:port/database?settings. Missing parts
// are taken by pgx from PGPASSWORD, PGSSLMODE and similar variables.
func openPostgres(ctx context.Context, dsn string) (*sql.DB, error) {
	shown := dialect.RedactDSN(dsn)
	u, err := parseURL(dsn, "postgres://user:password@host:5432/shop")
	if err != nil {
		return nil, err
	}
	if strings.TrimPrefix(u.Path, "/") == "" {
		return nil, input.Errorf("%s names no database; add it at the end, as in postgres://user:password@host:5432/shop", shown)
	}
	u.Scheme = "postgres" // pgx knows it only in lower case
	c, err := pgx.ParseConfig(u.String())
	if err != nil { // the driver's text may quote any part of the name
		return nil, input.Errorf("%s cannot be read; check its settings, and write it as postgres://user:password@host:5432/shop", shown)
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	db := stdlib.OpenDB(*c)
	if err := ping(ctx, db); err != nil {
		return nil, errors.Join(refused(shown, err, c.Password), db.Close())
	}
	return db, nil
}
