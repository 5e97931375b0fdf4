// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Columns of some types take several spellings of one key, and return one of them.

// spelled are tables whose key has a column of a type, in four tables and in one.
type spelled struct{ routed, whole *sql.DB }

func newSpelled(t *testing.T, open namedDatabase, column string, rule sharding.Rule) spelled {
	t.Helper()
	name := "spelled_" + strings.ToLower(column[:4]) + "_"
	dbs, whole := sharding.DBs{"a": open(t, name+"a"), "b": open(t, name+"b")}, open(t, name+"whole")
	m, err := sharding.Spread([]string{"a", "b"}, rule.Slots(), "things_%d")
	if err != nil {
		t.Fatal(err)
	}
	columns := " (k " + column + " NOT NULL PRIMARY KEY, n INT NOT NULL)"
	database.Exec(t, whole, "CREATE TABLE things"+columns)
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "things", Key: "k", Rule: rule, Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["a"]})
	t.Cleanup(func() { _ = db.Close() })
	return spelled{db, whole}
}

// same executes a statement on the shards and on one table, and compares the numbers of affected rows.
func (s spelled) same(t *testing.T, text string, args ...any) {
	t.Helper()
	affected := func(db *sql.DB) (n int64, err error) {
		r, err := db.ExecContext(t.Context(), text, args...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return n, err
	}
	got, err := affected(s.routed)
	want, failed := affected(s.whole)
	if got != want || (err != nil) != (failed != nil) || errors.As(err, new(*sharding.RouteError)) {
		t.Errorf("%s %v: %d, %v; want %d, %v", text, args, got, err, want, failed)
	}
}

func TestAUUIDIsOnOneShardHoweverItIsSpelled(t *testing.T) {
	all := map[string]namedDatabase{"MariaDB": server.ShareMariaDB(t).Open}
	for name, open := range postgresDrivers(t) {
		all["PostgreSQL "+name] = open
	}
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			s := newSpelled(t, open, "UUID", sharding.HashText(4))
			p := func(text string) string {
				if name == "MariaDB" {
					return text
				}
				for _, number := range []string{"$1", "$2", "$3"} {
					text = strings.Replace(text, "?", number, 1)
				}
				return text
			}
			for range 8 {
				id := uuid.New()
				upper, bare := strings.ToUpper(id.String()), strings.ReplaceAll(id.String(), "-", "")
				s.same(t, p("INSERT INTO things (k, n) VALUES (?, 1)"), upper)
				for _, spelling := range []any{id, id.String(), upper, bare, sql.NullString{String: bare, Valid: true}} {
					s.same(t, p("INSERT INTO things (k, n) VALUES (?, 2)"), spelling) // is there already
					s.same(t, p("UPDATE things SET n = n + 1 WHERE k = ?"), spelling)
					s.same(t, p("UPDATE things SET n = n + 1 WHERE k IN (?, ?)"), uuid.New(), spelling)
				}
				r, err := s.routed.ExecContext(sharding.OnKey(t.Context(), "things", upper), "UPDATE things SET n = 0 WHERE n > 0")
				if err != nil {
					t.Fatal(err)
				}
				if n, err := r.RowsAffected(); n != 1 || err != nil {
					t.Errorf("the hint leads to %d rows, %v", n, err)
				}
				s.same(t, p("DELETE FROM things WHERE k = '")+bare+"'")
			}
		})
	}
}

// tenantOrder is a model whose id carries the slot of a UUID.
type tenantOrder struct {
	ID     keygen.ID `gorm:"primaryKey" keygen:""`
	Tenant string    `gorm:"type:uuid;not null"`
}

