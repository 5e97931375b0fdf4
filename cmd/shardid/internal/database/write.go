// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// Missing says what to do with a SQLite file that does not exist.
type Missing int

const (
	// Refused returns an error.
	Refused Missing = iota
	// Made creates the file.
	Made
	// Empty opens an empty database in memory instead, for commands that only read.
	Empty
)

// OpenForWriting opens the database with the name dsn, as Open does, for reading and
// writing. The caller closes it.
func OpenForWriting(ctx context.Context, dsn string, missing Missing) (*sql.DB, error) {
	if dsn == "" || isServer(dsn) || sqliteScheme.MatchString(dsn) && !exists(dsn) {
		if sqliteScheme.MatchString(dsn) {
			return nil, input.Errorf("%s: name a SQLite file by its path here", dialect.RedactDSN(dsn))
		}
		return Open(ctx, dsn)
	}
	uri, err := writableURI(dsn, missing)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	// When several processes create a file at once, SQLite does not wait for the one that
	// switches it to WAL, whatever busy_timeout is.
	if err := sqlrun.Retry(ctx, nil, func() error { return db.PingContext(ctx) }); err != nil {
		return nil, errors.Join(Failed(err, fmt.Errorf("%s cannot be opened for writing: %w", dialect.RedactDSN(dsn), err)), db.Close())
	}
	return db, nil
}

// writableURI names the file for the driver.
func writableURI(path string, missing Missing) (string, error) {
	settings := "mode=rw"
	switch {
	case missing == Empty && !exists(path):
		return "file::memory:", nil
	case missing == Made && !exists(path):
		settings = "mode=rwc&_pragma=journal_mode(WAL)"
	default:
		if err := checkFile(path, dialect.RedactDSN(path)); err != nil {
			return "", err
		}
	}
	return SQLiteURI(path, settings+"&_pragma=busy_timeout(10000)")
}
