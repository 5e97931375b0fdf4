package database

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// patience is how long others may keep a file to themselves, and glance the time
// between two attempts.
const (
	patience = 10 * time.Second
	glance   = 10 * time.Millisecond
)

// open connects. Where several make a file at once, SQLite does not wait for the
// one that turns it to WAL, whatever busy_timeout says.
func open(ctx context.Context, db *sql.DB) error {
	deadline := time.Now().Add(patience)
	for {
		err := db.PingContext(ctx)
		if !dialect.Contended(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// OpenForWriting opens the database that dsn names, as Open does, for reading
// and writing. With create a SQLite file that does not exist is made. The caller
// closes it.
func OpenForWriting(ctx context.Context, dsn string, create bool) (*sql.DB, error) {
	if dsn == "" || isServer(dsn) || sqliteScheme.MatchString(dsn) && !exists(dsn) {
		if sqliteScheme.MatchString(dsn) {
			return nil, input.Errorf("%s: name a SQLite file by its path here", dialect.RedactDSN(dsn))
		}
		return Open(ctx, dsn)
	}
	settings := "mode=rw"
	if create && !exists(dsn) {
		settings = "mode=rwc&_pragma=journal_mode(WAL)"
	} else if err := checkFile(dsn, dialect.RedactDSN(dsn)); err != nil {
		return nil, err
	}
	uri, err := SQLiteURI(dsn, settings+"&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	if err := open(ctx, db); err != nil {
		return nil, errors.Join(input.Errorf("%s cannot be opened for writing: %w", dialect.RedactDSN(dsn), err), db.Close())
	}
	return db, nil
}
