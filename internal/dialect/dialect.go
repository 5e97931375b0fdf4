package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Dialect is one family of databases.
type Dialect interface {
	// Name is "mysql" (which includes MariaDB), "postgres" or "sqlite".
	Name() string
	// Quote returns ident as a quoted identifier, quote characters doubled.
	Quote(ident string) string
	// Placeholder returns what stands for the n-th argument, counted from 1.
	Placeholder(n int) string
}

// Server is a database as found by Detect.
type Server struct {
	Dialect
	Version string // as the server says it, "10.11.6-MariaDB" say
}

// ErrUnknown: the database is none of the supported ones.
var ErrUnknown = errors.New("unknown database; supported are MySQL, MariaDB, PostgreSQL and SQLite")

// Named returns the dialect called name; "mariadb" is an alias of "mysql",
// "postgresql" one of "postgres".
func Named(name string) (Dialect, error) {
	switch strings.ToLower(name) {
	case "mysql", "mariadb":
		return MySQL{}, nil
	case "postgres", "postgresql":
		return Postgres{}, nil
	case "sqlite", "sqlite3":
		return SQLite{}, nil
	}
	return nil, fmt.Errorf("%w, not %q", ErrUnknown, name)
}

// Querier is the part of *sql.DB, *sql.Conn and *sql.Tx that Detect needs.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Detect asks the database what it is, with at most two queries. The driver's
// type is no guide, as instrumented drivers wrap it.
func Detect(ctx context.Context, db Querier) (Server, error) {
	var v string
	first := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v)
	if first == nil {
		return byVersion(v)
	}
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&v); err != nil {
		// Of the two errors the first tells why a MySQL server did not answer.
		if err.Error() != first.Error() {
			first = errors.Join(first, err)
		}
		return Server{}, fmt.Errorf("detect the database: %w", first)
	}
	return Server{SQLite{}, v}, nil
}

// byVersion tells the databases that answer VERSION() apart.
func byVersion(v string) (Server, error) {
	if version, ok := strings.CutPrefix(v, "PostgreSQL "); ok {
		version, _, _ = strings.Cut(version, " on ") // the machine follows
		return Server{Postgres{}, version}, nil
	}
	if v == "" || v[0] < '0' || v[0] > '9' {
		return Server{}, fmt.Errorf("%w, not %s", ErrUnknown, v)
	}
	return Server{MySQL{}, v}, nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,63}$`)

// ErrIdentifier: a name cannot be used as a table or column name.
var ErrIdentifier = errors.New("not a plain SQL name (letters, digits, _ and $, at most 64, not starting with a digit)")

// CheckIdent refuses names that would need more than plain quoting, so that a
// name taken from a configuration can never carry SQL.
func CheckIdent(name string) error {
	if !identifier.MatchString(name) {
		return fmt.Errorf("%q: %w", name, ErrIdentifier)
	}
	return nil
}
