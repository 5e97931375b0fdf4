// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema"
)

// chinookPostgres is a published sample database with SERIAL keys. Where it lies
// beside the checkout it is inspected too. Its script is one for psql, which
// creates a database of its own and goes there.
const (
	chinookPostgres = "../../../shared/data/chinook/Chinook_PostgreSql_SerialPKs.sql"
	chinookGoesTo   = "\\c chinook_serial;\n"
)

func TestInspectOfSampleDatabasesOfPostgreSQLEqualsTheGoldenReports(t *testing.T) {
	p := server.RunPostgres(t)
	t.Run("shop", func(t *testing.T) {
		inspectPostgresScript(t, p, "shop", readText(t, schemaTestdata+"shop.postgres.sql"), "shop.postgres.json")
	})
	if _, err := os.Stat(chinookPostgres); err == nil {
		t.Run("chinook", func(t *testing.T) {
			_, script, found := strings.Cut(readText(t, chinookPostgres), chinookGoesTo)
			if !found {
				t.Fatal("the script does not go to its database")
			}
			inspectPostgresScript(t, p, "chinook_serial", script, "chinook.postgres.json")
		})
	}
}

func inspectPostgresScript(t *testing.T, p *server.Postgres, name, script, expected string) {
	t.Helper()
	db := p.Open(t, name)
	several, err := sql.Open("pgx", p.DSN(name)+"?default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = several.Close() }()
	database.Exec(t, several, script)
	inspectAgainst(t, db, "PostgreSQL", schemaTestdata+expected)
}

func TestApplyOnPostgreSQLWorksAgainAndFromManyAtOnce(t *testing.T) {
	p := server.RunPostgres(t)
	for round := range 2 { // what two that create at once meet differs
		db := p.Open(t, fmt.Sprint("own", round))
		database.AtOnce(t, 16, func(int) error { return schema.Apply(t.Context(), db) })
		if err := schema.Apply(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, db, `INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1000)`)
		database.Exec(t, db, `INSERT INTO "WORKER_NODE" ("HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE") VALUES ('h', '1', 1, CURRENT_DATE)`)
		if headers := database.MustNumber(t, db, `SELECT COUNT(*) FROM worker_namespace WHERE namespace = '' AND identity LIKE '%:00000001'`); headers != 1 {
			t.Errorf("%d headers", headers)
		}
	}
}

// Of two transactions that create a table at once, PostgreSQL gives the later
// one an error, IF NOT EXISTS or not.
func TestApplyOnPostgreSQLMindsNotThatAnotherProcessWasFirst(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "own")
	first, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback() }()
	_, err = first.ExecContext(t.Context(), "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int, update_time timestamp)")
	if err != nil {
		t.Fatal(err)
	}
	applied := make(chan error)
	go func() { applied <- schema.Apply(t.Context(), db) }()
	testwait.Until(t, "Apply waits for the lock", func() bool {
		return database.MustNumber(t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE '%CREATE TABLE IF NOT EXISTS%' AND wait_event_type = 'Lock'") > 0
	})
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
}

func TestApplyOnPostgreSQLNeedsNoSuperuser(t *testing.T) {
	p := server.RunPostgres(t)
	app := database.PostgresAs(t, p, "own", "app", "GRANT CREATE ON SCHEMA public TO app")
	if err := schema.Apply(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if headers := database.MustNumber(t, app, "SELECT COUNT(*) FROM worker_namespace"); headers != 1 {
		t.Errorf("%d headers", headers)
	}
}

func TestApplyDoesNotReplaceAHeaderThatWasLost(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "own")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, db, "DELETE FROM worker_namespace")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if rows := database.MustNumber(t, db, "SELECT COUNT(*) FROM worker_namespace"); rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