// The plugin asks the router for the slot of an id, which does not know in what form the column returns the key.
func TestAModelWithAUUIDInAnotherSpellingIsFoundByItsIDOrRefused(t *testing.T) {
	for name, open := range map[string]namedDatabase{"MariaDB": server.ShareMariaDB(t).Open, "PostgreSQL": server.SharePostgres(t).Open} {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "tenants_a"), "b": open(t, "tenants_b")}
			ids, err := snowflake.New(t.Context(), snowflake.Config{Worker: workerid.Static(1), Layout: keygen.Twitter().WithBucket(2)})
			if err != nil {
				t.Fatal(err)
			}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "tenant_orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "tenant_orders", Key: "tenant", Rule: sharding.HashText(4), Map: m, Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(2)}}})
			if err != nil {
				t.Fatal(err)
			}
			db := database.OpenGORM(t, dbs["a"], true)
			if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})); err != nil {
				t.Fatal(err)
			}
			if err := gormplugin.Migrate(t.Context(), db, &tenantOrder{}); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				tenant := uuid.New().String()
				for _, spelling := range []string{tenant, strings.ToUpper(tenant), strings.ReplaceAll(tenant, "-", "")} {
					order := tenantOrder{Tenant: spelling}
					switch err := db.Create(&order).Error; {
					case err == nil:
						if err := db.First(&tenantOrder{}, order.ID).Error; err != nil {
							t.Error(err)
						}
					case spelling == tenant || !errors.Is(err, sharding.ErrMisplaced) || !strings.Contains(err.Error(), "tenant, which its column returns as "+tenant+", to slot"):
						t.Error(err)
					}
				}
			}
			if err := ids.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A cast to uuid or to an integer spells a text anew. A second cast makes that spelling the key.
func TestATextThatTwoCastsSpellAnewLeadsToNoOtherShard(t *testing.T) {
	const upper, lower = "F47AC10B-58CC-4372-A567-0E02B2C3D479", "f47ac10b-58cc-4372-a567-0e02b2c3d479"
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			s := newSpelled(t, open, "TEXT", sharding.HashText(16))
			s.same(t, "INSERT INTO things (k, n) VALUES ($1, 1), ($2, 1)", lower, "5")
			for _, key := range []string{"$1", "'" + lower + "'::text", "$1::varchar"} {
				text := "UPDATE things SET n = n + 1 WHERE k = " + key
				if strings.Contains(key, "$") {
					s.same(t, text, lower)
				} else {
					s.same(t, text)
				}
			}
			for key, value := range map[string]string{
				"$1::uuid::text": upper, "($1::uuid)::varchar": upper, "CAST(CAST($1 AS uuid) AS text)": upper, "$1::int::text": "05", "CAST($1::bigint AS text)": "+5",
			} {
				for _, text := range []string{"UPDATE things SET n = n + 1 WHERE k = ", "DELETE FROM things WHERE k IN ('6', ", "INSERT INTO things (n, k) VALUES (1, "} {
					text += key + strings.Repeat(")", strings.Count(text, "(")-strings.Count(text, ")"))
					if r, err := s.routed.ExecContext(t.Context(), text, value); !errors.Is(err, sharding.ErrMissingKey) {
						t.Errorf("%s of %s: %v, %v", text, value, r, err)
					}
				}
			}
		})
	}
}

// An INSERT may cast a value to another type than that of the column, which stores the spelling of the cast.
func TestATextThatTheCastOfAnInsertSpellsAnewIsOnItsShardOrRefused(t *testing.T) {
	const upper, lower = "F47AC10B-58CC-4372-A567-0E02B2C3D479", "f47ac10b-58cc-4372-a567-0e02b2c3d479"
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			s := newSpelled(t, open, "TEXT", sharding.HashText(16))
			s.same(t, "INSERT INTO things (k, n) VALUES ($1, 1), ($2, 1)", lower, "5")
			for key, value := range map[string]string{"$1::uuid": upper, "CAST($1 AS uuid)": upper, "$1::int": "05", "$1::bigint": "+5"} {
				if _, err := s.routed.ExecContext(t.Context(), "INSERT INTO things (n, k) VALUES (1, "+key+")", value); err == nil {
					t.Errorf("%s of %s: a second row has the key", key, value)
				}
			}
		})
	}
}

// PostgreSQL's date and timestamp keep the clock time that a time.Time shows, in whatever zone.
func TestATimeWithoutAZoneIsOnTheShardOfItsClockTime(t *testing.T) {
	east := time.FixedZone("east", 9*3600)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, open := range postgresDrivers(t) {
		for column, unit := range map[string]time.Duration{"DATE": 24 * time.Hour, "TIMESTAMP": time.Microsecond} {
			t.Run(name+" "+column, func(t *testing.T) {
				s := newSpelled(t, open, column, sharding.Interval(start, start.AddDate(0, 0, 8), 24*time.Hour).WithPrecision(unit))
				for day := 1; day < 7; day++ {
					clock := func(zone *time.Location) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, zone) }
					s.same(t, "INSERT INTO things (k, n) VALUES ($1, 1)", clock(east))
					s.same(t, "INSERT INTO things (k, n) VALUES ($1, 1)", clock(time.UTC)) // is there already
					s.same(t, "UPDATE things SET n = n + 1 WHERE k = $1", clock(time.UTC))
					s.same(t, "UPDATE things SET n = n + 1 WHERE k BETWEEN $1 AND $2", clock(east), clock(time.UTC))
					s.same(t, "DELETE FROM things WHERE k = $1", clock(time.FixedZone("west", -9*3600)))
				}
			})
		}
	}
}

