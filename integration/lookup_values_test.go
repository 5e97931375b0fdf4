// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Spellings of values by the types of columns, with _ for a space. ? begins a text that is an argument, and # a number. A server stores
// another value than a statement gives for many of them.
var (
	mysqlSpellings = map[string]string{
		"YEAR":            "2026 26 '26' '2026' '02026' 2026.0 '2026_' #26 ?26 2070 70 1970",
		"DECIMAL(5,2)":    "1.5 '1.50' 1.50 1.005 '1.005' 1.01 1.5e0 '1.5e0' '_1.5' '01.5' ?1.505 ?1.51 1.004 1 '1' #1",
		"DECIMAL(20,2)":   "'12345678901234567.01' ?12345678901234567.01 ?12345678901234567.02 '12345678901234567.02' 1 '1.0'",
		"INT":             "5 '5' '05' 5.4 '5.4' '_5' 5e0 TRUE 1 '5_' #5 ?5.4 5.5 6",
		"BIGINT UNSIGNED": "18446744073709551615 '18446744073709551615' 9007199254740993 9007199254740992 '9007199254740993' 9007199254740993.0 ?9007199254740993 ?9007199254740992 '9007199254740992'",
		"DOUBLE":          "0.1 '0.1' 1e-1 '1e-1' ?0.1 0.25 9007199254740993 9007199254740992",
		"VARCHAR(5)":      "'abc' 'ABC' 'abc_' 'ábc' 'abc___' 5 '5' X'616263' ?abc ?ABC #5 '5.0' 5.0 '' '_' 'ss' 'ß' '05' '5_'",
		"VARCHAR(3)":      "'abc' 'abc_' 'abc____' 'ab' 'ab_' 'ab__' 'ab__'",
		"VARCHAR(3) CHARACTER SET utf8mb4 COLLATE NOPAD_BIN": "'abc' 'ABC' 'abc_' 'abc____' 'ab' 'ab_' 'ab__' 'ab__'",
		"VARCHAR(5) CHARACTER SET latin1":                    "'abc' 'ABC' 'é' 'É' 'e' 'abc_' X'E9' ?é",
		"VARCHAR(5) COLLATE utf8mb4_bin":                     "'abc' 'ABC' 'abc_' 'ábc' 'abc___' 5 '5' ?abc #5",
		"VARCHAR(5) COLLATE NOPAD":                           "'abc' 'ABC' 'abc_' 'ábc' 'abc___' 5 '5' ?abc #5",
		"CHAR(5)":                                            "'abc' 'ABC' 'abc_' 'ábc' 'abc___' 5 '5' '' '_'",
		"CHAR(5) COLLATE NOPAD":                              "'abc' 'ABC' 'abc_' 'ábc' 'abc___' 5 '5' '' '_' ?abc_",
		"BINARY(5)":                                          "'abc' 'ABC' 'abc_' X'6162630000' X'61626300' '5' 5 ''",
		"VARBINARY(5)":                                       "'abc' 'ABC' 'abc_' X'6162630000' X'616263' '5' 5 ''",
		"DATE":                                               "'2026-01-02' '20260102' '2026-1-2' 20260102 '2026-01-02_10:00:00' '26-01-02' DATE'2026-01-02' ?2026-1-2",
		"DATETIME":                                           "'2026-01-02_10:00:00' '2026-01-02_10:00:00.4' '2026-01-02_10:00:00.6' '2026-01-02_10:00:01' '20260102100000' 20260102100000 '2026-1-2_10:0:0' '2026-01-02T10:00:00' TIMESTAMP'2026-01-02_10:00:00' ?2026-01-02_10:00:00.4",
		"TIMESTAMP NULL":                                     "'2026-01-02_10:00:00' '2026-01-02_10:00:00.4' '2026-01-02_10:00:00.6' '2026-01-02_10:00:01' '20260102100000' '2026-1-2_10:0:0'",
		"TIME":                                               "'10:00:00' '100000' 100000 '10:0:0' '10:00:00.4' '10:00:00.6' '10:00:01' '10:00' '0_10:00:00' ?10:00:00.4",
		"TINYINT(1)":                                         "1 TRUE '1' '01' 1.2 0 FALSE",
	}
	mariadbSpellings = map[string]string{
		"UUID":         "'123e4567-e89b-12d3-a456-426655440000' '123E4567-E89B-12D3-A456-426655440000' '123e4567e89b12d3a456426655440000' X'123e4567e89b12d3a456426655440000' ?123E4567-E89B-12D3-A456-426655440000",
		"INET6":        "'::1' '0::1' '0:0:0:0:0:0:0:1' '::ffff:1.2.3.4' '::ffff:102:304' ?0::1",
		"INET4":        "'1.2.3.4' X'01020304' '1.2.3.5'",
		"VARCHAR(300)": "'abc' 'ABC' 'abc_'",
	}
	postgresSpellings = map[string]string{
		"CITEXT":            "'abc' 'ABC' 'abc_' 'ábc' ?ABC",
		"NUMERIC":           "1.5 '1.50' 1.50 '1.5e0' 1.500 ?1.50 'NaN' 'nan' 0 '-0'",
		"NUMERIC(5,2)":      "1.5 '1.50' 1.005 '1.005' 1.01 '1.01' '_1.5_' ?1.505 ?1.51 1.004",
		"INTEGER":           "5 '5' '05' 5.4 '_5_' 6 5.5 ?5 '0x5' '5'",
		"BIGINT":            "5 '5' '05' 5.4 9007199254740993 '9007199254740993' 9007199254740993.4",
		"REAL":              "0.1 '0.1' 0.10000000149 0.25 16777217 16777216",
		"DOUBLE PRECISION":  "0.1 '0.1' 0.25 '-0' 0 1e-1 'NaN' 'nan'",
		"CHAR(5)":           "'abc' 'ABC' 'abc_' 'abc___' 'abc______' '5' ?abc ?abc__ ''  '_'",
		"VARCHAR(3)":        "'abc' 'ABC' 'abc_' 'abc____' 'ab' 'ab_' 'ab__' ?abc_",
		"TEXT":              "'abc' 'ABC' 'abc_' 5 '5' ?abc",
		"TEXT COLLATE nocs": "'abc' 'ABC' 'abc_' 'Abc' ?ABC",
		"INET":              "'10.0.0.1' '10.0.0.1/32' '10.0.0.1/24' '10.0.0.2/24' '::1' '0::1' ?10.0.0.1/32",
		"CIDR":              "'10.0.0.0/24' '10.0.0/24' '10/24' '10.0.0.1' '10.0.0.1/32' ?10.0.0/24",
		"BOOLEAN":           "TRUE 't' 'yes' '1' 'true' FALSE 'f' ?yes",
		"INTERVAL":          "'1_month' '30_days' '720_hours' 'P1M' '1_mon' ?30_days INTERVAL'1_month'",
		"INT[]":             "'{1,2}' '{1,_2}' ARRAY[1,2] '[0:1]={1,2}' ?{1,2}",
		"TEXT[]":            "'{a,b}' '{\"a\",b}' '{A,b}' ?{a,b}",
		"JSONB":             "'{\"a\":1}' '{\"a\":_1}' '1' '1.0' '{\"b\":1,\"a\":2}' '{\"a\":2,\"b\":1}' ?1.0",
		"BIT(8)":            "'00000101' B'00000101' X'05' b'00000001'",
		"VARBIT":            "'101' B'101' B'0101'",
		"TIMESTAMPTZ":       "'2026-01-02_10:00:00+00' '2026-01-02_11:00:00+01' '2026-01-02T10:00:00Z' '2026-01-02_10:00:00.0000004Z' ?2026-01-02_11:00:00+01",
		"TIMESTAMP(0)":      "'2026-01-02_10:00:00' '2026-01-02_10:00:00.4' '2026-01-02_10:00:00.6' '2026-01-02_10:00:01' '2026-01-02_11:00:00+01' '2026-01-02T10:00' ?2026-01-02_10:00:00.4",
		"TIME(0)":           "'10:00' '10:00:00' '10:00:00.4' '10:00:00.6' '10:00:01' '100000' '10_AM'",
		"TIMETZ":            "'10:00+00' '11:00+01' '10:00Z'",
		"DATE":              "'2026-01-02' '20260102' '2026-1-2' 'Jan_2_2026' '2026-01-02_10:00'",
		"UUID":              "'123e4567-e89b-12d3-a456-426655440000' '123E4567-E89B-12D3-A456-426655440000' '{123e4567e89b12d3a456426655440000}' ?123E4567-E89B-12D3-A456-426655440000",
		"BYTEA":             "'abc' '\\x616263' '\\141bc' 'ABC' ?abc",
		"MONEY":             "1.5 '1.50' '$1.50' 1.505 '1.505' 1.51",
		"MACADDR":           "'08:00:2b:01:02:03' '08002b010203' '08-00-2B-01-02-03'",
		"mood":              "'sad' 'ok' 'OK'",
		"INT4RANGE":         "'[1,3)' '[1,2]' '(0,2]' 'empty' '[1,1)'",
		"\"char\"":          "'a' 'ab' 'b'",
		"NAME":              "'abc' 'ABC' 'abc_'",
		"OID":               "5 '5' '05'",
	}
)

