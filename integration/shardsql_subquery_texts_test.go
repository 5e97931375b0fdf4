// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// writtenTypes are the types of columns whose values are written as texts. Two of the same name are compared alike.
var writtenTypes = map[string]map[string]string{
	"MySQL": {
		"folds": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "ai": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
		"exact": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "fixed": "CHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
		"latin": "VARCHAR(30) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "wide": "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		"bytes": "VARBINARY(60)", "padded": "BINARY(40)", "member": "ENUM('a','b','é','7')", "number": "INT", "made": "YEAR",
		"at": "DATETIME(6)", "stamp": "TIMESTAMP NULL", "day": "DATE", "clock": "TIME(3)",
	},
	"MariaDB": {
		"folds": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "nopad": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
		"exact": "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "fixed": "CHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
		"latin": "VARCHAR(30) CHARACTER SET latin1 COLLATE latin1_german2_ci", "wide": "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		"bytes": "VARBINARY(60)", "padded": "BINARY(40)", "uid": "UUID", "number": "INT",
		"at": "DATETIME(6)", "stamp": "TIMESTAMP NULL", "day": "DATE", "clock": "TIME(3)",
	},
	"PostgreSQL": {
		"exact": `VARCHAR(30) COLLATE "C"`, "wide": `TEXT COLLATE "C"`, "own": "TEXT", "fixed": `CHAR(30) COLLATE "C"`, "uid": "UUID", "bytes": "BYTEA", "number": "INT", "doc": "JSONB",
		"at": "TIMESTAMP", "stamp": "TIMESTAMPTZ", "day": "DATE", "clock": "TIME",
	},
}

// alike are pairs of types, other than a type and itself, that are compared alike.
var alike = map[string]string{"fixed": "folds", "wide": "exact", "padded": "bytes"}

