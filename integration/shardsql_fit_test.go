// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A database changes a key that does not fit into its column, without an error
// if the statement has IGNORE, if the sql_mode is not strict, or if only spaces at the
// end of a text do not fit. The row would be on the shard of the longer key.

// fitted are tables whose keys have columns of different kinds.
var fitted = []struct {
	key    string
	rule   sharding.Rule
	column string
	of     func(r *rand.Rand) any
}{
	{"tiny", sharding.Mod(4), "TINYINT", integerAround(7)},
	{"small", sharding.Mod(4), "SMALLINT UNSIGNED", integerAround(16)},
	{"medium", sharding.Mod(4), "MEDIUMINT", integerAround(23)},
	{"whole", sharding.Mod(4), "INT UNSIGNED", integerAround(32)},
	{"wide", sharding.Mod(4), "BIGINT UNSIGNED", integerAround(62)},
	{"digits", sharding.Mod(4), "DECIMAL(5)", integerAround(16)},
	{"padded", sharding.HashText(4), "CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", textAround(5)},
	{"large", sharding.Mod(4), "BIGINT", integerAround(62)},
	{"word", sharding.HashText(4), "VARCHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", textAround(5)},
	{"code", sharding.HashText(4), "VARBINARY(5)", textAround(5)},
	{"short", sharding.HashText(4), "TINYTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", textAround(155)},
}

// integerAround returns integers some of which have more bits than that.
func integerAround(bits int) func(r *rand.Rand) any {
	return func(r *rand.Rand) any { return r.Int64N(1<<bits)*2 - r.Int64N(1<<bits) }
}

// textAround returns texts some of which are longer than that, in letters or bytes, and some
// of which end with spaces.
func textAround(length int) func(r *rand.Rand) any {
	return func(r *rand.Rand) any {
		letters := []string{"a", "b", "é", "界", "x"}
		var text strings.Builder
		for range max(1, length-3) + r.IntN(6) {
			text.WriteString(letters[r.IntN(len(letters))])
		}
		if r.IntN(3) == 0 {
			text.WriteString(strings.Repeat(" ", 1+r.IntN(3)))
		}
		return text.String()
	}
}

// fittedServers open databases of one connection, with a sql_mode.
func fittedServers(t *testing.T) map[string]func(t *testing.T, mode string) *sql.DB {
	t.Helper()
	with := func(open database.Opener) func(t *testing.T, mode string) *sql.DB {
		return func(t *testing.T, mode string) *sql.DB {
			db := open(t)
			db.SetMaxOpenConns(1)
			database.Exec(t, db, "SET SESSION sql_mode = '"+mode+"'")
			return db
		}
	}
	return map[string]func(t *testing.T, mode string) *sql.DB{
		"MariaDB": with(database.MariaDB(server.ShareMariaDB(t))), "MySQL": with(database.MySQL(server.ShareMySQL(t))),
	}
}

func TestAKeyThatItsColumnWouldCutIsRefused(t *testing.T) {
	for name, open := range fittedServers(t) {
		for _, c := range []struct{ mode, verb string }{{"STRICT_TRANS_TABLES", "INSERT IGNORE"}, {"STRICT_TRANS_TABLES", "INSERT"}, {"", "INSERT"}, {"", "REPLACE"}} {
			t.Run(name+" "+c.mode+" "+c.verb, func(t *testing.T) {
				one := open(t, c.mode)
				for _, f := range fitted {
					t.Run(f.key, func(t *testing.T) { keepsOrRefuses(t, one, c.verb, f.key, f.column, f.rule, f.of) })
				}
			})
		}
	}
}

// keepsOrRefuses inserts many keys, and reads each accepted one.
func keepsOrRefuses(t *testing.T, one *sql.DB, verb, key, column string, rule sharding.Rule, of func(r *rand.Rand) any) {
	t.Helper()
	m, err := sharding.Spread([]string{"a"}, 4, "t_"+key+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		database.Exec(t, one, fmt.Sprintf("DROP TABLE IF EXISTS t_%s_%d", key, i))
		database.Exec(t, one, fmt.Sprintf("CREATE TABLE t_%s_%d (k %s NOT NULL, n INT NOT NULL)", key, i, column))
	}
	r, err := sharding.New(sharding.DBs{"a": one}, sharding.Table{Name: "t_" + key, Key: "k", Rule: rule, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: one})
	defer func() { _ = db.Close() }()
	random := rand.New(rand.NewPCG(7, 7))
	taken, refused := 0, 0
	for n := range 60 {
		value := of(random)
		if _, err := db.ExecContext(t.Context(), verb+" INTO t_"+key+" (k, n) VALUES (?, ?)", value, n); err != nil {
			refused++
			if rerr := (*sharding.RouteError)(nil); verb == "INSERT IGNORE" && (!errors.As(err, &rerr) || !errors.Is(err, sharding.ErrKeyType)) {
				t.Fatalf("%v: %v", value, err)
			}
			continue
		}
		taken++
		var found int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t_"+key+" WHERE k = ? AND n = ?", value, n).Scan(&found); err != nil || found != 1 {
			t.Errorf("%s of %v, row %d: found %d times, %v", verb, value, n, found, err)
		}
	}
	if taken == 0 || refused == 0 && key != "large" {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

func TestAValueThatALookupTableWouldCutIsRefused(t *testing.T) {
	cut := []string{
		"INSERT INTO members (id, email) VALUES (2, 'two@home  ')",
		"UPDATE members SET email = 'two@home  ' WHERE id = 1",
		"INSERT IGNORE INTO members (id, email) VALUES (2, 'second@home')",
		"UPDATE IGNORE members SET email = 'another@home' WHERE id = 1",
	}
	for name, open := range fittedServers(t) {
		t.Run(name, func(t *testing.T) {
			refusesLookedUp(t, open(t, "STRICT_TRANS_TABLES"), "VARCHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", cut)
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		refusesLookedUp(t, database.Postgres(server.SharePostgres(t))(t), "VARCHAR(8)", cut[:2])
	})
}

// refusesLookedUp executes statements with addresses that are too long for their column.
func refusesLookedUp(t *testing.T, one *sql.DB, column string, texts []string) {
	t.Helper()
	m, err := sharding.Spread([]string{"a"}, 2, "members_%d")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		database.Exec(t, one, fmt.Sprintf("CREATE TABLE members_%d (id BIGINT NOT NULL PRIMARY KEY, email %s NOT NULL UNIQUE)", i, column))
	}
	r, err := sharding.New(sharding.DBs{"a": one}, sharding.Table{
		Name: "members", Key: "id", Rule: sharding.Mod(2), Map: m,
		Lookups: []sharding.Lookup{{Column: "email", Table: "members_by_email", Unique: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: r, Home: one, Table: "members", Column: "email"}); err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: one})
	defer func() { _ = db.Close() }()
	database.Exec(t, db, "INSERT INTO members (id, email) VALUES (1, 'one@home')")
	for _, text := range texts {
		if _, err := db.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) || !strings.Contains(err.Error(), "(8)") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := idsOf(t, db, "SELECT id FROM members WHERE email = 'one@home'"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
