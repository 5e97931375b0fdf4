// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// These are tables on the source. The row of statementTable with an empty id is for the
// recorders: its seen is when one of them last wrote.
const (
	statementTable = "shardid_preview"
	lookTable      = "shardid_preview_look"
	recorders      = ""
)

// table is the two tables on one database.
type table struct {
	db *sql.DB
	d  dialect.Dialect
}

func openTable(ctx context.Context, db *sql.DB) (table, error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return table{}, err
	}
	return table{db, server.Dialect}, nil
}

// Create creates the tables on the source where they are missing, so that programs need no
// right to do so.
func Create(ctx context.Context, source *sql.DB) error {
	t, err := openTable(ctx, source)
	if err != nil {
		return wrap("ask the source", err)
	}
	if err := t.create(ctx); err != nil {
		return wrap("create "+statementTable, err)
	}
	return nil
}

// clock is the database's expression for the seconds since 1970.
func (t table) clock() string {
	switch t.d.(type) {
	case dialect.Postgres:
		return "CAST(EXTRACT(EPOCH FROM now()) AS BIGINT)"
	case dialect.SQLite:
		return "CAST(strftime('%s', 'now') AS INTEGER)"
	}
	return "UNIX_TIMESTAMP()"
}

// DDL returns the statements that Create runs. The name is "mysql", "postgres" or "sqlite"; "mariadb" means "mysql".
// For another name the error says which there are.
func DDL(name string) (string, error) {
	d, err := dialect.Named(name)
	if err != nil {
		return "", fmt.Errorf("preview: %w", err)
	}
	return strings.Join(definitions(d.Name()), ";\n") + ";\n", nil
}

// definitions create the tables. Texts are stored as bytes, independent of the database's
// character set.
func definitions(dialectName string) []string {
	bytes := "BLOB"
	if dialectName == (dialect.Postgres{}).Name() {
		bytes = "BYTEA"
	}
	return []string{
		"CREATE TABLE IF NOT EXISTS " + statementTable + " (id VARCHAR(64) NOT NULL PRIMARY KEY, outcome INTEGER NOT NULL DEFAULT 0, times BIGINT NOT NULL DEFAULT 0," +
			" found BIGINT NOT NULL, seen BIGINT NOT NULL, statement " + bytes + ", reason " + bytes + ")",
		"CREATE TABLE IF NOT EXISTS " + lookTable + " (job VARCHAR(64) NOT NULL PRIMARY KEY, looked BIGINT NOT NULL DEFAULT 0, refused BIGINT NOT NULL DEFAULT 0)",
	}
}

// create creates the tables where they are missing.
func (t table) create(ctx context.Context) error {
	for _, text := range definitions(t.d.Name()) {
		if err := sqlrun.Create(ctx, t.db, text); err != nil {
			return err
		}
	}
	return nil
}

// run runs one statement, and repeats it when other writers conflict.
func (t table) run(ctx context.Context, text string, args ...any) error {
	return sqlrun.Retry(ctx, nil, func() error {
		return sqlrun.InTx(ctx, t.db, nil, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, dialect.Text(t.d, text), args...)
			return err
		})
	})
}

// insert inserts a row unless it exists.
func (t table) insert(ctx context.Context, into, columns, values string, args ...any) error {
	text := "INTO " + into + " (" + columns + ") VALUES (" + values + ")"
	if t.d.Name() == "mysql" {
		return t.run(ctx, "INSERT IGNORE "+text, args...)
	}
	return t.run(ctx, "INSERT "+text+" ON CONFLICT DO NOTHING", args...)
}

// makeRow inserts the row of a statement, or the row of the recorders.
func (t table) makeRow(ctx context.Context, id, statement string) error {
	return t.insert(ctx, statementTable, "id, found, seen, statement", "?, "+t.clock()+", "+t.clock()+", ?", id, []byte(statement))
}

// add adds new findings to a row. MySQL assigns columns from left to right, so that the
// outcome has to be the last one.
func (t table) add(ctx context.Context, id string, times int64, outcome sharding.Change, reason string) error {
	return t.run(ctx, "UPDATE "+statementTable+" SET times = times + ?, seen = "+t.clock()+
		", reason = CASE WHEN outcome < ? THEN ? ELSE reason END, outcome = CASE WHEN outcome < ? THEN ? ELSE outcome END WHERE id = ?",
		times, int(outcome), []byte(reason), int(outcome), int(outcome), id)
}

// missing reports whether the error says that the tables do not exist.
func missing(err error) bool { return err != nil && dialect.FaultOf(err) == dialect.NoTable }

// idOf is the key of a statement's row.
func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func wrap(doing string, err error) error {
	if dialect.FaultOf(err) == dialect.NoRight {
		return fmt.Errorf("preview: %s: %w; let `shardid migrate install` create the tables, and grant SELECT, INSERT and UPDATE on %s", doing, err, statementTable)
	}
	return fmt.Errorf("preview: %s: %w", doing, err)
}