// In the modes for PgBouncer, pgx sends times in UTC and bytes in hexadecimal, whatever the type of the column is.
func TestAKeyIsOnTheShardOfWhatPgxSendsInEachOfItsModes(t *testing.T) {
	p := server.SharePostgres(t)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	days := sharding.Interval(start, start.AddDate(0, 0, 8), 24*time.Hour)
	rules := map[string]sharding.Rule{"DATE": days.WithPrecision(24 * time.Hour), "TIMESTAMP": days.WithPrecision(time.Microsecond), "TEXT": sharding.HashText(8), "VARCHAR(9)": sharding.HashText(8)}
	for _, mode := range []string{"cache_describe", "exec", "simple_protocol"} {
		open := namedDatabase(func(tb testing.TB, name string) *sql.DB {
			tb.Helper()
			p.Open(tb, name) // makes it
			return opened(tb, "pgx", p.DSN(name)+"?sslmode=disable&default_query_exec_mode="+mode)
		})
		for column, rule := range rules {
			t.Run(mode+" "+column, func(t *testing.T) {
				s, answered := newSpelled(t, open.of(mode), column, rule), 0
				for n := range 24 {
					text := string(rune('a' + n))
					keys := []any{[]byte(text), text, fmt.Sprintf(`\x%x`, text)}
					if column == "DATE" || column == "TIMESTAMP" {
						at := time.Date(2026, 1, 2+n/4, 6*(n%4), 0, 0, 0, time.UTC)
						east := at.Add(-9 * time.Hour).In(time.FixedZone("east", 9*3600)) // the same clock time
						keys = []any{east, at, east.UTC()}
					}
					for _, key := range keys {
						for _, text := range []string{"INSERT INTO things (k, n) VALUES ($1, 1) ON CONFLICT DO NOTHING", "UPDATE things SET n = n + 1 WHERE k = $1"} {
							if _, err := s.routed.ExecContext(t.Context(), "DELETE FROM things WHERE k = $1 AND n < 0", key); errors.As(err, new(*sharding.RouteError)) {
								continue // a time within a day may be rounded
							}
							s.same(t, text, key)
							answered++
						}
					}
				}
				if answered < 12 {
					t.Errorf("%d statements are answered", answered)
				}
			})
		}
	}
}

// BINARY fills a short key with zero bytes, and then no longer equals it.
func TestAKeyOfBytesOfAFixedLengthLeadsToItsShard(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			s := newSpelled(t, open, "BINARY(16)", sharding.HashText(4))
			for range 8 {
				id := uuid.New()
				for _, spelling := range []any{id[:], string(id[:])} {
					s.same(t, "INSERT INTO things (k, n) VALUES (?, 1)", spelling)
					s.same(t, "UPDATE things SET n = n + 1 WHERE k = ?", spelling)
				}
				s.same(t, "DELETE FROM things WHERE k = ?", id[:])
			}
			if _, err := s.routed.ExecContext(t.Context(), "INSERT INTO things (k, n) VALUES (?, 1)", "short"); !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "binary(16)") {
				t.Error(err)
			}
		})
	}
}

// SQLite keeps the zone of a time, and compares the texts.
func TestSQLiteFindsTimesOfSeveralZonesBetweenOthers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSpelled(t, func(testing.TB, string) *sql.DB { return database.SQLite(t)(t) }, "DATETIME",
		sharding.Interval(start, start.AddDate(0, 0, 8), 24*time.Hour).WithPrecision(time.Nanosecond))
	zones := []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)}
	at := func(hour int) time.Time { return start.Add(time.Duration(hour) * time.Hour).In(zones[hour%3]) }
	for hour := 30; hour < 150; hour += 5 {
		s.same(t, "INSERT INTO things (k, n) VALUES (?, 1)", at(hour))
	}
	for hour := 30; hour < 140; hour += 7 {
		s.same(t, "UPDATE things SET n = n + 1 WHERE k BETWEEN ? AND ?", at(hour), at(hour+8))
		s.same(t, "UPDATE things SET n = n + 1 WHERE k >= ? AND k < ?", at(hour), at(hour+4))
	}
}