func TestTheDDLOfPostgreSQLRunByHandIsWhatApplyWants(t *testing.T) {
	p := server.RunPostgres(t)
	text, err := schema.DDL("postgres")
	if err != nil {
		t.Fatal(err)
	}
	db := p.Open(t, "own")
	hand, err := sql.Open("pgx", p.DSN("own")+"?default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hand.Close() }()
	for range 2 {
		database.Exec(t, hand, text)
	}
	if err := schema.Apply(t.Context(), database.PostgresAs(t, p, "own", "app", "GRANT CONNECT ON DATABASE own TO app")); err != nil {
		t.Error(err)
	}
	if _, err := schema.Inspect(t.Context(), db); err != nil {
		t.Error(err)
	}
}

func TestApplyOnPostgreSQLRefusesATableThatCannotServe(t *testing.T) {
	p := server.RunPostgres(t)
	for i, c := range []struct{ create, table, column string }{
		{"CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id int NOT NULL, step int NOT NULL, update_time timestamp)", "leaf_alloc", "max_id"},
		{`CREATE TABLE "WORKER_NODE" ("ID" bigint PRIMARY KEY, "HOST_NAME" text, "PORT" text, "TYPE" int, "LAUNCH_DATE" date, "MODIFIED" date, "CREATED" date)`, "WORKER_NODE", "ID"},
		{`CREATE TABLE "WORKER_NODE" (id bigserial PRIMARY KEY, "ID" bigint)`, "WORKER_NODE", "ID"},
		{"CREATE TABLE worker_lease (namespace text PRIMARY KEY, worker_id bigint)", "worker_lease", "namespace, worker_id"},
	} {
		db := p.Open(t, fmt.Sprint("own", i))
		database.Exec(t, db, c.create)
		var refused *schema.ColumnError
		if err := schema.Apply(t.Context(), db); !errors.As(err, &refused) || refused.Table != c.table || refused.Column != c.column {
			t.Errorf("%s: %v", c.create, err)
		}
	}
	db := p.Open(t, "view")
	database.Exec(t, db, "CREATE VIEW leaf_alloc AS SELECT 1")
	if err := schema.Apply(t.Context(), db); !errors.Is(err, schema.ErrNoTable) || !strings.Contains(err.Error(), "leaf_alloc") {
		t.Errorf("a view: %v", err)
	}
}

// A table that a bare name reaches in a later schema of the path serves: another
// one before it would count anew.
func TestApplyOnPostgreSQLTakesTheTableThatStatementsReach(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "own")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, db, "CREATE SCHEMA postgres") // "$user", which comes first
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if tables := database.MustNumber(t, db, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'postgres'"); tables != 0 {
		t.Errorf("%d tables in the second schema", tables)
	}
}

func TestEverythingNamesTheMissingSchema(t *testing.T) {
	p := server.RunPostgres(t)
	p.Open(t, "own")
	db, err := sql.Open("pgx", p.DSN("own")+"?search_path=nowhere")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := schema.Inspect(t.Context(), db); !errors.Is(err, schema.ErrNoSchema) {
		t.Errorf("Inspect: %v", err)
	}
	if err := schema.Apply(t.Context(), db); !errors.Is(err, schema.ErrNoSchema) {
		t.Errorf("Apply: %v", err)
	}
}

