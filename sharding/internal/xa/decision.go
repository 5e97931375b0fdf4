// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// Table has the decisions of a database, and the identity of the database.
const Table = "shardid_transactions"

// ErrNoTable: the database has no table for decisions.
var ErrNoTable = errors.New("the table " + Table + " is missing")

// The states of a row.
const (
	committed  = "committed"
	aborted    = "aborted"
	isIdentity = "identity"
)

// Keep is how long a decision is kept that its program has not deleted. It must be longer than a
// program can be stopped, or wait for an answer, between its PREPARE and its COMMIT, or between its
// COMMIT and the question about it: it would find no decision then, and make the opposite one.
const Keep = 30 * 24 * time.Hour

// DDL returns the statement that creates the table.
func DDL(d dialect.Dialect) string {
	ending := ""
	if d.Name() == "mysql" {
		ending = " ENGINE=InnoDB CHARACTER SET utf8mb4"
	}
	return dialect.Text(d, `CREATE TABLE IF NOT EXISTS "`+Table+`" ("id" VARCHAR(32) NOT NULL PRIMARY KEY, "state" VARCHAR(10) NOT NULL, "participants" TEXT NOT NULL, "decided" BIGINT NOT NULL)`) + ending
}

// DB is a pool, or one connection.
type DB interface {
	dialect.Querier
	sqlrun.Execer
}

// Create creates the table, and gives the database its identity if it has none.
func Create(ctx context.Context, db DB, d dialect.Dialect) error {
	if err := sqlrun.Create(ctx, db, DDL(d)); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, insertNew(d), isIdentity, isIdentity, NewTransaction(), 0)
	return err
}

// insert returns the statement that adds a row; insertNew adds it only if it does not exist.
func insert(d dialect.Dialect) string {
	return dialect.Text(d, `INSERT INTO "`+Table+`" ("id", "state", "participants", "decided") VALUES (?, ?, ?, ?)`)
}

func insertNew(d dialect.Dialect) string {
	if d.Name() == "mysql" {
		return strings.Replace(insert(d), "INSERT", "INSERT IGNORE", 1)
	}
	return insert(d) + " ON CONFLICT DO NOTHING"
}

// Identity returns the identity of a database, which differs from those of all others, copies of it
// on the same server included. Its query does not abort a transaction of PostgreSQL if the table is
// missing.
func Identity(ctx context.Context, on dialect.Querier, d dialect.Dialect) (string, error) {
	name := "DATABASE()"
	if d.Name() == "postgres" {
		var missing bool // information_schema hides tables on which the user has no right
		if err := on.QueryRowContext(ctx, "SELECT to_regclass(quote_ident(current_schema()) || '."+Table+"') IS NULL").Scan(&missing); err != nil {
			return "", err
		}
		if missing {
			return "", ErrNoTable
		}
		name = "current_database() || '.' || current_schema()"
	}
	var drawn, database string
	err := on.QueryRowContext(ctx, dialect.Text(d, `SELECT "participants", `+name+` FROM "`+Table+`" WHERE "id" = '`+isIdentity+`'`)).Scan(&drawn, &database)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("%w its row of identity: create it again", ErrNoTable)
	case err != nil && dialect.FaultOf(err) == dialect.NoTable:
		return "", ErrNoTable
	case err != nil:
		return "", err
	}
	sum := sha256.Sum256([]byte(drawn + "\x00" + database))
	return hex.EncodeToString(sum[:16]), nil
}

// Decision returns the statement, and its arguments, that decides a transaction and is executed in
// it. participants are the names under which the resolver knows its databases.
func Decision(d dialect.Dialect, transaction string, participants []string) (string, []any, error) {
	names, err := json.Marshal(participants)
	return insert(d), []any{transaction, committed, string(names), time.Now().Unix()}, err
}

// Committed reads the decision on a transaction. If there is none, it decides against the
// transaction; a program that would decide for it later then finds the row. Committed waits for a
// decision that is about to be committed. On a copy that does not have all decisions yet it makes none.
func Committed(ctx context.Context, db DB, d dialect.Dialect, transaction string) (bool, error) {
	if pool, is := db.(*sql.DB); is { // other connections may lead to other servers
		conn, err := pool.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer func() { _ = conn.Close() }()
		db = conn
	}
	if d.Name() == "mysql" { // a standby of PostgreSQL refuses the row from everybody
		if err := mustBePrimary(ctx, db); err != nil {
			return false, err
		}
	}
	if _, err := db.ExecContext(ctx, insertNew(d), transaction, aborted, "[]", time.Now().Unix()); err != nil {
		return false, err
	}
	var state string
	err := db.QueryRowContext(ctx, dialect.Text(d, `SELECT "state" FROM "`+Table+`" WHERE "id" = ?`), transaction).Scan(&state)
	return state == committed, err
}

// Forget deletes a decision.
func Forget(ctx context.Context, db DB, d dialect.Dialect, transaction string) error {
	_, err := db.ExecContext(ctx, dialect.Text(d, `DELETE FROM "`+Table+`" WHERE "id" = ?`), transaction)
	return err
}

// Decided returns the decisions for transactions that are so old that no program can still ask about
// them, each with the names of its databases.
func Decided(ctx context.Context, db DB, d dialect.Dialect) (map[string][]string, error) {
	all := map[string][]string{}
	err := dialect.Each(ctx, db, func(rows *sql.Rows) error {
		var id, names string
		if err := rows.Scan(&id, &names); err != nil {
			return err
		}
		var list []string
		err := json.Unmarshal([]byte(names), &list)
		all[id] = list
		return err
	}, dialect.Text(d, `SELECT "id", "participants" FROM "`+Table+`" WHERE "state" = '`+committed+`' AND "decided" < ?`), time.Now().Add(-Keep).Unix())
	return all, err
}

// ForgetAborted deletes decisions against transactions that are so old that no program can still
// execute them.
func ForgetAborted(ctx context.Context, db DB, d dialect.Dialect) error {
	_, err := db.ExecContext(ctx, dialect.Text(d, `DELETE FROM "`+Table+`" WHERE "state" = '`+aborted+`' AND "decided" < ?`), time.Now().Add(-Keep).Unix())
	return err
}
