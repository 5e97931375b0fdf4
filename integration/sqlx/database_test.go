// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sqlxhook"
)

// sqlxDatabase is a database of one family, and how its SQL differs.
type sqlxDatabase struct {
	*sqlx.DB
	most   int    // parameters of one statement
	upsert string // what follows VALUES to change rows that are there
	taken  string // the value that was to be inserted, as upsert calls it
	cast   string // of the parameter :id to an integer of 64 bits
	time   string // the type of a point in time
}

const (
	onDuplicate = "ON DUPLICATE KEY UPDATE"
	onConflict  = "ON CONFLICT (id) DO UPDATE SET"
)

func TestSqlxHookOnSQLite(t *testing.T) {
	db, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	sqlxDatabase{db, 32766, onConflict, "excluded.%s", "CAST(:id AS INTEGER)", "DATETIME"}.tell(t)
}

func TestSqlxHookOnMariaDB(t *testing.T) {
	db := sqlx.NewDb(server.ShareMariaDB(t).Open(t, "shop"), "mysql")
	sqlxDatabase{db, 65535, onDuplicate, "VALUES(%s)", "CAST(:id AS SIGNED)", "DATETIME"}.tell(t)
}

func TestSqlxHookOnPostgreSQL(t *testing.T) {
	db := sqlx.NewDb(server.SharePostgres(t).Open(t, "shop"), "pgx")
	sqlxDatabase{db, 65535, onConflict, "excluded.%s", ":id::bigint", "TIMESTAMP"}.tell(t)
}

// tell runs all stories, each with an empty table of bills.
func (db sqlxDatabase) tell(t *testing.T) {
	t.Helper()
	for _, stories := range []map[string]sqlxStory{sqlxBreaks, sqlxKeys, sqlxEquivalence} {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				for _, table := range []string{"bills", "person", "kinds"} {
					db.MustExec("DROP TABLE IF EXISTS " + table)
				}
				db.MustExec(fmt.Sprintf("CREATE TABLE bills (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL DEFAULT 0, note VARCHAR(20000) NOT NULL DEFAULT '', at %s)", db.time))
				story(t, db, sqlxHook(t, sqlxhook.Config{}))
			})
		}
	}
}

type sqlxStory func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook)

type bill struct {
	ID     int64  `db:"id" keygen:"bill"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

func sqlxHook(t *testing.T, c sqlxhook.Config) *sqlxhook.Hook {
	t.Helper()
	c.Generators = kindsOfGenerators()
	h, err := sqlxhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// bills returns the rows of the table in the order of their ids, and empties it.
func (db sqlxDatabase) bills(t *testing.T) []bill {
	t.Helper()
	var rows []bill
	if err := db.Select(&rows, "SELECT id, user_id, note FROM bills ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	db.MustExec("DELETE FROM bills")
	return rows
}
