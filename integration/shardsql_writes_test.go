// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A namedDatabase makes a database of this name for the test and opens it.
type namedDatabase func(tb testing.TB, name string) *sql.DB

// of opens databases whose names end with that of a layout.
func (open namedDatabase) of(layout string) namedDatabase {
	return func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		return open(tb, name+"_"+layout)
	}
}

func writing(t *testing.T) map[string]namedDatabase {
	t.Helper()
	return map[string]namedDatabase{"MariaDB": server.ShareMariaDB(t).Open, "MySQL": server.ShareMySQL(t).Open}
}

// On MySQL and MariaDB, writes to several shards leave the rows of one table.
func TestRandomWritesToSeveralShardsLeaveWhatOneTableHas(t *testing.T) {
	for name, open := range writing(t) {
		for layout, m := range layouts(t) {
			t.Run(name+", "+layout, func(t *testing.T) { writeRandomly(t, open.of(layout), m) })
		}
	}
}

func writeRandomly(t *testing.T, open namedDatabase, m sharding.Map) {
	t.Helper()
	routed, whole := writtenTwins(t, open, m)
	programs := effort.Cases(150, 20_000)
	done := 0
	for seed := range uint64(programs) {
		maker := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 6))}
		n, err := maker.Program(sharding.AllShards(t.Context()), routed, whole)
		if done += n; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Logf("%d statements", done); done < 3*programs {
		t.Error("too few succeed")
	}
}

// writtenTwins returns a routed database with orders whose ids carry the slot, and one
// with a single table.
func writtenTwins(t *testing.T, open namedDatabase, m sharding.Map) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, "written_a"), "b": open(t, "written_b")}, open(t, "written_whole")
	return database.RoutedOrders(t, dbs, m, whole), whole
}

// A database would store two rows with one id on two shards, so ids that may be equal are refused.
func TestOneUpsertMayHaveUnsignedIDsOfSeveralShards(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := spreadTwins(t, open, "wide", "user_id", "id BIGINT UNSIGNED NOT NULL PRIMARY KEY, user_id BIGINT UNSIGNED NOT NULL, n INT NOT NULL")
			const upsert = "INSERT INTO wide (id, user_id, n) VALUES (?, ?, 1), (?, ?, 1) ON DUPLICATE KEY UPDATE n = n + 1"
			first, second := uint64(math.MaxUint64), uint64(1<<63)
			for range 2 {
				if _, err := routed.ExecContext(t.Context(), upsert, first, 1, second, 2); err != nil {
					t.Fatal(err)
				}
			}
			if got := rowTexts(t, routed, "SELECT id, user_id, n FROM wide"); fmt.Sprint(got) != "[[{18446744073709551615 true} {1 true} {2 true}] [{9223372036854775808 true} {2 true} {2 true}]]" {
				t.Error(got)
			}
			if _, err := routed.ExecContext(t.Context(), upsert, uint64(1<<63+1), 1, "09223372036854775809", 2); !errors.Is(err, sharding.ErrCrossShard) {
				t.Errorf("rows with one id: %v", err)
			}
		})
	}
}

// A value that MySQL or MariaDB computes for a column is refused in a broadcast
// table; a given value is in every copy.
func TestABroadcastTableIsWrittenInEveryDatabase(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs, home := sharding.DBs{"a": open(t, "copied_a"), "b": open(t, "copied_b")}, open(t, "copied_home")
			copies := []*sql.DB{home, dbs["a"], dbs["b"]}
			for _, db := range copies {
				database.Exec(t, db, "CREATE TABLE rates (id BIGINT AUTO_INCREMENT PRIMARY KEY, uid VARCHAR(40) DEFAULT (uuid()), name VARCHAR(20) DEFAULT 'x', at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)")
			}
			routed := broadcasting(t, dbs, home)
			for _, text := range []string{
				"INSERT INTO rates (uid, at) VALUES ('a', '2026-01-01')",
				"INSERT INTO rates (id, uid, at) VALUES (0, 'a', '2026-01-01')",
				"INSERT INTO rates (id, at) VALUES (1, '2026-01-01')",
				"INSERT INTO rates (id, uid) VALUES (1, 'a')",
				"INSERT INTO rates (id, uid, at) VALUES (1, uuid(), '2026-01-01')",
				"UPDATE rates SET name = 'y'",
			} {
				if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrCopies) {
					t.Errorf("%s: %v", text, err)
				}
			}
			database.Exec(t, routed, "INSERT INTO rates (id, uid, at) VALUES (1, 'a', '2026-01-01'), (2, 'b', '2026-01-01')")
			database.Exec(t, routed, "UPDATE rates SET name = CONCAT(name, id), at = '2026-01-02' WHERE uid = 'b'")
			for i, db := range copies {
				var got string
				if err := db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id, uid, name, DATE(at) ORDER BY id) FROM rates").Scan(&got); err != nil || got != "1ax2026-01-01,2bx22026-01-02" {
					t.Errorf("copy %d: %q, %v", i, got, err)
				}
			}
		})
	}
}