// spellingWalk changes rows of one table and of shards with a unique lookup alike.
type spellingWalk struct {
	*rand.Rand

	postgres      bool
	table         string
	values        []string
	routed, whole *sql.DB
	refused, done int
	log           []string
}

// value is a spelling as a literal, or as a parameter with its argument.
func (w *spellingWalk) value() (text string, args []any) {
	v := strings.ReplaceAll(w.values[w.IntN(len(w.values))], "_", " ")
	switch v[0] {
	case '?':
		args = []any{v[1:]}
	case '#':
		n, _ := strconv.Atoi(v[1:])
		args = []any{n}
	default:
		return v, nil
	}
	if w.postgres {
		return "$1", args
	}
	return "?", args
}

func (w *spellingWalk) statement() (text string, args []any) {
	id := w.IntN(8)
	v, args := w.value()
	insert := fmt.Sprintf("INTO %s (id, v) VALUES (%d, %s)", w.table, id, v)
	switch w.IntN(8) {
	case 0:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", w.table, id), nil
	case 1, 2:
		return fmt.Sprintf("UPDATE %s SET v = %s WHERE id = %d", w.table, v, id), args
	case 3:
		if w.postgres {
			return "INSERT " + insert + " ON CONFLICT DO NOTHING", args
		}
		return "INSERT IGNORE " + insert, args
	case 4:
		if w.postgres {
			return "INSERT " + insert + " ON CONFLICT (id) DO UPDATE SET v = excluded.v", args
		}
		return "REPLACE " + insert, args
	}
	return "INSERT " + insert, args
}

