// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// postgresTable is a PostgreSQL table that is migrated to two databases.
type postgresTable struct {
	source *sql.DB
	shards sharding.DBs
	table  migrate.Table
	chunk  int // rows
	job    *migrate.Job
}

// newPostgresTable makes the table t, which is sharded by its key id, in a database of its
// own on a server; every database has what the statements in common make.
func newPostgresTable(t *testing.T, p database.DSNOpener, common string, statements ...string) *postgresTable {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "t_%d")
	if err != nil {
		t.Fatal(err)
	}
	o := &postgresTable{
		source: p.Open(t, "whole"), shards: sharding.DBs{"a": p.Open(t, "part_a"), "b": p.Open(t, "part_b")},
		table: migrate.Table{Table: sharding.Table{Name: "t", Key: "id", Rule: sharding.Low(2), Map: m}},
		chunk: 3,
	}
	for _, db := range []*sql.DB{o.source, o.shards["a"], o.shards["b"]} {
		database.Exec(t, db, common)
	}
	for _, statement := range statements {
		database.Exec(t, o.source, statement)
	}
	o.through(t, o.source)
	return o
}

// through makes the job use another pool for the source.
func (o *postgresTable) through(t *testing.T, source *sql.DB) {
	t.Helper()
	var err error
	o.job, err = migrate.New(migrate.Config{Source: source, Shards: o.shards, Tables: []migrate.Table{o.table}, ChunkRows: o.chunk})
	if err != nil {
		t.Fatal(err)
	}
}

