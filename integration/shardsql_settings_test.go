// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// One table has one time zone and one sql_mode. Shards with different ones would give results
// that no table gives.
func TestDatabasesThatAreSetUpDifferentlyAreRefused(t *testing.T) {
	for name, m := range map[string]interface {
		DSN(database string) string
		Open(tb testing.TB, database string) *sql.DB
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			open := func(db, params string) *sql.DB {
				t.Helper()
				c, err := sql.Open("mysql", m.DSN(db)+"?"+params)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			database.Exec(t, m.Open(t, "app"), "CREATE TABLE notes_0 (id BIGINT PRIMARY KEY, at DATETIME)")
			database.Exec(t, m.Open(t, "alike"), "CREATE TABLE notes_1 (id BIGINT PRIMARY KEY, at DATETIME)")
			for params, setting := range map[string]string{
				"": "", "time_zone=%27SYSTEM%27": "", "time_zone=%27-05%3A00%27": "time_zone", "sql_mode=ANSI_QUOTES": "sql_mode",
				"collation=utf8mb4_bin": "collation_connection", "max_sort_length=64": "max_sort_length", "parseTime=true": "parseTime",
			} {
				dbs := sharding.DBs{"a": open("app", ""), "b": open("alike", params)}
				places, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
				if err != nil {
					t.Fatal(err)
				}
				router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: places})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
				t.Cleanup(func() { _ = routed.Close() })
				one := "SELECT COUNT(*) FROM notes WHERE id = 1"
				for _, query := range []string{one, "SELECT COUNT(*) FROM notes"} {
					var n int
					err := routed.QueryRowContext(t.Context(), query).Scan(&n)
					if setting == "" && err != nil || setting != "" && (!errors.Is(err, sharding.ErrSettings) || !strings.Contains(err.Error(), setting)) {
						t.Errorf("%s: %s: %v", params, query, err)
					}
				}
				if setting != "" {
					prepared := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
					t.Cleanup(func() { _ = prepared.Close() })
					if err := countPrepared(t, prepared, one); !errors.Is(err, sharding.ErrSettings) {
						t.Errorf("%s: prepared: %v", params, err)
					}
				}
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tx.ExecContext(t.Context(), "DELETE FROM notes WHERE id = 1")
				if (setting != "") != errors.Is(err, sharding.ErrSettings) {
					t.Errorf("%s: in a transaction: %v", params, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
				if n := dbs["b"].Stats().InUse; n != 0 {
					t.Errorf("%s: %d connections are left in use", params, n)
				}
			}
		})
	}
}