// step executes a statement on both, and returns what is wrong, or "".
func (w *spellingWalk) step(t *testing.T) string {
	t.Helper()
	text, args := w.statement()
	tx, err := w.whole.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, want := tx.ExecContext(t.Context(), text, args...)
	_, got := w.routed.ExecContext(t.Context(), text, args...)
	w.log = append(w.log, fmt.Sprintf("%s %q: %v", text, args, got))
	switch {
	case got == nil && want != nil:
		return fmt.Sprintf("is executed, and one table answers %v", want)
	case got != nil && want == nil && dialect.IsDuplicate(got) && !strings.Contains(text, "CONFLICT"):
		return fmt.Sprintf("has a duplicate: %v", got)
	case got != nil && want == nil:
		w.refused++
	case got == nil:
		w.done++
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	all := "SELECT id, v FROM " + w.table
	if got, want := rowsOf(t, w.routed, all), rowsOf(t, w.whole, all); !slices.Equal(got, want) {
		return fmt.Sprintf("leaves %q, and one table has %q", got, want)
	}
	return ""
}

// rowsOf is the rows of a query of two columns, sorted.
func rowsOf(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	err := dialect.Each(t.Context(), db, func(rows *sql.Rows) error {
		var id int
		var v any
		err := rows.Scan(&id, &v)
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		all = append(all, fmt.Sprint(id, " ", v))
		return err
	}, query)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// spelledTables are rows in four tables in two databases, and in one table of this name, with a column of a type.
func spelledTables(t *testing.T, dbs sharding.DBs, table, typ string) (lookups.Config, error) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, table+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: table, Key: "id", Rule: sharding.Mod(4), Map: m, Lookups: []sharding.Lookup{{Column: "v", Table: table + "_by_v", Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range append(m.Targets(), sharding.Target{DB: "whole", Table: table}) {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, v "+typ+", UNIQUE (v))")
	}
	c := lookups.Config{Router: router, Home: dbs["home"], Table: table, Column: "v"}
	return c, lookups.Create(t.Context(), c)
}

// spellings returns those of a database's kind, and what prepares its databases.
func spellings(kind string) (all map[string]string, prepare []string) {
	switch kind {
	case "PostgreSQL":
		return postgresSpellings, []string{"CREATE EXTENSION citext", "CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE COLLATION nocs (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"}
	case "MariaDB":
		all = maps.Clone(mariadbSpellings)
	default:
		all = map[string]string{}
	}
	maps.Copy(all, mysqlSpellings)
	return all, nil
}

// A write gives the answer of one table, or is refused.
func TestAUniqueValueHasOneOwnerHoweverItIsSpelled(t *testing.T) {
	for name, open := range onThree(t) {
		all, prepare := spellings(name)
		dbs := sharding.DBs{}
		for _, db := range []string{"home", "a", "b", "whole"} {
			dbs[db] = open(t, "spelling_"+db)
			for _, text := range prepare {
				database.Exec(t, dbs[db], text)
			}
		}
		collations := strings.NewReplacer("NOPAD_BIN", "utf8mb4_0900_bin", "NOPAD", "utf8mb4_0900_ai_ci")
		if name == "MariaDB" {
			collations = strings.NewReplacer("NOPAD_BIN", "utf8mb4_nopad_bin", "NOPAD", "utf8mb4_general_nopad_ci")
		}
		n := 0
		for typ, values := range all {
			n++
			table := fmt.Sprintf("spelled%d", n)
			t.Run(name+", "+typ, func(t *testing.T) {
				c, err := spelledTables(t, dbs, table, collations.Replace(typ))
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
				defer func() { _ = routed.Close() }()
				w := &spellingWalk{postgres: name == "PostgreSQL", table: table, values: strings.Fields(values), routed: routed, whole: dbs["whole"]}
				for seed := range uint64(effort.Cases(1, 200)) {
					w.Rand, w.log = rand.New(rand.NewPCG(seed, 9)), nil
					failed := ""
					for i := 0; i < 30 && failed == ""; i++ {
						failed = w.step(t)
					}
					if r, err := lookups.Verify(t.Context(), c); err != nil && failed == "" {
						failed = fmt.Sprintf("%+v, %v", r, err)
					}
					if failed != "" {
						t.Fatalf("seed %d: %s\n%s", seed, failed, strings.Join(w.log, "\n"))
					}
				}
				t.Logf("%d executed, %d refused", w.done, w.refused)
			})
		}
	}
}

// An ENUM stores '05' as its fifth member, and no search for '05' finds that.
func TestAColumnWhoseValuesAreNotFoundAsTheyAreReadHasNoLookup(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"home": open(t, "unfound_home"), "a": open(t, "unfound_a"), "b": open(t, "unfound_b"), "whole": open(t, "unfound_whole")}
			for i, typ := range []string{"ENUM('a', 'b', 'c', 'd', '5')", "SET('x', 'y')", "BIT(8)", "FLOAT", "FLOAT(5,2)"} {
				table := fmt.Sprintf("unfound%d", i)
				c, err := spelledTables(t, dbs, table, typ)
				if !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", typ, err)
				}
				database.Exec(t, c.Home, "CREATE TABLE "+table+"_by_v (v "+typ+" PRIMARY KEY, id BIGINT NOT NULL, claim BIGINT NOT NULL)")
				routed := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
				for _, text := range []string{"INSERT INTO " + table + " (id, v) VALUES (1, '5')", "SELECT id FROM " + table + " WHERE v = '5'"} {
					if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) {
						t.Errorf("%s: %s: %v", typ, text, err)
					}
				}
				if _, err := lookups.Verify(t.Context(), c); !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", typ, err)
				}
				_ = routed.Close()
			}
		})
	}
}