func TestInspectOfPostgreSQLFindsWhatNeedsWork(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "odd")
	for _, statement := range []string{
		"CREATE TABLE no_key (a int)",
		"CREATE TABLE text_key (a varchar(9) PRIMARY KEY)",
		"CREATE TABLE number_key (a numeric(20) PRIMARY KEY)",
		"CREATE TABLE half (a smallserial PRIMARY KEY)",
		"ALTER SEQUENCE half_a_seq RESTART WITH 16386",
		"CREATE TABLE used_up (a serial PRIMARY KEY)",
		"INSERT INTO used_up VALUES (2147483647)",
		"CREATE TABLE zero (a bigserial PRIMARY KEY)",
		"INSERT INTO zero VALUES (0), (-3)",
		"CREATE TABLE given (a bigint PRIMARY KEY DEFAULT 7)",
		"CREATE SEQUENCE shared_seq",
		"CREATE TABLE by_hand (a bigint PRIMARY KEY DEFAULT nextval('shared_seq'))",
		"CREATE DOMAIN id AS bigint",
		"CREATE TABLE by_domain (a id PRIMARY KEY DEFAULT nextval('shared_seq'))",
		`CREATE TABLE "odd ""name" ("k ""e" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)`,
		"CREATE TABLE parted (a bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY) PARTITION BY RANGE (a)",
		"CREATE TABLE part_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000)",
		"CREATE TABLE refers (a bigint PRIMARY KEY DEFAULT nextval('shared_seq'), p bigint REFERENCES parted, UNIQUE (p) INCLUDE (a))",
		"CREATE TABLE widened (a serial PRIMARY KEY)",
		"ALTER TABLE widened ALTER COLUMN a TYPE bigint",
		"CREATE TABLE widened_late (a smallserial PRIMARY KEY)",
		"ALTER TABLE widened_late ALTER COLUMN a TYPE bigint",
		"SELECT setval('widened_late_a_seq', 32000)",
		"CREATE VIEW v AS SELECT 1 AS a",
		"CREATE MATERIALIZED VIEW mv AS SELECT 1 AS a",
		"CREATE TABLE worker_node (id bigserial PRIMARY KEY)",
	} {
		database.Exec(t, db, statement)
	}
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	report := inspected(t, db)
	expectFindings(t, report, map[string]string{
		"widened":      "warning:narrow_sequence",
		"widened_late": "error:narrow_sequence",
		"no_key":       "error:no_primary_key",
		"text_key":     "error:non_integer_key",
		"number_key":   "error:non_integer_key",
		"half":         "warning:narrow_key warning:range_used",
		"used_up":      "warning:narrow_key error:range_used",
		"zero":         "warning:non_positive_id",
		"given":        "info:no_auto_increment",
		"by_hand":      "",
		"by_domain":    "",
		`odd "name`:    "",
		"parted":       "",
		"refers":       "warning:unique_key",
		"worker_node":  "",
	})
	refers := report.Tables[slices.IndexFunc(report.Tables, func(t schema.Table) bool { return t.Name == "refers" })]
	if len(refers.ForeignKeys) != 1 {
		t.Errorf("foreign keys to a partitioned table: %+v", refers.ForeignKeys)
	}
}

func TestNextIDIsAboveWhatTheSequenceHasGiven(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "own")
	database.Exec(t, db, `CREATE TABLE orders (id serial PRIMARY KEY, n bigint NOT NULL DEFAULT 0, s text, "ID" int)`)
	expectNext(t, db, "id", 1)
	database.Exec(t, db, "INSERT INTO orders (n) VALUES (0), (0), (0)")
	expectNext(t, db, "id", 4)
	database.Exec(t, db, "DELETE FROM orders WHERE id > 1")
	expectNext(t, db, "id", 4)
	database.Exec(t, db, "INSERT INTO orders (id, n) VALUES (100, -7)")
	expectNext(t, db, "id", 101)
	expectNext(t, db, "n", 1)
	expectNext(t, db, "ID", 1)
	for statement, want := range map[string]int64{
		"SELECT setval('orders_id_seq', 500)":                                         501,
		"SELECT setval('orders_id_seq', 500, false)":                                  500,
		"ALTER SEQUENCE orders_id_seq RESTART WITH 700":                               700,
		"ALTER SEQUENCE orders_id_seq RESTART WITH 3":                                 101,
		"ALTER SEQUENCE orders_id_seq INCREMENT BY -5 MINVALUE -1000 RESTART WITH 90": 101,
	} {
		database.Exec(t, db, statement)
		expectNext(t, db, "id", want)
	}
	database.Exec(t, db, "DELETE FROM orders")
	database.Exec(t, db, "SELECT setval('orders_id_seq', 90)") // counts down
	expectNext(t, db, "id", 91)
	database.Exec(t, db, "SELECT setval('orders_id_seq', -90)")
	expectNext(t, db, "id", 1)
	for column, want := range map[string]error{"s": schema.ErrNoIntegerKey, "N": schema.ErrNoIntegerKey} {
		if _, err := schema.NextID(t.Context(), db, "orders", column); !errors.Is(err, want) {
			t.Errorf("NextID of %s: %v, want %v", column, err, want)
		}
	}
	for _, table := range []string{"order", "Orders", "pg_class"} {
		if _, err := schema.NextID(t.Context(), db, table, "id"); !errors.Is(err, schema.ErrNoTable) {
			t.Errorf("NextID of %s: %v", table, err)
		}
	}
	database.Exec(t, db, "INSERT INTO orders (id, n) VALUES (7, 9223372036854775807)")
	if _, err := schema.NextID(t.Context(), db, "orders", "n"); !errors.Is(err, schema.ErrKeyExhausted) {
		t.Errorf("NextID of a used up column: %v", err)
	}
}

