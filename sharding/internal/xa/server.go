// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// ErrUnable: the server keeps no prepared transactions.
var ErrUnable = errors.New("the server cannot prepare transactions")

// Able returns an error if a server does not keep prepared transactions after their connection has
// ended.
func Able(ctx context.Context, on dialect.Querier, s dialect.Server) error {
	switch {
	case s.Kind == dialect.KindPostgreSQL:
		var most int
		if err := on.QueryRowContext(ctx, "SELECT setting FROM pg_settings WHERE name = 'max_prepared_transactions'").Scan(&most); err != nil {
			return err
		}
		if most == 0 {
			return fmt.Errorf("%w: max_prepared_transactions is 0; set it to the number of connections, and restart the server", ErrUnable)
		}
		return nil
	case s.Kind == dialect.KindMySQL && s.AtLeast(8, 0), s.Kind == dialect.KindMariaDB && s.AtLeast(10, 5):
		if s.Cluster == dialect.Galera {
			return fmt.Errorf("%w: a Galera cluster supports no XA transactions", ErrUnable)
		}
		return nil
	case s.Kind == dialect.KindSQLite:
		return fmt.Errorf("%w: SQLite commits several files separately; keep rows that are written together in one file", ErrUnable)
	}
	return fmt.Errorf("%w: %s %s is not MySQL 8.0, MariaDB 10.5 or PostgreSQL", ErrUnable, s.Kind, s.Version)
}

// Begin returns the statements with which a branch begins. isolation is "" for the server's
// default.
func Begin(s dialect.Server, id ID, isolation string) []string {
	switch {
	case s.Name() == "postgres" && isolation != "":
		return []string{"BEGIN ISOLATION LEVEL " + isolation}
	case s.Name() == "postgres":
		return []string{"BEGIN"}
	case isolation != "":
		return []string{"SET TRANSACTION ISOLATION LEVEL " + isolation, "XA START " + id.on(s)}
	}
	return []string{"XA START " + id.on(s)}
}

// Prepare returns the statements that prepare a branch, on its connection.
func Prepare(s dialect.Server, id ID) []string {
	if s.Name() == "postgres" {
		return []string{"PREPARE TRANSACTION " + id.on(s)}
	}
	return []string{"XA END " + id.on(s), "XA PREPARE " + id.on(s)}
}

// End returns the statement that ends a prepared branch, on any connection.
func End(s dialect.Server, id ID, commit bool) string {
	words := map[bool]string{true: "COMMIT", false: "ROLLBACK"}
	if s.Name() == "postgres" {
		return words[commit] + " PREPARED " + id.on(s)
	}
	return "XA " + words[commit] + " " + id.on(s)
}

// Abandon returns the statements that end a branch which is not prepared, on its connection.
// Execute all of them even after an error: a deadlock ends a branch only partly.
func Abandon(s dialect.Server, id ID) []string {
	if s.Name() == "postgres" {
		return []string{"ROLLBACK"}
	}
	return []string{"XA END " + id.on(s), "XA ROLLBACK " + id.on(s)}
}

// IsUnknown reports whether a server has no such branch: it has ended, or, on MySQL, belongs to a
// connection that is alive.
func IsUnknown(err error) bool {
	return err != nil && (dialect.SQLState(err) == "42704" || strings.Contains(err.Error(), "Error 1397"))
}

// ErrStandby: the server is a copy that is perhaps about to take over. What it lists is not all: a
// standby of PostgreSQL lists no prepared transaction, and a replica of the others may not have applied
// everything.
var ErrStandby = errors.New("the server is a standby or read-only, and may not have every transaction yet; let the pool reach the primary")

// mustBePrimary returns ErrStandby if a server of MySQL or MariaDB is read-only, also for users who may write there.
func mustBePrimary(ctx context.Context, on dialect.Querier) error {
	var readOnly string
	if err := on.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only").Scan(&readOnly); err != nil {
		return err
	}
	if readOnly != "0" && readOnly != "OFF" {
		return ErrStandby
	}
	return nil
}

// List returns our prepared branches on a server, or ErrStandby. If the server does not distinguish
// databases, it includes those of its other databases.
func List(ctx context.Context, pool *sql.DB, s dialect.Server) (all []ID, err error) {
	if s.Name() == "postgres" {
		return listPostgres(ctx, pool)
	}
	conn, err := pool.Conn(ctx) // other connections may lead to other servers
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := mustBePrimary(ctx, conn); err != nil {
		return nil, err
	}
	err = dialect.Each(ctx, conn, func(rows *sql.Rows) error {
		var formatID int64
		var gtrid, bqual int
		var data []byte
		err := rows.Scan(&formatID, &gtrid, &bqual, &data)
		if id, ours := parseXID(formatID, gtrid, bqual, string(data)); ours {
			all = append(all, id)
		}
		return err
	}, "XA RECOVER")
	return all, err
}

// listPostgres needs one statement: a standby could be promoted between two.
func listPostgres(ctx context.Context, pool *sql.DB) (all []ID, err error) {
	err = dialect.Each(ctx, pool, func(rows *sql.Rows) error {
		var standby bool
		var gid string
		if err := rows.Scan(&standby, &gid); err != nil {
			return err
		}
		if standby {
			return ErrStandby
		}
		if id, ours := parse(gid); ours {
			all = append(all, id)
		}
		return nil
	}, "SELECT pg_is_in_recovery(), '' UNION ALL SELECT FALSE, gid FROM pg_prepared_xacts WHERE database = current_database()")
	return all, err
}