// A shard that returns a part of its groups, or whose driver rounds floats, would give the totals of no table.
func TestASettingThatCutsOrRoundsTheRowsOfShardsIsRefused(t *testing.T) {
	maria, mysql, postgres := server.ShareMariaDB(t), server.ShareMySQL(t), server.SharePostgres(t)
	ofMySQL := []string{"SET div_precision_increment = 10", "SET max_sort_length = 4", "SET sql_select_limit = 1"}
	for name, of := range map[string]struct {
		open    namedDatabase
		dsn     func(string) string
		param   string
		further []string
	}{
		"MariaDB":    {maria.Open, maria.DSN, "sql_select_limit=5", ofMySQL},
		"MySQL":      {mysql.Open, mysql.DSN, "sql_select_limit=5", ofMySQL},
		"PostgreSQL": {postgres.Open, postgres.DSN, "sslmode=disable&extra_float_digits=0", []string{"SET extra_float_digits = 0", "SELECT set_config('extra_float_digits', '-1', false)"}},
	} {
		t.Run(name, func(t *testing.T) {
			made := of.open(t, "cutting")
			spread, err := sharding.Spread([]string{"a"}, 4, "notes_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range spread.Targets() {
				database.Exec(t, made, "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, size DOUBLE PRECISION)")
			}
			routed := func(home *sql.DB) *sql.DB {
				t.Helper()
				router, err := sharding.New(sharding.DBs{"a": home}, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(4), Map: spread})
				if err != nil {
					t.Fatal(err)
				}
				db := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
				t.Cleanup(func() { _ = db.Close() })
				return db
			}
			driver := map[bool]string{true: "postgres", false: "mysql"}[name == "PostgreSQL"] // lib/pq reads floats as texts
			queried(t, routed(opened(t, driver, of.dsn("cutting")+"?"+of.param)), "SELECT COUNT(DISTINCT size) FROM notes", sharding.ErrSettings)
			all := routed(made)
			for _, set := range of.further {
				c, err := all.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				queried(t, c, "SELECT COUNT(DISTINCT size) FROM notes", nil)
				database.Exec(t, c, set)
				queried(t, c, "SELECT COUNT(DISTINCT size) FROM notes", sharding.ErrSettings)
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replaceable is a pool whose new connections reach the server that a name leads to at the time.
type replaceable struct{ dsn string }

func (r *replaceable) Connect(ctx context.Context) (driver.Conn, error) {
	of, err := mysql.MySQLDriver{}.OpenConnector(r.dsn)
	if err != nil {
		return nil, err
	}
	return of.Connect(ctx)
}

func (*replaceable) Driver() driver.Driver { return mysql.MySQLDriver{} }

// After a fail-over the same name leads to another server, which may be set up differently.
func TestASettingOfAServerThatHasTakenOverIsNoticedWithinAMinute(t *testing.T) {
	m := server.ShareMariaDB(t)
	for i, db := range []string{"taken_a", "taken_b"} {
		database.Exec(t, m.Open(t, db), fmt.Sprintf("CREATE TABLE notes_%d (id BIGINT PRIMARY KEY, at DATETIME)", i))
	}
	synctest.Test(t, func(t *testing.T) {
		home, shard := sql.OpenDB(&replaceable{m.DSN("taken_a")}), &replaceable{m.DSN("taken_b")}
		dbs := sharding.DBs{"a": home, "b": sql.OpenDB(shard)}
		defer func() { _ = errors.Join(home.Close(), dbs["b"].Close()) }()
		dbs["b"].SetMaxIdleConns(-1) // each statement has a new connection
		places, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: places})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
		defer func() { _ = routed.Close() }()
		const all = "SELECT COUNT(*) FROM notes"
		queried(t, routed, all, nil)
		before := shard.dsn
		shard.dsn += "?time_zone=%27-05%3A00%27"
		time.Sleep(time.Minute)
		queried(t, routed, all, sharding.ErrSettings)
		queried(t, routed, all, sharding.ErrSettings)
		shard.dsn = before
		queried(t, routed, all, nil)
	})
}

func countPrepared(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	st, err := db.PrepareContext(t.Context(), query)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	return st.QueryRowContext(t.Context()).Scan(new(int))
}

// A SET, a user variable, and what FOUND_ROWS() and ROW_COUNT() are about, belong to one
// connection. Of one table every statement of a session would see them: a statement that goes to
// another connection is refused.
func TestWhatASessionHasSetIsNotLostOnTheWayToAnotherDatabase(t *testing.T) {
	servers := map[string]interface {
		Open(tb testing.TB, database string) *sql.DB
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t), "PostgreSQL": server.SharePostgres(t)}
	for name, m := range servers {
		t.Run(name, func(t *testing.T) {
			routed := sessions(t, m.Open(t, "set_a"), m.Open(t, "set_b"))
			set := "SET time_zone = '+05:00'"
			if name == "PostgreSQL" {
				set = "SET TimeZone TO 'Asia/Tokyo'"
			}
			const home, other, all = "SELECT COUNT(*) FROM notes WHERE id = 2", "SELECT COUNT(*) FROM notes WHERE id = 1", "SELECT COUNT(*) FROM notes"
			c, err := routed.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			queried(t, c, other, nil)
			database.Exec(t, c, set)
			queried(t, c, home, nil)
			queried(t, c, other, sharding.ErrSettings)
			queried(t, c, all, sharding.ErrSettings)
			for _, text := range []string{"BEGIN", "ROLLBACK"} { // which ends no SET of before
				database.Exec(t, c, text)
			}
			queried(t, c, other, sharding.ErrSettings)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			queried(t, routed, all, nil) // the session has ended, and its connection is not used for others

			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			database.Exec(t, tx, set)
			queried(t, tx, home, nil)
			queried(t, tx, other, sharding.ErrSettings)
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			queried(t, routed, other, nil)
			parsingIsThatOfTheDataSourceName(t, routed, map[bool]string{false: "SET sql_mode = 'ANSI_QUOTES'", true: "SET standard_conforming_strings TO off"}[name == "PostgreSQL"])
			if name == "PostgreSQL" {
				return
			}

			c, err = routed.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			database.Exec(t, c, "SET @x = 3")
			queried(t, c, other, nil)
			queried(t, c, "SELECT @x + COUNT(*) FROM notes WHERE id = 2", nil)
			queried(t, c, "SELECT @x + COUNT(*) FROM notes WHERE id = 1", sharding.ErrSettings)
			variablesOfShards(t, routed)
			queried(t, c, "SELECT SQL_CALC_FOUND_ROWS COUNT(*) FROM notes WHERE id = 2", nil)
			queried(t, c, "SELECT FOUND_ROWS()", nil)
			queried(t, c, "SELECT SQL_CALC_FOUND_ROWS COUNT(*) FROM notes WHERE id = 1", nil)
			queried(t, c, "SELECT FOUND_ROWS()", sharding.ErrSettings)
			database.Exec(t, c, "UPDATE notes SET at = NOW() WHERE id = 2")
			queried(t, c, "SELECT FOUND_ROWS()", sharding.ErrSettings) // an UPDATE does not change it
			database.Exec(t, c, "UPDATE notes SET at = NOW() WHERE id = 1")
			queried(t, c, "SELECT ROW_COUNT()", sharding.ErrSettings)
			database.Exec(t, c, "INSERT INTO notes (id) VALUES (4)")
			queried(t, c, other, nil)
			queried(t, c, "SELECT LAST_INSERT_ID()", nil)
			database.Exec(t, c, "INSERT INTO notes (id) VALUES (5)")
			queried(t, c, home, nil)
			queried(t, c, "SELECT LAST_INSERT_ID()", sharding.ErrSettings)
			queried(t, c, "SELECT @@last_insert_id", sharding.ErrSettings)
			warningsOfShards(t, routed)
		})
	}
}

// warningsOfShards are those of the statement before, which may have failed.
func warningsOfShards(t *testing.T, routed *sql.DB) {
	t.Helper()
	for _, about := range []string{"SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SHOW ERRORS", "SELECT @@warning_count", "SELECT @@session.error_count"} {
		for statement, found := range map[string]bool{
			"SELECT COUNT(CAST('x' AS SIGNED)) FROM notes WHERE id = 2": true, // at home
			"SELECT COUNT(CAST('x' AS SIGNED)) FROM notes WHERE id = 1": false,
			"SELECT COUNT(CAST('x' AS SIGNED)) FROM notes":              false,
			"INSERT INTO notes (id) VALUES (5)":                         false, // is there
		} {
			c, err := routed.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			queried(t, c, "SELECT COUNT(*) FROM notes WHERE id = 2", nil)
			_, _ = c.ExecContext(t.Context(), statement)
			err = c.QueryRowContext(t.Context(), about).Scan(new(any), new(any), new(any))
			if found == errors.Is(err, sharding.ErrSettings) {
				t.Errorf("%s; %s: %v", statement, about, err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A lock or a setting of a connection to a shard would stay there, in its pool, and no later statement would find it.
func TestAStatementOnShardsChangesNoLockAndNoSettingOfItsConnection(t *testing.T) {
	for name, of := range map[string]struct {
		db interface {
			Open(tb testing.TB, database string) *sql.DB
		}
		says []string
	}{
		"MariaDB": {server.ShareMariaDB(t), []string{"GET_LOCK('x', 1)", "RELEASE_LOCK('x')", "1 + release_all_locks()"}},
		"MySQL":   {server.ShareMySQL(t), []string{"GET_LOCK('x', 1)", "RELEASE_LOCK('x')", "1 + release_all_locks()"}},
		"PostgreSQL": {server.SharePostgres(t), []string{
			"pg_advisory_lock(id)", "pg_catalog.pg_try_advisory_lock_shared(id)", "pg_advisory_unlock(id)", "set_config('app.x', '1', false)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			routed := sessions(t, of.db.Open(t, "kept_a"), of.db.Open(t, "kept_b"))
			for _, says := range of.says {
				for _, text := range []string{"SELECT " + says + " FROM notes WHERE id = 1", "SELECT COUNT(*) FROM notes WHERE id = 2 AND (SELECT " + says + ") IS NULL"} {
					if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrSettings) {
						t.Errorf("%s: %v", text, err)
					}
				}
			}
			if name == "PostgreSQL" { // it ends with the transaction
				database.Exec(t, routed, "SELECT pg_advisory_xact_lock(id) FROM notes WHERE id = 1")
				saysSetLocal(t, routed)
			}
		})
	}
}

// saysSetLocal executes set_config, which sets a connection to the home database, before statements on each shard.
func saysSetLocal(t *testing.T, routed *sql.DB) {
	t.Helper()
	refused := 0
	for id := range 2 {
		for _, first := range []string{"SELECT set_config('app.x', '1', true)", "SET LOCAL app.x = '1'"} {
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			database.Exec(t, tx, first)
			_, err = tx.ExecContext(t.Context(), "SELECT COUNT(*) FROM notes WHERE id = "+strconv.Itoa(id+1)+" AND current_setting('app.x') = '1'")
			if err != nil && (strings.HasPrefix(first, "SET") || !strings.Contains(err.Error(), "SET LOCAL")) {
				t.Errorf("%s: %v", first, err)
			} else if err != nil {
				refused++
			}
			_ = tx.Rollback()
		}
	}
	if refused != 1 {
		t.Errorf("set_config is refused on %d of 2 databases", refused)
	}
}

// parsingIsThatOfTheDataSourceName changes how a session's database at home parses SQL. There is a shard in it, too.
func parsingIsThatOfTheDataSourceName(t *testing.T, routed *sql.DB, set string) {
	t.Helper()
	c, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, c, set)
	queried(t, c, "SELECT 1", nil)
	for range 2 {
		queried(t, c, "SELECT COUNT(*) FROM notes WHERE id = 2", sharding.ErrSettings)
		database.Exec(t, c, "BEGIN")
		database.Exec(t, c, "ROLLBACK")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	queried(t, routed, "SELECT COUNT(*) FROM notes WHERE id = 2", nil)
}

// variablesOfShards sets user variables on connections of shards, which a session holds only for a transaction.
func variablesOfShards(t *testing.T, routed *sql.DB) {
	t.Helper()
	const assigned, variable = "SELECT @n := COUNT(*) FROM notes WHERE id = ", "SELECT @n IS NULL"
	for id, want := range map[string]error{"2": nil, "1": sharding.ErrSettings} { // 2 is at home
		c, err := routed.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		queried(t, c, assigned+id, nil)
		queried(t, c, variable, want)
		tx, err := c.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		queried(t, tx, "SELECT COUNT(*) FROM notes WHERE id = "+id, nil)
		if id == "1" {
			queried(t, tx, assigned+id, sharding.ErrSettings) // it may be about the variable of before
		}
		if err := errors.Join(tx.Rollback(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	c, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tx, err := c.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	queried(t, tx, assigned+"1", nil)
	queried(t, tx, "SELECT @n + COUNT(*) FROM notes WHERE id = 1", nil)
	queried(t, tx, variable, sharding.ErrSettings)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	queried(t, c, variable, sharding.ErrSettings)
}

// sessions is a database of notes in two databases, of which the first is at home.
func sessions(t *testing.T, a, b *sql.DB) *sql.DB {
	t.Helper()
	database.Exec(t, a, "CREATE TABLE notes_0 (id BIGINT PRIMARY KEY, at TIMESTAMP NULL)")
	database.Exec(t, b, "CREATE TABLE notes_1 (id BIGINT PRIMARY KEY, at TIMESTAMP NULL)")
	places, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": a, "b": b}, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: places}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: a})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

func queried(t *testing.T, on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string, want error) {
	t.Helper()
	var n int
	if err := on.QueryRowContext(t.Context(), query).Scan(&n); !errors.Is(err, want) {
		t.Errorf("%s: %d, %v, want %v", query, n, err, want)
	}
}

// With columnsWithAlias the driver names a column after its table, too.
func TestColumnsMayBeNamedWithTheirTables(t *testing.T) {
	for name, s := range map[string]database.Server{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{}
			m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range m.Targets() {
				db := s.Open(t, "named_"+at.DB)
				database.Exec(t, db, "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, note VARCHAR(20))")
				database.Exec(t, db, fmt.Sprintf("INSERT INTO %s VALUES (%d, 'x'), (%d, 'y')", at.Table, i, i+2))
				if dbs[at.DB], err = sql.Open("mysql", s.DSN("named_"+at.DB)+"?columnsWithAlias=true"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = dbs[at.DB].Close() })
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			rows, err := routed.Query("SELECT id, note FROM orders ORDER BY note DESC, id")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			columns, err := rows.Columns()
			if err != nil || !slices.Equal(columns, []string{"orders.id", "orders.note"}) {
				t.Errorf("columns %q, %v", columns, err)
			}
			var ids []int64
			for rows.Next() {
				var id int64
				if err := rows.Scan(&id, new(string)); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			if !slices.Equal(ids, []int64{2, 3, 0, 1}) || rows.Err() != nil {
				t.Errorf("ids %d, %v", ids, rows.Err())
			}
		})
	}
}

// A statement has one dialect. The first use of a database that has another one is the first time that its kind can be known.
func TestDatabasesThatSpeakDifferentSQLAreRefused(t *testing.T) {
	file, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "notes.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	kinds := map[string]*sql.DB{"MySQL": server.ShareMySQL(t).Open(t, "home"), "MariaDB": server.ShareMariaDB(t).Open(t, "home"), "PostgreSQL": server.RunPostgres(t).Open(t, "home"), "SQLite": file}
	for here, home := range kinds {
		for there, other := range kinds {
			if home == other || strings.HasPrefix(here, "M") && strings.HasPrefix(there, "M") {
				continue
			}
			places, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"a": home, "b": other}, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: places})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			_, err = routed.ExecContext(t.Context(), "DELETE FROM notes WHERE id = 1")
			if says := fmt.Sprintf("b is %s, and the home database %s", there, here); !errors.Is(err, sharding.ErrSettings) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s beside %s: %v", there, here, err)
			}
			if err := routed.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
