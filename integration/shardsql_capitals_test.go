// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// capitals are the accounts and the invoices of owners, with names that PostgreSQL finds only in quotes, on four shards and in one table.
func capitals(t *testing.T, open namedDatabase) spelled {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, "capitals_a"), "b": open(t, "capitals_b")}, open(t, "capitals_whole")
	var tables []sharding.Table
	for name, columns := range map[string]string{
		"Account": `"accountId" BIGINT PRIMARY KEY, "ownerId" BIGINT NOT NULL, "userEmail" TEXT UNIQUE, "order" TEXT, UNIQUE ("ownerId", "order")`,
		"Invoice": `"invoiceId" BIGINT PRIMARY KEY, "ownerId" BIGINT NOT NULL, "accountId" BIGINT, "Serial" BIGINT, "Year" BIGINT, paid BIGINT NOT NULL DEFAULT 0, "Code" TEXT UNIQUE, UNIQUE ("Year", "Serial")`,
	} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], `CREATE TABLE "`+at.Table+`" (`+columns+")")
		}
		database.Exec(t, whole, `CREATE TABLE "`+name+`" (`+columns+")")
		tables = append(tables, sharding.Table{Name: name, Key: "ownerId", Rule: sharding.Mod(4), Map: m, Group: "Billing"})
	}
	for i := range tables {
		if tables[i].Name == "Account" {
			tables[i].Lookups = []sharding.Lookup{{Column: "userEmail", Table: "AccountByEmail", Unique: true}}
		} else {
			tables[i].Parents = []sharding.Parent{{Column: "accountId", Table: "Account", ID: "accountId"}}
		}
	}
	r, err := sharding.New(dbs, sharding.Tables(tables...), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: r, Home: dbs["a"], Table: "Account", Column: "userEmail"}); err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return spelled{routed, whole}
}

func TestColumnsWithCapitalLettersAreFoundByTheirNames(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			s := capitals(t, open)
			for i := range 12 {
				s.same(t, `INSERT INTO "Account" ("accountId", "ownerId", "userEmail", "order") VALUES ($1, $2, $3, 'o')`, i, i, fmt.Sprint("e", i))
				s.same(t, `INSERT INTO "Invoice" ("invoiceId", "ownerId", "accountId", "Year", "Serial", "Code") VALUES ($1, $2, $2, 2026, $1, $3)`, i, i, fmt.Sprint("c", i))
			}
			for _, text := range []string{
				`UPDATE "Invoice" SET paid = 1 WHERE "invoiceId" = 3`,
				`UPDATE "Invoice" SET paid = paid + 2 WHERE "invoiceId" IN (3, 4, 77)`,
				`DELETE FROM "Invoice" WHERE "invoiceId" = 5`,
				`UPDATE "Invoice" SET paid = 4 WHERE "accountId" = 6`,
				`UPDATE "Invoice" SET paid = 5 WHERE "Code" IN ('c2', 'c4')`,
				`UPDATE "Account" SET "order" = 'p' WHERE "userEmail" = 'e7'`,
				`UPDATE "Account" SET "userEmail" = 'new' WHERE "accountId" = 8`,
				`UPDATE "Invoice" SET "Serial" = 50 WHERE "Year" = 2026 AND "Serial" = 9 AND "ownerId" = 9`,
				`UPDATE "Invoice" SET "invoiceId" = 51 WHERE "invoiceId" = 10 AND "ownerId" = 10`,
				`INSERT INTO "Invoice" ("invoiceId", "ownerId", "Year", "Serial") VALUES (1, 1, 2026, 1), (60, 2, 2026, 60) ON CONFLICT DO NOTHING`,
				`INSERT INTO "Invoice" ("invoiceId", "ownerId") VALUES (1, 1) ON CONFLICT ("invoiceId") DO UPDATE SET paid = 70 RETURNING "invoiceId"`,
				`INSERT INTO "Invoice" ("invoiceId", "ownerId", "Year", "Serial") VALUES (61, 2, 2026, 2), (62, 3, 2026, 62) ON CONFLICT ("Year", "Serial") DO UPDATE SET paid = 71`,
				`DELETE FROM "Account" WHERE "userEmail" = 'e11'`,
				`INSERT INTO "Account" ("accountId", "ownerId") VALUES (80, 80)`,
			} {
				s.same(t, text)
			}
			for _, text := range []string{
				`INSERT INTO "Invoice" ("invoiceId", "ownerId") VALUES (3, 3), (90, 90), (91, 91) ON CONFLICT ("invoiceId") DO NOTHING RETURNING "invoiceId"`,
				`SELECT * FROM "Account"`, `SELECT * FROM "Invoice"`,
				`SELECT "accountId" FROM "Account" WHERE "userEmail" IN ('new', 'e1', 'e8')`,
			} {
				if got, want := rowTexts(t, s.routed, text), rowTexts(t, s.whole, text); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", text, got, want)
				}
			}
		})
	}
}