// A lookup table searches for the entry of a value by the value. Where that fails, the write fails, too.
func TestALookedUpTimeThatItsColumnRoundsIsFoundOrRefused(t *testing.T) {
	all := writing(t)
	all["PostgreSQL"] = server.SharePostgres(t).Open
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "rounded_a"), "b": open(t, "rounded_b")}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "visits_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, at "+map[bool]string{true: "TIMESTAMPTZ", false: "DATETIME(6)"}[name == "PostgreSQL"]+")")
			}
			r, err := sharding.New(dbs, sharding.Table{Name: "visits", Key: "id", Rule: sharding.Mod(4), Map: m, Lookups: []sharding.Lookup{{Column: "at", Table: "visits_by_at"}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := lookups.Create(t.Context(), lookups.Config{Router: r, Home: dbs["a"], Table: "visits", Column: "at"}); err != nil {
				t.Fatal(err)
			}
			db := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["a"]})
			defer func() { _ = db.Close() }()
			database.Exec(t, db, "INSERT INTO visits (id, at) VALUES (6, NULL)")
			set := map[bool]string{true: "UPDATE visits SET at = $1 WHERE id = 6", false: "UPDATE visits SET at = ? WHERE id = 6"}[name == "PostgreSQL"]
			for _, nanoseconds := range []int{999999000, 999999999, 500, 999999999, 999999500, 1, 0} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				at := time.Date(2026, 1, 1, 23, 59, 59, nanoseconds, time.UTC)
				if _, err := db.ExecContext(ctx, set, at); err != nil && !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%v: %v", at, err)
				}
				cancel()
			}
			if r, err := lookups.Verify(t.Context(), lookups.Config{Router: r, Home: dbs["a"], Table: "visits", Column: "at"}); err != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// invoices have a number that is looked up, in a lookup table that is sharded by it.
func invoices(t *testing.T, open namedDatabase, column string, rule sharding.Rule) *sql.DB {
	t.Helper()
	dbs := sharding.DBs{"a": open(t, "invoices_a"), "b": open(t, "invoices_b")}
	spread := func(pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"a", "b"}, 4, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	table := sharding.Table{Name: "invoices", Key: "id", Rule: sharding.Mod(4), Map: spread("invoices_%d"), Lookups: []sharding.Lookup{{Column: "number", Table: "numbers", Unique: true}}}
	for _, at := range table.Map.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, number "+column+" UNIQUE)")
	}
	r, err := sharding.New(dbs, table, sharding.Table{Name: "numbers", Key: "number", Rule: rule, Map: spread("numbers_%d")}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: r, Home: dbs["a"], Table: "invoices", Column: "number"}); err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["a"]})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestALookupTableIsShardedOnlyByValuesThatLeadToOneShard(t *testing.T) {
	db := invoices(t, func(testing.TB, string) *sql.DB { return database.SQLite(t)(t) }, "NUMERIC", sharding.Mod(4))
	for _, text := range []string{"INSERT INTO invoices (id, number) VALUES (1, 5)", "UPDATE invoices SET number = 5 WHERE id = 2", "DELETE FROM invoices WHERE number = 5"} {
		if _, err := db.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) || !strings.Contains(err.Error(), "numeric") || !strings.Contains(err.Error(), "declare no sharded table numbers") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAValueWithoutAShardOfItsLookupTableIsRefusedByName(t *testing.T) {
	db := invoices(t, func(testing.TB, string) *sql.DB { return database.SQLite(t)(t) }, "INTEGER", sharding.Ranges(10, 20, 30))
	database.Exec(t, db, "INSERT INTO invoices (id, number) VALUES (2, NULL)")
	for _, text := range []string{"INSERT INTO invoices (id, number) VALUES (1, 'five')", "UPDATE invoices SET number = '5.0' WHERE id = 2"} {
		_, err := db.ExecContext(t.Context(), text)
		if rerr := (*sharding.RouteError)(nil); !errors.As(err, &rerr) || rerr.Column != "number" || !errors.Is(err, sharding.ErrKeyType) || rerr.Hint == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAUUIDIsLookedUpHoweverItIsSpelled(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			db := invoices(t, open, "UUID", sharding.HashText(4))
			for id := range 24 {
				number := uuid.New()
				capitals, bare := strings.ToUpper(number.String()), strings.ReplaceAll(number.String(), "-", "")
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // of a transaction that waits for itself
				defer cancel()
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, spelling := range []string{number.String(), capitals} {
					if _, err := tx.ExecContext(ctx, "DELETE FROM invoices WHERE id = $1", id); err != nil {
						t.Fatal(err)
					}
					if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (id, number) VALUES ($1, $2)", id, spelling); err != nil {
						t.Fatal(err)
					}
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), "INSERT INTO invoices (id, number) VALUES ($1, $2)", id+100, bare); err == nil || !strings.Contains(err.Error(), "23505") {
					t.Errorf("a second row has the number: %v", err)
				}
				for _, spelling := range []any{number, capitals, bare} {
					var got int
					if err := db.QueryRowContext(t.Context(), "SELECT id FROM invoices WHERE number = $1", spelling).Scan(&got); err != nil || got != id {
						t.Errorf("%v: %d, %v, want %d", spelling, got, err, id)
					}
				}
			}
		})
	}
}

