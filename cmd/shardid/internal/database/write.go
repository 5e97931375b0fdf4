package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

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
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(input.Errorf("%s cannot be opened for writing: %w", dialect.RedactDSN(dsn), err), db.Close())
	}
	return db, nil
}