// Sessions keep ids of a sequence with a cache in advance, and give them later.
func TestNextIDIsAboveWhatOtherSessionsKeepInAdvance(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "own")
	database.Exec(t, db, "CREATE TABLE orders (id bigserial PRIMARY KEY)")
	database.Exec(t, db, "ALTER SEQUENCE orders_id_seq CACHE 50")
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.ExecContext(t.Context(), "INSERT INTO orders DEFAULT VALUES"); err != nil {
		t.Fatal(err)
	}
	expectNext(t, db, "id", 51)
}

func TestASequenceThatMayNotBeReadIsAnErrorNotAGuess(t *testing.T) {
	p := server.RunPostgres(t)
	admin := p.Open(t, "own")
	database.Exec(t, admin, "CREATE TABLE orders (id serial PRIMARY KEY)")
	app := database.PostgresAs(t, p, "own", "app", "GRANT SELECT ON orders TO app", "GRANT USAGE ON SEQUENCE orders_id_seq TO app")
	for range 2 {
		_, err := schema.NextID(t.Context(), app, "orders", "id")
		if !errors.Is(err, schema.ErrNoCounter) || !strings.Contains(err.Error(), "public.orders_id_seq") {
			t.Errorf("NextID: %v", err)
		}
		if _, err := schema.Inspect(t.Context(), app); !errors.Is(err, schema.ErrNoCounter) {
			t.Errorf("Inspect: %v", err)
		}
	}
	database.Exec(t, admin, "GRANT SELECT ON SEQUENCE orders_id_seq TO app")
	expectNext(t, app, "id", 1)
}

func TestSeedOnPostgreSQLRaisesAndNeverLowersHoweverManySeedAtOnce(t *testing.T) {
	p := server.RunPostgres(t)
	db := p.Open(t, "own")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			database.Exec(t, db, "DELETE FROM leaf_alloc")
			database.Exec(t, db, "ALTER DATABASE own SET default_transaction_isolation = '"+isolation+"'")
			pool := p.Open(t, "own")
			seedAtOnce(t, pool, 1)
		})
	}
}

func TestTheRightsThatTheDDLOfPostgreSQLNamesAreEnough(t *testing.T) {
	p := server.RunPostgres(t)
	if err := schema.Apply(t.Context(), p.Open(t, "own")); err != nil {
		t.Fatal(err)
	}
	ranges := database.PostgresAs(t, p, "own", "ranges", "GRANT SELECT, UPDATE (max_id, update_time) ON leaf_alloc TO ranges")
	database.Exec(t, ranges, "UPDATE leaf_alloc SET max_id = max_id + 1, update_time = CURRENT_TIMESTAMP WHERE biz_tag = 'order' RETURNING max_id")
	seeder := database.PostgresAs(t, p, "own", "seeder", "GRANT SELECT, INSERT, UPDATE (max_id, update_time) ON leaf_alloc TO seeder")
	if now, err := schema.Seed(t.Context(), seeder, "order", 500, 10); err != nil || now != 500 {
		t.Errorf("%d, %v", now, err)
	}
	worker := database.PostgresAs(t, p, "own", "worker", `GRANT INSERT, SELECT ("ID") ON "WORKER_NODE" TO worker`)
	database.Exec(t, worker, `INSERT INTO "WORKER_NODE" ("HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE") VALUES ('h', '1', 1, CURRENT_DATE) RETURNING "ID"`)
	if err := schema.Apply(t.Context(), worker); err != nil {
		t.Error(err)
	}
	if _, err := worker.ExecContext(t.Context(), `INSERT INTO "WORKER_NODE" ("ID", "HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE") VALUES (7, 'h', '1', 1, CURRENT_DATE)`); err == nil {
		t.Error("a worker id was chosen")
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