// MariaDB accepts NULL for a generated column, and computes it.
func TestAColumnThatTheDatabaseChangesHasNoLookup(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"home": open(t, "changed_home"), "a": open(t, "changed_a"), "b": open(t, "changed_b"), "whole": open(t, "changed_whole")}
			types := map[string]string{"lowered": "VARCHAR(50) GENERATED ALWAYS AS (lower(w)) STORED"}
			if name != "PostgreSQL" {
				types["lowering"] = "VARCHAR(50) AS (lower(w)) VIRTUAL"
				types["touched"] = "DATETIME(6) DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)"
			}
			for table, typ := range types {
				c, err := spelledTables(t, dbs, table, typ+", w VARCHAR(50)")
				if !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", typ, err)
				}
				kind, _, _ := strings.Cut(typ, " ")
				database.Exec(t, c.Home, "CREATE TABLE "+table+"_by_v (v "+kind+" PRIMARY KEY, id BIGINT NOT NULL, claim BIGINT NOT NULL)")
				routed := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
				for _, text := range []string{"INSERT INTO " + table + " (id, w, v) VALUES (1, 'A', NULL)", "SELECT id FROM " + table + " WHERE v = '2026-01-02'"} {
					if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) {
						t.Errorf("%s: %s: %v", typ, text, err)
					}
				}
				_ = routed.Close()
			}
		})
	}
}