func broadcasting(t *testing.T, dbs sharding.DBs, home *sql.DB) *sql.DB {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 2, "written_users_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Broadcast("rates"),
		sharding.Table{Name: "written_users", Key: "id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

// MySQL and MariaDB return the first number of a statement, from which libraries compute the others. Several
// shards number their rows separately.
func TestAnInsertOfRowsThatSeveralShardsNumberHasNoLastInsertID(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs, home := sharding.DBs{"a": open(t, "numbered_a"), "b": open(t, "numbered_b")}, open(t, "numbered_home")
			for slot, db := range []*sql.DB{dbs["a"], dbs["b"]} {
				database.Exec(t, db, "CREATE TABLE written_users_"+strconv.Itoa(slot)+" (n BIGINT AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL)")
			}
			routed := broadcasting(t, dbs, home)
			for text, want := range map[string]int64{
				"INSERT INTO written_users (id) VALUES (2), (4)":                         1,
				"INSERT INTO written_users (id, n) VALUES (3, 20), (5, 21)":              21,
				"INSERT INTO written_users (n, id) VALUES (30, 2), (31, 3), (32, 4)":     32,
				"INSERT INTO written_users (id) VALUES (6), (7)":                         -1,
				"INSERT INTO written_users (n, id) VALUES (40, 6), (NULL, 7)":            -1,
				"INSERT INTO written_users (n, id) VALUES (0, 8), (DEFAULT, 9), (50, 9)": -1,
			} {
				database.Exec(t, dbs["a"], "TRUNCATE TABLE written_users_0")
				database.Exec(t, dbs["b"], "TRUNCATE TABLE written_users_1")
				done, err := routed.ExecContext(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				switch id, err := done.LastInsertId(); {
				case want < 0 && !errors.Is(err, sharding.ErrUnmergeable):
					t.Errorf("%s: %d, %v", text, id, err)
				case want >= 0 && (id != want || err != nil):
					t.Errorf("%s: %d, %v, want %d", text, id, err, want)
				}
			}
		})
	}
}

func TestTheColumnsForWhichPostgreSQLMakesValuesAreKnown(t *testing.T) {
	db := database.Postgres(server.SharePostgres(t))(t)
	database.Exec(t, db, "CREATE DOMAIN own_time AS TIMESTAMPTZ DEFAULT now()")
	database.Exec(t, db, "CREATE DOMAIN own_state AS TEXT DEFAULT 'new'")
	database.Exec(t, db, "CREATE TABLE own (id BIGSERIAL PRIMARY KEY, n BIGINT GENERATED ALWAYS AS IDENTITY, at TIMESTAMPTZ DEFAULT now(), d DATE DEFAULT CURRENT_DATE, s TEXT DEFAULT '(x)', i INT DEFAULT 5, "+
		"l TIMESTAMP DEFAULT LOCALTIMESTAMP, c TIME DEFAULT LOCALTIME, w TEXT DEFAULT SESSION_USER, u TEXT DEFAULT 'user', o own_time, p own_time DEFAULT '2026-01-01', q own_state)")
	d, err := dialect.Named("postgres")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]dialect.Own{"id": {Numbered: true, Varies: true}, "n": {Numbered: true}, "at": {Varies: true}, "d": {Varies: true},
		"l": {Varies: true}, "c": {Varies: true}, "w": {Varies: true}, "o": {Varies: true}}
	var knowsSystemUser bool // PostgreSQL 16
	if err := db.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::int >= 160000").Scan(&knowsSystemUser); err != nil {
		t.Fatal(err)
	}
	if knowsSystemUser {
		database.Exec(t, db, "ALTER TABLE own ADD COLUMN y TEXT DEFAULT SYSTEM_USER")
		want["y"] = dialect.Own{Varies: true}
	}
	if got, err := dialect.OwnValues(t.Context(), db, d, "own"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