// writtenValues are values of both tables, by the name of a type, or of any other one.
var writtenValues = map[string][]string{
	"":       {"a", "A ", "b", "é", "E", "ß", "ss", "", "a'b", `c\`, "7", "a"},
	"bytes":  {"a", "A ", "é", "", "a'b", "B"},
	"uid":    {"00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000B", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	"member": {"a", "b", "é", "7"},
	"number": {"7", "0", "2024"},
	"made":   {"2007", "2024"},
	"at":     {"2024-03-10 02:30:00", "2024-03-10 02:30:00.000001", "1999-12-31 23:59:59.999999"},
	"stamp":  {"2024-01-02 03:04:05", "2024-07-02 03:04:05", "2001-09-09 01:46:40"},
	"day":    {"2024-03-10", "2024-01-02", "1999-12-31"},
	"clock":  {"02:30:00", "23:59:59.5", "00:00:00", "24:00:00"},
	"doc":    {`"a"`, "7"},
}

func TestTextsOfSubqueriesAreComparedAsTheirColumns(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) { textsAreCompared(t, open, writtenTypes[name], false) })
	}
	t.Run("MySQL, parsed times", func(t *testing.T) {
		m := server.ShareMySQL(t)
		textsAreCompared(t, func(tb testing.TB, name string) *sql.DB {
			tb.Helper()
			m.Open(tb, name+"_parsed") // makes it
			return opened(tb, "mysql", m.DSN(name+"_parsed")+"?parseTime=true")
		}, writtenTypes["MySQL"], false)
	})
	for driver, open := range postgresDrivers(t) {
		t.Run("PostgreSQL, "+driver, func(t *testing.T) { textsAreCompared(t, open, writtenTypes["PostgreSQL"], true) })
	}
}

func textsAreCompared(t *testing.T, open namedDatabase, types map[string]string, postgres bool) {
	t.Helper()
	whole, dbs := open(t, "written_whole"), sharding.DBs{"a": open(t, "written_a"), "b": open(t, "written_b")}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "goods_%d")
	if err != nil {
		t.Fatal(err)
	}
	var columns strings.Builder
	for name, typ := range types {
		columns.WriteString(", " + name + " " + typ)
	}
	create := func(db database.Execer, table string) {
		database.Exec(t, db, "DROP TABLE IF EXISTS "+table)
		database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL"+columns.String()+")")
	}
	for _, at := range m.Targets() {
		create(dbs[at.DB], at.Table)
	}
	create(whole, "goods")
	create(whole, "facts")
	create(dbs["a"], "facts")
	router, err := sharding.New(dbs, sharding.Table{Name: "goods", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = routed.Close() }()
	for table, shift := range map[string]int{"goods": 0, "facts": 3} {
		for id := range 14 {
			text := insertOfWritten(table, id, shift, types, postgres)
			database.Exec(t, whole, text)
			database.Exec(t, routed, text)
		}
	}
	asked, answered := 0, 0
	for x := range types {
		for y := range types {
			same := x == y && x != "member" && x != "made" && x != "doc" || alike[x] == y || alike[y] == x
			for i, text := range []string{
				"SELECT id FROM goods WHERE %s IN (SELECT %s FROM facts)",
				"SELECT id FROM goods WHERE %s NOT IN (SELECT %s FROM facts WHERE id < 4)",
				"SELECT id FROM goods WHERE %s IN (SELECT %s FROM facts WHERE id > 99)",
				"SELECT id FROM goods WHERE %s NOT IN (SELECT %s FROM facts WHERE id > 99)",
				"SELECT id FROM facts WHERE %s IN (SELECT %s FROM goods)",
				"SELECT id FROM facts WHERE %s NOT IN (SELECT %s FROM goods)",
				"SELECT id FROM goods WHERE user_id = 3 AND %s = (SELECT %s FROM facts WHERE id = 8)",
				"SELECT id FROM goods WHERE %s <> (SELECT %s FROM facts WHERE id = 5)",
				"SELECT id FROM goods WHERE %s = (SELECT %s FROM facts WHERE id = 99)",
				"SELECT id, CASE WHEN %s IN (SELECT %s FROM facts WHERE id < 5) THEN 1 ELSE 0 END AS c FROM goods WHERE user_id IN (1, 2)",
				"SELECT id FROM goods WHERE %s > (SELECT MIN(%s) FROM facts WHERE id < 8)",
				"SELECT id FROM goods WHERE %s <= (SELECT MAX(%s) FROM facts WHERE id < 6)",
				"SELECT id FROM goods WHERE (SELECT %[2]s FROM facts WHERE id = 6) = %[1]s",
			} {
				if asked++; !same && (asked+i)%4 > 0 { // most of these are refused
					continue
				}
				q := selects.Query{Text: fmt.Sprintf(text, x, y), Open: true}
				want, failed := q.Answer(t.Context(), whole, nil)
				got, err := q.Answer(t.Context(), routed, nil)
				switch {
				case same && failed == nil && err != nil:
					t.Errorf("%s: %v", q.Text, err)
				case failed == nil && err == nil && fmt.Sprint(got) != fmt.Sprint(want):
					t.Errorf("%s:\n%v\none table: %v", q.Text, got, want)
				case failed != nil && err == nil && y != "number": // NULL is written for no number
					t.Errorf("%s is answered, and one table fails: %v", q.Text, failed)
				case err == nil:
					answered++
				}
			}
		}
	}
	t.Logf("%d answered", answered)
}

// A connection that cannot receive a text as it is would send another one.
func TestTextsOfSubqueriesOutsideOfTheCharacterSetOfTheConnectionAreRefused(t *testing.T) {
	for name, m := range map[string]interface {
		DSN(database string) string
		Open(tb testing.TB, database string) *sql.DB
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			wide, narrow := m.Open(t, "charset"), opened(t, "mysql", m.DSN("charset")+"?charset=latin1")
			for _, table := range []string{"goods_0", "goods_1", "facts"} {
				database.Exec(t, wide, "DROP TABLE IF EXISTS "+table)
				database.Exec(t, wide, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, word VARCHAR(20) CHARACTER SET utf8mb4, own VARCHAR(20) CHARACTER SET latin1)")
				database.Exec(t, wide, "INSERT INTO "+table+" VALUES (1, '界', 'é')")
			}
			places, err := sharding.Spread([]string{"a"}, 2, "goods_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"a": narrow}, sharding.Table{Name: "goods", Key: "id", Rule: sharding.Mod(2), Map: places})
			if err != nil {
				t.Fatal(err)
			}
			home := opened(t, "mysql", m.DSN("charset")+"?charset=latin1")
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			defer func() { _ = routed.Close() }()
			var n int
			if err := routed.QueryRow("SELECT COUNT(*) FROM goods WHERE word IN (SELECT word FROM facts)").Scan(&n); !errors.Is(err, sharding.ErrCrossShard) && !errors.Is(err, sharding.ErrUnmergeable) {
				t.Errorf("%d rows, %v", n, err)
			}
			if err := routed.QueryRow("SELECT COUNT(*) FROM goods WHERE own IN (SELECT own FROM facts)").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d rows, %v; want 2", n, err)
			}
		})
	}
}

// insertOfWritten returns the INSERT of a row, of which the last in goods has only NULL.
func insertOfWritten(table string, id, shift int, types map[string]string, postgres bool) string {
	names, values := "id, user_id", fmt.Sprintf("%d, %d", id, id%5)
	for name := range types {
		list := writtenValues[name]
		if list == nil {
			list = writtenValues[""]
		}
		value := "'" + strings.ReplaceAll(list[(id*(shift+1)+shift)%len(list)], "'", "''") + "'"
		if !postgres {
			value = strings.ReplaceAll(value, `\`, `\\`)
		}
		if id == 13 && table == "goods" {
			value = "NULL"
		}
		names, values = names+", "+name, values+", "+value
	}
	return "INSERT INTO " + table + " (" + names + ") VALUES (" + values + ")"
}