// Columns are known by their names in lower case, so that one of two such columns could be taken for the sharding key.
func TestATableWithTwoColumnsWhoseNamesDifferOnlyInCaseIsRefused(t *testing.T) {
	db := server.SharePostgres(t).Open(t, "ambiguous")
	m, err := sharding.Spread([]string{"a"}, 2, "tasks_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, db, "CREATE TABLE "+at.Table+` (id BIGINT PRIMARY KEY, "userId" BIGINT NOT NULL, userid BIGINT NOT NULL)`)
	}
	r, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "tasks", Key: "userId", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: r, Home: db})
	t.Cleanup(func() { _ = routed.Close() })
	for _, text := range []string{"UPDATE tasks SET id = 1 WHERE userid = 5", `INSERT INTO tasks (id, "userId", userid) VALUES (1, 2, 3)`, "DELETE FROM tasks WHERE userid = 5"} {
		if _, err := routed.Exec(text); !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "rename one of them") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A server of MySQL or MariaDB on Linux finds a table only by its capital letters, and PostgreSQL one whose name was quoted.
func TestABroadcastTableWithCapitalLettersIsWrittenInAllDatabases(t *testing.T) {
	open := writing(t)
	open["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range open {
		for declared, table := range map[string]string{"Rates": "Rates", "RATES": "rates"} {
			t.Run(name+"/"+table, func(t *testing.T) {
				quoted, written := "`"+table+"`", table
				if name == "PostgreSQL" {
					quoted = `"` + table + `"`
					written = quoted
				}
				dbs := sharding.DBs{"a": open(t, "rates_a"), "b": open(t, "rates_b")}
				for _, db := range dbs {
					database.Exec(t, db, "CREATE TABLE "+quoted+" (id BIGINT PRIMARY KEY, rate BIGINT NOT NULL)")
				}
				m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
				if err != nil {
					t.Fatal(err)
				}
				router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Broadcast(declared))
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
				t.Cleanup(func() { _ = routed.Close() })
				for _, text := range []string{"INSERT INTO " + written + " (id, rate) VALUES (1, 7)", "UPDATE " + written + " SET rate = 8 WHERE id = 1"} {
					if _, err := routed.ExecContext(t.Context(), text); err != nil {
						t.Errorf("%s: %v", text, err)
					}
				}
				for at, db := range dbs {
					if n := database.MustNumber(t, db, "SELECT COUNT(*) FROM "+quoted+" WHERE rate = 8"); n != 1 {
						t.Errorf("%d rows in %s", n, at)
					}
				}
			})
		}
	}
}

// A statement joins a table of the home database, whose name it writes as the server knows it.
func TestATableOfTheHomeDatabaseWithCapitalLettersIsJoined(t *testing.T) {
	open := writing(t)
	open["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			quoted := "`Kinds`"
			if name == "PostgreSQL" {
				quoted = `"Kinds"`
			}
			home := open(t, "kinds_home")
			database.Exec(t, home, "CREATE TABLE "+quoted+" (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL)")
			database.Exec(t, home, "INSERT INTO "+quoted+" (id, name) VALUES (1, 'b'), (2, 'a')")
			m, err := sharding.Spread([]string{"a"}, 2, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, home, "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, kind BIGINT NOT NULL)")
			}
			router, err := sharding.New(sharding.DBs{"a": home}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			t.Cleanup(func() { _ = routed.Close() })
			for _, row := range []string{"(1, 1)", "(2, 2)", "(3, 2)"} {
				database.Exec(t, routed, "INSERT INTO orders (id, kind) VALUES "+row)
			}
			query := "SELECT o.id FROM orders o JOIN " + quoted + " k ON k.id = o.kind ORDER BY k.name, o.id"
			if got := fmt.Sprint(database.Texts(t, routed, query)); got != "[2 3 1]" {
				t.Errorf("%s: %s", query, got)
			}
			planner, err := shardsql.NewPlanner(t.Context(), router, home)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := planner.Plan(t.Context(), query); err != nil || len(planner.Absent()) > 0 {
				t.Errorf("%s: %v, %v", query, planner.Absent(), err)
			}
		})
	}
}