// run copies the table to its shards, which are not switched yet.
func (o *postgresTable) run(t *testing.T) {
	t.Helper()
	if err := o.job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (o *postgresTable) cutover(t *testing.T) {
	t.Helper()
	if _, err := o.job.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
}

func (o *postgresTable) rollback(t *testing.T) {
	t.Helper()
	if _, err := o.job.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
}

// sameRows fails unless the shards have the rows of the source, as the server writes them.
func (o *postgresTable) sameRows(t *testing.T, source, suffix string) {
	t.Helper()
	want := database.Texts(t, o.source, "SELECT x::text FROM "+source+" x")
	var got []string
	for i, at := range o.table.Map.Targets() {
		got = append(got, database.Texts(t, o.shards[at.DB], "SELECT x::text FROM "+at.Table+suffix+" x")...)
		if n := database.MustNumber(t, o.shards[at.DB], fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE id & 3 <> %d", at.Table+suffix, i)); n > 0 {
			t.Errorf("%s has %d rows of other shards", at, n)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || len(want) == 0 {
		t.Errorf("the source has %d rows, the shards %d", len(want), len(got))
		reportMissing(t, "only on the source", want, got)
		reportMissing(t, "only on a shard", got, want)
	}
}

// blocked returns the messages of findings that block the job.
func (o *postgresTable) blocked(t *testing.T) string {
	t.Helper()
	var all []string
	found, err := o.job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Severity == migrate.Block {
			all = append(all, f.Message+": "+f.Fix)
		}
	}
	return strings.Join(all, "\n")
}

func TestValuesOfPostgresComeThroughAsTheyAre(t *testing.T) {
	for _, rows := range []int{3, 100} { // one row or several in an INSERT
		t.Run(fmt.Sprintf("%d rows at once", rows), func(t *testing.T) { valuesOfPostgres(t, rows) })
	}
}

func valuesOfPostgres(t *testing.T, chunk int) {
	t.Helper()
	o := newPostgresTable(t, server.SharePostgres(t),
		`CREATE TYPE mood AS ENUM ('sad', 'it''s, "fine"', 'happy'); CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN padded AS char(4)`,
		`CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			small smallint, big bigint, n numeric, money_like numeric(20,4), f4 real, f8 double precision, b boolean,
			txt text, vc varchar(10), c char(5), dom positive, pad padded, by bytea, u uuid,
			d date, tm time(3), tz timetz, ts timestamp, tsz timestamptz, iv interval,
			j json, jb jsonb, m mood, ints int[], texts text[], moods mood[], r int4range, mr nummultirange, bits bit(5), vbits bit varying, ip inet, net cidr, mac macaddr,
			bx box DEFAULT '((1,2),(3,4))', bxs box[] DEFAULT '{(1,2),(3,4);NULL}', p point, poly polygon, tsv tsvector, path jsonpath, pads char(3)[],
			twice bigint GENERATED ALWAYS AS (big * 2) STORED, dflt text NOT NULL DEFAULT 'it''s ' || CURRENT_DATE, CHECK (small < 30000))`,
		//nolint:dupword // they are values
		`INSERT INTO t (small, big, n, money_like, f4, f8, b, txt, vc, c, dom, pad, by, u, d, tm, tz, ts, tsz, iv, j, jb, m, ints, texts, moods, r, mr, bits, vbits, ip, net, mac, p, poly, tsv, path, pads) VALUES
			(-32768, 9007199254740993, 1.10, 12345678901234.5, '-0', '-0', true, E'it''s \\ a "text"\n\t€𝄞', ' a ', 'x', 7, 'y', '\x00ff275c', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
			 '0044-03-15 BC', '24:00', '12:00:00.5+05:30', 'infinity', '1999-12-31 23:59:59.999999-11', '1 year -2 days +03:00:00.000001', '{"b": 1,  "a": 1.0, "a":2}', '{"b": 1.00, "a": null}', 'it''s, "fine"',
			 '{{1,2},{NULL,4}}', ARRAY['a,b', 'NULL', NULL, '', '"', '\'], ARRAY['sad', 'it''s, "fine"']::mood[], '[1,5)', '{[1.5,2),(3,)}', B'10101', B'1', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03',
			 '(0.1,-0)', '((0,0),(1,0),(1,1))', 'a:1A fat:2 cat:3', '$.a[*] ? (@ > 1)', ARRAY['a', 'b ']),
			(NULL, NULL, 'NaN', NULL, 16777215, 0.1, NULL, '', '', '', NULL, NULL, '', NULL, '294276-12-31', '00:00', NULL, '4713-01-01 BC', '-infinity', '0', 'null', '[]', 'sad', '{}', '{}', NULL, 'empty', '{}', NULL, '', '::1', '::/0', NULL, NULL, NULL, '', NULL, NULL),
			(1, -1, 'Infinity', -0.0001, 'Infinity', 5e-324, false, repeat('é', 100000), NULL, NULL, 1, '', decode(repeat('00ff', 50000), 'hex'), NULL, 'infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'happy', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
		`INSERT INTO t (small, txt) SELECT n, CASE WHEN n % 3 > 0 THEN 'row ' || n END FROM generate_series(1, 50) n`)
	if found := o.blocked(t); found != "" {
		t.Fatal(found)
	}
	o.chunk = chunk
	o.through(t, o.source)
	o.run(t)
	o.sameRows(t, "t", "")
	stored := database.MustNumber(t, o.shards["a"], "SELECT COUNT(*) FROM t_0")
	if n := database.MustNumber(t, o.shards["a"], "SELECT COUNT(DISTINCT xmin::text) FROM t_0"); chunk > int(stored) && n > 4 { // rows of one statement have one xmin; the longest row has its own
		t.Errorf("%d statements inserted %d rows", n, stored)
	}
	database.Exec(t, o.source, "UPDATE t SET f8 = '-0', f4 = 0.1, n = n + 0.000, jb = jb || '{\"z\": 1}' WHERE id % 5 = 0")
	o.run(t)
	if v, err := o.job.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 53 {
		t.Errorf("%+v, %v", v, err)
	}
	o.cutover(t)
	o.sameRows(t, "t_old", "")
	database.Exec(t, o.shards["a"], "UPDATE t_0 SET ints = '{7}', by = '\\x01', m = 'happy'")
	o.rollback(t)
	o.sameRows(t, "t", "_sealed")
}

// A citext compares without case, and keeps it.
func TestACitextOfPostgresIsMigrated(t *testing.T) {
	o := newPostgresTable(t, server.RunPostgres(t), "CREATE EXTENSION citext; CREATE DOMAIN email AS citext CHECK (VALUE ~ '@')",
		"CREATE TABLE t (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, slug citext NOT NULL UNIQUE, mail email, all_of citext[], twice citext GENERATED ALWAYS AS (slug || '2') STORED)",
		"INSERT INTO t (slug, mail, all_of) SELECT 'Slug ' || n, CASE WHEN n % 3 > 0 THEN 'A@x' END, ARRAY['a', 'A', NULL]::citext[] FROM generate_series(1, 20) n")
	if found := o.blocked(t); found != "" {
		t.Fatal(found)
	}
	o.run(t)
	o.sameRows(t, "t", "")
	database.Exec(t, o.source, "UPDATE t SET slug = upper(slug::text), mail = 'a@X' WHERE id % 2 = 0")
	database.Exec(t, o.source, "UPDATE t SET slug = 'swap' WHERE id = 1; UPDATE t SET slug = 'sLug 1' WHERE id = 2; UPDATE t SET slug = 'SLUG 2' WHERE id = 1")
	o.run(t)
	o.sameRows(t, "t", "")
	database.Exec(t, o.shards["b"], "BEGIN; UPDATE t_1 SET all_of = ARRAY['A', 'A', NULL]::citext[] WHERE id = 5; COMMIT")
	if v, err := o.job.Verify(t.Context()); err != nil || v.Requeued != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	o.run(t)
	o.cutover(t)
	o.sameRows(t, "t_old", "")
	database.Exec(t, o.shards["a"], "UPDATE t_0 SET slug = lower(slug::text)")
	o.rollback(t)
	o.sameRows(t, "t", "_sealed")
}

func TestVerifySeesEachChangeOfAValueOfPostgres(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1",
		"CREATE TABLE t (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, a text, b text, f float8, n numeric, by bytea)",
		"INSERT INTO t (a, b, f, n, by) SELECT 'x', 'y', 0, 1, '' FROM generate_series(1, 8)")
	o.run(t)
	for _, change := range []string{"a = 'y', b = 'x'", "a = NULL", "a = 'xy', b = ''", "f = '-0'", "n = 1.0", "by = NULL", "a = 'x '"} {
		database.Exec(t, o.shards["b"], "BEGIN; UPDATE t_1 SET "+change+"; COMMIT")
		v, err := o.job.Verify(t.Context())
		if err != nil || v.Requeued == 0 {
			t.Errorf("%s: %+v, %v", change, v, err)
		}
		o.run(t) // mends it
		o.sameRows(t, "t", "")
	}
}

func TestASequenceGoesOnAboveTheGreatestIDAfterARollback(t *testing.T) {
	for name, key := range map[string]string{
		"identity": "bigint GENERATED ALWAYS AS IDENTITY", "serial": "bigserial", "a sequence of its own": "bigint DEFAULT nextval('\"Own Numbers\"')", "a narrow identity": "int GENERATED BY DEFAULT AS IDENTITY",
	} {
		t.Run(name, func(t *testing.T) {
			o := newPostgresTable(t, server.SharePostgres(t), `CREATE SEQUENCE "Own Numbers"`,
				"CREATE TABLE t (id "+key+" PRIMARY KEY, v int NOT NULL)", "INSERT INTO t (v) SELECT n FROM generate_series(1, 20) n")
			o.run(t)
			o.cutover(t)
			if row, err := sharding.ReadRoute(t.Context(), o.source, "t"); err != nil || row.Route != sharding.OnShards || row.Job != "t" {
				t.Errorf("%+v, %v", row, err)
			}
			database.Exec(t, o.shards["a"], "INSERT INTO t_0 VALUES (1000, 1)")
			database.Exec(t, o.shards["b"], "INSERT INTO t_1 VALUES (1001, 2)")
			o.rollback(t)
			o.sameRows(t, "t", "_sealed")
			if id := database.MustNumber(t, o.source, "INSERT INTO t (v) VALUES (3) RETURNING id"); id != 1002 {
				t.Errorf("the next id is %d", id)
			}
		})
	}
}

// After a rollback generators make the ids of the source's rows, and programs set the other columns that the shards do not number.
func TestAnAlwaysNumberedColumnTakesGivenValuesAfterARollback(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1",
		"CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int NOT NULL, place int GENERATED ALWAYS AS IDENTITY)", "INSERT INTO t (v) SELECT n FROM generate_series(1, 20) n")
	o.run(t)
	o.cutover(t)
	database.Exec(t, o.shards["a"], "INSERT INTO t_0 VALUES (1000, 1, 30)")
	o.rollback(t)
	database.Exec(t, o.source, "INSERT INTO t (id, v, place) VALUES (1005, 3, 31)")
	o.run(t)
	o.sameRows(t, "t", "_sealed")
	o.cutover(t)
	o.rollback(t)
	database.Exec(t, o.source, "INSERT INTO t (id, v) VALUES (1006, 3)")
}

func TestAJobGoesOnAfterAColumnWasMadeToTakeGivenValues(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1",
		"CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int NOT NULL)", "INSERT INTO t (v) SELECT n FROM generate_series(1, 20) n")
	o.run(t)
	database.Exec(t, o.source, "ALTER TABLE t ALTER COLUMN id SET GENERATED BY DEFAULT")
	database.Exec(t, o.source, "INSERT INTO t VALUES (50, 1)")
	o.run(t)
	o.sameRows(t, "t", "")
}

func TestWhatAMigrationOfPostgresDoesNotCarryIsRefused(t *testing.T) {
	const plain = "CREATE TABLE t (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int NOT NULL)"
	for name, c := range map[string]struct {
		make   []string
		wanted string
	}{
		"a partitioned table":     {[]string{"CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id)"}, "is partitioned"},
		"a partition":             {[]string{"CREATE TABLE p (id bigint) PARTITION BY RANGE (id)", "CREATE TABLE t PARTITION OF p (PRIMARY KEY (id)) FOR VALUES FROM (1) TO (10)"}, "a partition"},
		"a parent":                {[]string{plain, "CREATE TABLE heir () INHERITS (t)"}, "inherits"},
		"a view":                  {[]string{"CREATE VIEW t AS SELECT 1 AS id"}, "is a view"},
		"an unlogged table":       {[]string{"CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY)"}, "is unlogged"},
		"policies":                {[]string{plain, "ALTER TABLE t ENABLE ROW LEVEL SECURITY"}, "row-level security"},
		"rules":                   {[]string{plain, "CREATE RULE none AS ON DELETE TO t DO INSTEAD NOTHING"}, "has rules"},
		"triggers":                {[]string{plain, "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'", "CREATE TRIGGER own BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()"}, "it has the triggers own"},
		"a reference":             {[]string{plain, "CREATE TABLE child (t bigint REFERENCES t)"}, "child, which is not in the job, refers to it by (t): add child to the job, or drop the foreign key: ALTER TABLE child DROP CONSTRAINT child_t_fkey"},
		"exclusion":               {[]string{"CREATE TABLE t (id bigint PRIMARY KEY, r int4range, CONSTRAINT apart EXCLUDE USING gist (r WITH &&))"}, "the EXCLUDE constraint apart"},
		"a late key":              {[]string{plain, "ALTER TABLE t ADD CONSTRAINT late UNIQUE (v) DEFERRABLE"}, "the constraint late, which is DEFERRABLE"},
		"an unchecked check":      {[]string{plain, "ALTER TABLE t ADD CONSTRAINT c CHECK (v > 0) NOT VALID"}, "NOT VALID"},
		"money":                   {[]string{"CREATE TABLE t (id bigint PRIMARY KEY, m money)"}, "column m uses the type money"},
		"two of them":             {[]string{"CREATE TABLE t (id bigint PRIMARY KEY, m money, x xml)"}, "column m uses the type money, and column x uses the type xml, whose values"},
		"xml":                     {[]string{"CREATE TABLE t (id bigint PRIMARY KEY, m xml[])"}, "column m uses the type xml"},
		"a composite":             {[]string{"CREATE TYPE pair AS (a int, b int)", "CREATE TABLE t (id bigint PRIMARY KEY, m pair)"}, "column m uses the type pair"},
		"characters of no length": {[]string{"CREATE TABLE t (id bigint PRIMARY KEY, m bpchar)"}, "column m uses the type character"},
		"two names":               {[]string{`CREATE TABLE t (id bigint PRIMARY KEY, a int, "A" int)`}, "two columns"},
		"no key":                  {[]string{"CREATE TABLE t (id bigint)"}, "primary key"},
		"a type the shards lack":  {[]string{"CREATE TYPE mood AS ENUM ('sad')", "CREATE TABLE t (id bigint PRIMARY KEY, m mood)"}, `type "mood" does not exist`},
		"a view on it":            {[]string{plain, "CREATE VIEW seen AS SELECT * FROM t"}, "view seen uses table t"},
		"a function on it":        {[]string{plain, "CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT COUNT(*) FROM t; END"}, "function counted() uses table t"},
		"a subscription":          {[]string{plain, "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=1' PUBLICATION p WITH (connect = false, slot_name = NONE)"}, "the database subscribes to another one (s)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := server.SharePostgres(t)
			o := newPostgresTable(t, p, "SELECT 1", c.make...)
			t.Cleanup(func() {
				if name == "a subscription" { // the database could not be dropped
					_, _ = o.source.Exec("DROP SUBSCRIPTION IF EXISTS s")
				}
			})
			if found := o.blocked(t); !strings.Contains(found, c.wanted) {
				t.Errorf("found %q", found)
			}
			err := o.job.Run(t.Context())
			if err == nil {
				t.Error("it runs all the same")
			}
			if n := database.MustNumber(t, o.source, "SELECT COUNT(*) FROM pg_trigger WHERE tgname LIKE 'shardid%'"); n > 0 {
				t.Errorf("%d triggers were made", n)
			}
		})
	}
}

// PostgreSQL cuts names after 63 bytes.
func TestATableWithALongNameGoesThereAndBackOrIsRefused(t *testing.T) {
	for length, refused := range map[int]bool{59: false, 60: true} {
		name := strings.Repeat("n", length)
		p := server.SharePostgres(t)
		o := newPostgresTable(t, p, "SELECT 1", "CREATE TABLE "+name+" (id bigint PRIMARY KEY, v int)", "INSERT INTO "+name+" VALUES (1, 1), (2, 2), (3, 3)")
		o.table.Name = name
		j, err := migrate.New(migrate.Config{Name: "long", Source: o.source, Shards: o.shards, Tables: []migrate.Table{o.table}})
		if err != nil {
			t.Fatal(err)
		}
		o.job = j
		if refused {
			if found := o.blocked(t); !strings.Contains(found, "longer than 59 bytes") {
				t.Errorf("%d bytes: %q", length, found)
			}
			continue
		}
		o.run(t)
		o.cutover(t)
		o.sameRows(t, name+"_old", "")
		o.rollback(t)
		o.sameRows(t, name, "_sealed")
	}
}

func TestAStandbyOfPostgresIsNoSourceUntilItIsPromoted(t *testing.T) {
	p := server.RunPostgres(t)
	o := newPostgresTable(t, p, "SELECT 1", "CREATE TABLE t (id bigint PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
	for _, db := range []*sql.DB{o.source, o.shards["a"], o.shards["b"]} {
		db.SetMaxIdleConns(0) // each call meets the server of its time
	}
	o.run(t)
	// The server's working directory is that of its data.
	database.Exec(t, o.source, "COPY (SELECT 1) TO PROGRAM 'cat > standby.signal'")
	p.Kill()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, inspected := o.job.Inspect(t.Context())
	for what, err := range map[string]error{"run": o.job.Run(t.Context()), "inspect": inspected} {
		if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "is a standby") {
			t.Errorf("%s: %v", what, err)
		}
	}
	database.Exec(t, o.source, "SELECT pg_promote()")
	database.Exec(t, o.source, "UPDATE t SET v = v + 1")
	o.run(t)
	o.sameRows(t, "t", "")
	o.cutover(t)
	o.sameRows(t, "t_old", "")
}

func TestRowsOfPostgresAndMySQLDoNotMeet(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1", "CREATE TABLE t (id bigint PRIMARY KEY)")
	j, err := migrate.New(migrate.Config{Source: o.source, Shards: sharding.DBs{"a": server.ShareMariaDB(t).Open(t, "part_a"), "b": o.shards["b"]}, Tables: []migrate.Table{o.table}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), "database a is a mysql, the source a postgres") {
		t.Errorf("got %v", err)
	}
}

// A TRUNCATE gets an error. Inspect finds users that may turn triggers off.
func TestATruncateOfPostgresIsRefusedOrSeen(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1", "CREATE TABLE t (id bigint PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
	o.run(t)
	if _, err := o.source.ExecContext(t.Context(), "TRUNCATE t"); err == nil || !strings.Contains(err.Error(), "use DELETE, or abort the migration") {
		t.Errorf("TRUNCATE: %v", err)
	}
	if _, err := o.source.ExecContext(t.Context(), "BEGIN; SET LOCAL session_replication_role = 'replica'; DELETE FROM t WHERE id = 1; COMMIT"); err != nil {
		t.Fatal(err)
	}
	o.run(t)
	o.sameRows(t, "t", "")
	database.Exec(t, o.source, "ALTER TABLE t DISABLE TRIGGER ALL; DELETE FROM t WHERE id = 2")
	if err := o.job.Run(t.Context()); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "lost the triggers") {
		t.Errorf("without triggers: %v", err)
	}
}

func TestAUserOfPostgresWithTheDocumentedGrantsMigrates(t *testing.T) {
	p := server.RunPostgres(t)
	o := newPostgresTable(t, p, "SELECT 1", "CREATE ROLE shop_owner", "CREATE USER mover", "CREATE USER app",
		"CREATE TABLE kinds (v int PRIMARY KEY)", "INSERT INTO kinds SELECT generate_series(1, 200)",
		"CREATE TABLE t (id bigserial PRIMARY KEY, v int NOT NULL REFERENCES kinds ON DELETE CASCADE)", "INSERT INTO t (v) SELECT n FROM generate_series(1, 20) n",
		"ALTER TABLE t OWNER TO shop_owner", "GRANT SELECT, INSERT ON t TO app", "GRANT USAGE ON SEQUENCE t_id_seq TO app")
	as := func(user, name string) *sql.DB {
		db, err := sql.Open("pgx", strings.Replace(p.DSN(name), "postgres@", user+"@", 1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	j, err := migrate.New(migrate.Config{Source: as("mover", "whole"), Shards: sharding.DBs{"a": as("mover", "part_a"), "b": as("mover", "part_b")}, Tables: []migrate.Table{o.table}})
	if err != nil {
		t.Fatal(err)
	}
	o.job = j
	if found := o.blocked(t); !strings.Contains(found, "GRANT CREATE, USAGE ON SCHEMA") || !strings.Contains(found, `GRANT "shop_owner"`) {
		t.Errorf("without rights: %s", found)
	}
	for _, grant := range postgresGrants {
		for _, db := range []*sql.DB{o.source, o.shards["a"], o.shards["b"]} {
			database.Exec(t, db, grant)
		}
	}
	database.Exec(t, o.source, ownerGrant)
	if found := o.blocked(t); !strings.Contains(found, "switch foreign keys off") || !strings.Contains(found, strings.TrimSuffix(keysGrant, "mover")) {
		t.Errorf("without the right to write past foreign keys: %s", found)
	}
	database.Exec(t, o.source, keysGrant)
	found, err := j.Inspect(t.Context())
	if err != nil || migrate.Blocked(found) || !slices.ContainsFunc(found, func(f migrate.Finding) bool { return strings.Contains(f.Message, "(app)") }) {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := j.Plan(t.Context()); err != nil {
		t.Error(err)
	}
	o.run(t)
	app := as("app", "whole") // which has no right on the log
	database.Exec(t, app, "INSERT INTO t (v) VALUES (100)")
	o.run(t)
	o.sameRows(t, "t", "")
	database.Exec(t, o.source, "REVOKE SET ON PARAMETER session_replication_role FROM mover")
	if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "switch foreign keys off") {
		t.Errorf("a switch without a way back: %v", err)
	}
	database.Exec(t, o.source, keysGrant)
	o.cutover(t)
	if _, err := app.ExecContext(t.Context(), "INSERT INTO t (v) VALUES (101)"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("an insert after the switch: %v", err)
	}
	database.Exec(t, o.shards["b"], "GRANT INSERT ON t_1 TO app")
	database.Exec(t, as("app", "part_b"), "INSERT INTO t_1 VALUES (1001, 102)")
	o.rollback(t)
	o.sameRows(t, "t", "_sealed")
	database.Exec(t, app, "INSERT INTO t (v) VALUES (103)")
	o.run(t)
	o.cutover(t)
	o.sameRows(t, "t_old", "")
	if err := j.Finalize(t.Context()); err != nil {
		t.Error(err)
	}
	if n := database.MustNumber(t, o.source, "SELECT COUNT(*) FROM pg_proc WHERE proname LIKE 'shardid%nop%'"); n > 0 {
		t.Errorf("%d functions stay", n)
	}
	o.dropMover(t)
}

// dropMover removes what the job has left behind, as the runbook says, so that the user can be dropped.
func (o *postgresTable) dropMover(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "At last, drop the user `mover`.")
	var blocks []string
	for _, block := range strings.Split(page, "```sql\n")[1:3] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, strings.Replace(block, "shardid_orders_s", "shardid_t_s", 1))
	}
	database.Exec(t, o.source, "DROP TABLE t_old")
	database.Exec(t, o.source, blocks[0])
	if n := database.MustNumber(t, o.source, "SELECT COUNT(*) FROM pg_proc WHERE proname LIKE 'shardid%'"); n > 0 {
		t.Errorf("%d functions stay after the archive", n)
	}
	for _, db := range []*sql.DB{o.source, o.shards["a"], o.shards["b"]} {
		database.Exec(t, db, blocks[1])
	}
	database.Exec(t, o.source, "DROP USER mover")
}
