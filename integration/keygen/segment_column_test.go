// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/sqlstore"
)

// laxPool has sessions that cut numbers to fit their columns, and an answer to
// UPDATE that counts the rows that were found and not those that were changed.
func laxPool(t *testing.T, dsn string, foundRows bool) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Params = map[string]string{"sql_mode": "''"}
	cfg.ClientFoundRows = foundRows
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// onMySQLAndMariaDB runs a test on both, with a database that has a store's tables.
func onMySQLAndMariaDB(t *testing.T, test func(t *testing.T, db *sql.DB, dsn string)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		db, _ := database.MariaDB(m).Store(t)
		test(t, db, m.DSN("app"))
	})
	t.Run("MySQL", func(t *testing.T) {
		m := server.RunMySQL(t)
		db, _ := database.MySQL(m).Store(t)
		test(t, db, m.DSN("app"))
	})
}

// repeated counts ids that two processes were given, who take ranges in turn until
// each was refused.
func repeated(t *testing.T, a, b keygen.Source, n int64) (given, twice int, refused error) {
	t.Helper()
	seen := map[int64]bool{}
	for failures := 0; failures < 2; {
		failures = 0
		for _, source := range []keygen.Source{a, b} {
			span, err := source.Reserve(t.Context(), n)
			if err != nil {
				failures++
				refused = err
				continue
			}
			for id := span.First; id <= span.Last(); id++ {
				given++
				if seen[id] {
					twice++
				}
				seen[id] = true
			}
		}
		if given > 100_000 {
			t.Fatalf("%d ids were given, %d of them twice, and there is no end", given, twice)
		}
	}
	return given, twice, refused
}

func TestAColumnThatCutsNumbersGivesNoRangeTwice(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for column, end := range map[string]int64{
			"SMALLINT": 1<<15 - 1, "MEDIUMINT UNSIGNED": 1<<24 - 1, "INT": 1<<31 - 1, "INT UNSIGNED": 1<<32 - 1,
		} {
			for _, foundRows := range []bool{true, false} {
				for _, guarded := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, clientFoundRows %v, guarded %v", column, foundRows, guarded), func(t *testing.T) {
						database.Exec(t, db, "UPDATE leaf_alloc SET max_id = 1")
						database.Exec(t, db, "ALTER TABLE leaf_alloc MODIFY max_id "+column+" NOT NULL")
						source := func() keygen.Source {
							store := database.StoreOn(t, laxPool(t, dsn, foundRows))
							if guarded {
								return store.GuardedTag("orders")
							}
							return store.Tag("orders")
						}
						a, b := source(), source()
						if guarded { // which raises the counter once
							database.Exec(t, db, "UPDATE leaf_alloc SET step = 1")
							if _, err := a.Reserve(t.Context(), 1); err != nil {
								t.Fatal(err)
							}
						}
						database.Exec(t, db, fmt.Sprintf("UPDATE leaf_alloc SET max_id = %d", end-2647))
						given, twice, err := repeated(t, a, b, 1000)
						if given != 2000 || twice != 0 || !errors.Is(err, keygen.ErrExhausted) {
							t.Errorf("%d ids given, %d of them twice, then %v", given, twice, err)
						}
					})
				}
			}
		}
	})
}

func TestAColumnThatHoldsNoWholeNumbersIsRefusedAtStart(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for _, column := range []string{"DOUBLE", "VARCHAR(20)", "DECIMAL(30,2)"} {
			database.Exec(t, db, "ALTER TABLE leaf_alloc MODIFY max_id "+column+" NOT NULL")
			mustRefuse(t, database.StoreOn(t, laxPool(t, dsn, true)), "leaf_alloc.max_id", "bigint")
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		open := database.Postgres(server.RunPostgres(t))
		db, _ := open.Store(t)
		database.Exec(t, db, "ALTER TABLE leaf_alloc ALTER max_id DROP DEFAULT, ALTER max_id TYPE double precision")
		mustRefuse(t, database.StoreOn(t, open(t)), "leaf_alloc.max_id", "bigint")
	})
	t.Run("SQLite", func(t *testing.T) {
		db, store := database.SQLite(t).Store(t)
		database.Exec(t, db, "DROP TABLE leaf_alloc")
		database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id TEXT, step INT, update_time TIMESTAMP)")
		database.Exec(t, db, "INSERT INTO leaf_alloc VALUES ('orders', '10', 10, NULL)")
		mustRefuse(t, store, "leaf_alloc.max_id", "bigint")
	})
}

func TestATableThatForgetsWithItsServerIsRefusedAtStart(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for _, engine := range []string{"MyISAM", "MEMORY"} {
			database.Exec(t, db, "ALTER TABLE leaf_alloc ENGINE = "+engine)
			mustRefuse(t, database.StoreOn(t, laxPool(t, dsn, false)), engine, "InnoDB")
		}
	})
}

// A trigger is not seen by who has no right to triggers, but what it does is.
func TestATriggerThatSetsTheCounterIsFoundBeforeAnIDIsGiven(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for _, foundRows := range []bool{true, false} {
			for what, body := range map[string]string{
				"keeps it":          "SET NEW.max_id = OLD.max_id",
				"raises it by less": "SET NEW.max_id = OLD.max_id + 1",
				"hides the answer":  "SET NEW.description = 'seen'", // it takes LAST_INSERT_ID out of the answer
			} {
				t.Run(fmt.Sprintf("%s, clientFoundRows %v", what, foundRows), func(t *testing.T) {
					database.Exec(t, db, "CREATE TRIGGER meddler BEFORE UPDATE ON leaf_alloc FOR EACH ROW "+body)
					defer database.Exec(t, db, "DROP TRIGGER meddler")
					words := []string{"trigger", "max_id"}
					if what == "hides the answer" {
						words = []string{"trigger", "hides the answer"}
					}
					mustRefuse(t, database.StoreOn(t, laxPool(t, dsn, foundRows)), words...)
				})
			}
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		db, store := database.Postgres(server.RunPostgres(t)).Store(t)
		database.Exec(t, db, "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.max_id = OLD.max_id + 1; RETURN NEW; END'")
		database.Exec(t, db, "CREATE TRIGGER meddler BEFORE UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION meddle()")
		mustRefuse(t, store, "trigger")
		database.Exec(t, db, "CREATE OR REPLACE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.description = ''seen''; RETURN NEW; END'")
		if _, err := store.Tag("orders").Reserve(t.Context(), 10); err != nil {
			t.Errorf("a trigger that leaves max_id alone: %v", err)
		}
	})
}

// mustRefuse wants a SetupError with words in it from the first reservation.
func mustRefuse(t *testing.T, store *sqlstore.Store, words ...string) {
	t.Helper()
	_, err := store.Tag("orders").Reserve(t.Context(), 10)
	mustBeSetup(t, err, words...)
}