// The number of a row with NULL, or with 0, is known only to the database.
func TestARowThatTheDatabaseNumbersIsNotStoredWithoutItsEntry(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"home": open(t, "numbering_home"), "a": open(t, "numbering_a"), "b": open(t, "numbering_b"), "whole": open(t, "numbering_whole")}
			typ := "BIGINT AUTO_INCREMENT"
			if name == "PostgreSQL" {
				typ = "BIGINT GENERATED BY DEFAULT AS IDENTITY"
			}
			c, err := spelledTables(t, dbs, "numbered", typ)
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
			defer func() { _ = routed.Close() }()
			values := []string{"NULL", "DEFAULT"}
			if name != "PostgreSQL" {
				values = append(values, "0", "'0'")
			}
			for _, value := range values {
				if _, err := routed.ExecContext(t.Context(), "INSERT INTO numbered (id, v) VALUES (1, "+value+")"); !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", value, err)
				}
			}
			database.Exec(t, routed, "INSERT INTO numbered (id, v) VALUES (1, 7)")
			if r, err := lookups.Verify(t.Context(), c); err != nil || r.Rows != 1 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// MySQL and MariaDB compare a number with texts as a number, so the entry of '05' would have become that of '5'.
func TestANumberIsNoValueOfALookupOfTexts(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			d := directoryOn(t, open(t, "numbered_home"), sharding.DBs{"a": open(t, "numbered_a"), "b": open(t, "numbered_b")}, false).create(t)
			database.Exec(t, d.routed, "INSERT INTO users (id, email) VALUES (1, '5')")
			database.Exec(t, d.routed, "INSERT INTO users (id, email) VALUES (2, '05')")
			for _, text := range []string{"INSERT INTO users (id, email) VALUES (6, 5)", "UPDATE users SET email = 7 WHERE id = 2"} {
				if _, err := d.routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", text, err)
				}
			}
			d.sound(t)
		})
	}
}

// SQLite's columns without a type distinguish 5 from '5'.
func TestARowOfSQLiteWhoseNumberBecomesItsTextHasANewEntry(t *testing.T) {
	dbs := sharding.DBs{}
	for _, name := range []string{"home", "a", "b", "whole"} {
		dbs[name] = database.SQLite(t)(t)
	}
	c, err := spelledTables(t, dbs, "untyped", "BLOB")
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
	defer func() { _ = routed.Close() }()
	database.Exec(t, routed, "INSERT INTO untyped (id, v) VALUES (1, 5)")
	database.Exec(t, routed, "INSERT INTO untyped (id, v) VALUES (2, '5')")
	if _, err := routed.ExecContext(t.Context(), "UPDATE untyped SET v = '5' WHERE id = 1"); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Error(err)
	}
	database.Exec(t, routed, "UPDATE untyped SET v = 5 WHERE id = 1")
	database.Exec(t, routed, "DELETE FROM untyped WHERE id = 2")
	database.Exec(t, routed, "UPDATE untyped SET v = '5' WHERE id = 1")
	if _, err := routed.ExecContext(t.Context(), "INSERT INTO untyped (id, v) VALUES (2, '5')"); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Error(err)
	}
}