// Two rows of one INSERT that belong to two shards have one unique value in two spellings.
func TestAnInsertDoesNotStoreAUniqueValueInTwoSpellings(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		for column, values := range map[string][2]string{"UUID": {"f47ac10b-58cc-4372-a567-0e02b2c3d479", "{F47AC10B58CC4372A5670E02B2C3D479}"}, "BYTEA": {"a", `\x61`}} {
			t.Run(name+" "+column, func(t *testing.T) {
				dbs := sharding.DBs{"a": open(t, "unique_"+strings.ToLower(column))}
				m, err := sharding.Spread([]string{"a"}, 2, "docs_%d")
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range m.Targets() {
					database.Exec(t, dbs["a"], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, u "+column+" UNIQUE)")
				}
				r, err := sharding.New(dbs, sharding.Table{Name: "docs", Key: "id", Rule: sharding.Mod(2), Map: m})
				if err != nil {
					t.Fatal(err)
				}
				db := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["a"]})
				defer func() { _ = db.Close() }()
				const insert = "INSERT INTO docs (id, u) VALUES ($1, $2), ($3, $4) ON CONFLICT (u) DO NOTHING"
				if _, err := db.ExecContext(t.Context(), insert, 1, values[0], 2, values[1]); !errors.Is(err, sharding.ErrCrossShard) {
					t.Error(err)
				}
				if _, err := db.ExecContext(t.Context(), insert, 1, values[0], 2, strings.ReplaceAll(values[0], "a", "b")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A writer waits for the row of another transaction that has its value, whatever zone the key of that row was given in.
func TestAWriterWaitsForAValueOfARowWhoseKeyIsATime(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := server.SharePostgres(t).Open
	dbs, home := sharding.DBs{"a": open(t, "waits_a"), "b": open(t, "waits_b")}, open(t, "waits_home")
	m, err := sharding.Spread([]string{"a", "b"}, 4, "tickets_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (at TIMESTAMPTZ PRIMARY KEY, code TEXT UNIQUE)")
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "tickets", Key: "at", Rule: sharding.Interval(start, start.AddDate(0, 0, 4), 24*time.Hour).WithPrecision(time.Microsecond), Map: m,
		Lookups: []sharding.Lookup{{Column: "code", Table: "codes", Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: r, Home: home, Table: "tickets", Column: "code"}); err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: home})
	defer func() { _ = db.Close() }()
	const insert = "INSERT INTO tickets (at, code) VALUES ($1, $2)"
	for code, at := range map[string]time.Time{"zone": start.Add(5 * time.Hour).In(time.FixedZone("east", 9*3600)), "fine": start.Add(6*time.Hour + 7)} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), insert, at, code); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := db.ExecContext(ctx, insert, at.Add(24*time.Hour), code); err == nil {
			t.Errorf("%s: a second row has the value of a row that is not yet committed", code)
		}
		cancel()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), insert, at.Add(24*time.Hour), code); err == nil || !strings.Contains(err.Error(), "23505") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
