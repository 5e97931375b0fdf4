// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// connectTimeout is how long a server may take to accept the connection.
const connectTimeout = 5 * time.Second

// Forms names the forms that Open takes, for messages and help.
const Forms = "user:password@tcp(host:3306)/shop, mysql://user:password@host:3306/shop, postgres://user:password@host:5432/shop, or the path of a SQLite file"

// Unnamed is the error of a command for which neither --source nor the variable names the
// database.
func Unnamed(variable string) error {
	return input.Errorf("no database is named; give --source or set %s to %s", variable, Forms)
}

var (
	mysqlScheme    = regexp.MustCompile(`^(?i:mysql|mariadb)://`)
	postgresScheme = regexp.MustCompile(`^(?i:postgres|postgresql)://`)
	sqliteScheme   = regexp.MustCompile(`^(?i:sqlite3?://|sqlite3?:|file:)`)
	mysqlAddress   = regexp.MustCompile(`@|\w\([^)]*\)/`)
)

// Open opens the database with the name dsn for reading, and checks that it answers. The
// caller closes it.
func Open(ctx context.Context, dsn string) (*sql.DB, error) {
	switch {
	case dsn == "":
		return nil, input.Errorf("no database is named; give %s", Forms)
	case mysqlScheme.MatchString(dsn):
		return openURL(ctx, dsn)
	case postgresScheme.MatchString(dsn):
		return openPostgres(ctx, dsn)
	case sqliteScheme.MatchString(dsn):
		return openFileURL(ctx, dsn)
	case isServer(dsn):
		return openMySQL(ctx, dsn, dsn)
	}
	if scheme, _, is := strings.Cut(dsn, "://"); is && !exists(dsn) {
		return nil, input.Errorf("%q is not the scheme of a database; give %s", dialect.RedactDSN(scheme), Forms)
	}
	// It may be a server whose address was left out.
	if !exists(dsn) {
		return nil, input.Errorf("there is no file %s; name an existing SQLite file, or a server as %s", dialect.RedactDSN(dsn), "user:password@tcp(host:3306)/shop or postgres://user:password@host:5432/shop")
	}
	return openFile(ctx, dsn, "", dialect.RedactDSN(dsn))
}

// isServer reports whether dsn names a server; the name of an existing file may have the
// same form.
func isServer(dsn string) bool {
	return mysqlScheme.MatchString(dsn) || postgresScheme.MatchString(dsn) || mysqlAddress.MatchString(dsn) && !exists(dsn)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// openFileURL opens "file:path?settings" and "sqlite:path", with or without slashes before
// the path.
func openFileURL(ctx context.Context, dsn string) (*sql.DB, error) {
	rest := dsn[len(sqliteScheme.FindString(dsn)):]
	if strings.HasPrefix(strings.ToLower(dsn), "file://") {
		rest = rest[len("//"):]
	}
	path, settings, _ := strings.Cut(rest, "?")
	return openFile(ctx, unescape(path), settings, dialect.RedactDSN(dsn))
}
