// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// odd is a job of one table, odd, with two shards on the server of its source.
type odd struct {
	*migrate.Job

	source *sql.DB
	table  migrate.Table
	shards sharding.DBs
}

func newOdd(t *testing.T, s database.DSNOpener, database, table string, rule sharding.Rule, statements ...string) *odd {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 2, table+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	o := &odd{source: s.Open(t, database), shards: sharding.DBs{"a": s.Open(t, "odd_a"), "b": s.Open(t, "odd_b")},
		table: migrate.Table{Table: sharding.Table{Name: table, Key: "u", Rule: rule, Map: m}}}
	conn, err := o.source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	o.reach(t, "a", o.shards["a"])
	return o
}

// reach makes the job use a database for the shards of this name.
func (o *odd) reach(t *testing.T, name string, db *sql.DB) {
	t.Helper()
	o.shards[name] = db
	var err error
	if o.Job, err = migrate.New(migrate.Config{Name: "odd", Source: o.source, Shards: o.shards, Tables: []migrate.Table{o.table}}); err != nil {
		t.Fatal(err)
	}
}

func (o *odd) run(t *testing.T) {
	t.Helper()
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// on queries the shards, one after the other.
func (o *odd) on(t *testing.T, query string) (all []string) {
	t.Helper()
	for _, at := range o.table.Map.Targets() {
		all = append(all, database.Texts(t, o.shards[at.DB], strings.ReplaceAll(query, "%s", at.Table))...)
	}
	slices.Sort(all)
	return all
}

// drop drops the shards.
func (o *odd) drop(t *testing.T) {
	t.Helper()
	for _, at := range o.table.Map.Targets() {
		database.Exec(t, o.shards[at.DB], "DROP TABLE "+at.Table)
	}
}

// finds fails unless Inspect reports all texts, such as "block lost_value e has".
func (o *odd) finds(t *testing.T, wanted ...string) {
	t.Helper()
	found, err := o.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return strings.HasPrefix(fmt.Sprintf("%s %s %s", f.Severity, f.Code, f.Message), want)
		}) {
			t.Errorf("%q is missing in %+v", want, found)
		}
	}
}

func TestATruncateIsSeenWhateverTheNamesOfDatabaseAndTable(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for _, table := range []string{"odd", "con", "a$b"} {
			o := newOdd(t, s, "shöp 日本-ÿ.x", table, sharding.Low(1), "CREATE TABLE "+table+" (id INT PRIMARY KEY, u INT NOT NULL)", "INSERT INTO "+table+" VALUES (1, 1), (2, 2)")
			o.run(t)
			database.Exec(t, o.source, "TRUNCATE TABLE "+table)
			if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrChanged) {
				t.Errorf("%s: %v", table, err)
			}
			if err := o.Abort(t.Context()); err != nil {
				t.Errorf("%s: %v", table, err)
			}
			o.drop(t)
		}
	})
}

func TestDatabasesThatInnoDBSpellsAlikeAreToldApartOrRefused(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		other := s.Open(t, "shäp")
		database.Exec(t, other, "CREATE TABLE odd (id INT PRIMARY KEY)")
		o := newOdd(t, s, "shöp", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL)")
		if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) {
			t.Errorf("two databases: %v", err)
		}
		database.Exec(t, other, "DROP TABLE odd")
		o.run(t)
	})
}

func TestTablesAreClosedOnAServerThatWritesNamesInSmallLetters(t *testing.T) {
	o := newOdd(t, server.RunMariaDB(t, "--lower-case-table-names=1"), "Odd", "Orders", sharding.Low(1),
		"CREATE TABLE Orders (id INT PRIMARY KEY, u INT NOT NULL)", "INSERT INTO Orders VALUES (1, 1), (2, 2)")
	for range 2 {
		o.run(t)
		if _, err := o.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if open := database.Texts(t, o.source, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'orders'"); len(open) > 0 {
			t.Error("the table is open after the switch")
		}
		if _, err := o.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
	}
	if got := database.Texts(t, o.source, "SELECT id FROM orders ORDER BY id"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %q", got)
	}
}

func TestRowsLieWhereTheirKeysLeadApplications(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		for definition, c := range map[string]struct {
			rule sharding.Rule
			keys map[string]any // as SQL and as applications have them
		}{
			"BINARY(4)":       {sharding.HashText(2), map[string]any{"x'00ff81fe'": []byte("\x00\xff\x81\xfe"), "x'00ff82fe'": []byte("\x00\xff\x82\xfe"), "x'00ff83fe'": []byte("\x00\xff\x83\xfe"), "'abcd'": []byte("abcd")}},
			"INT(8) ZEROFILL": {sharding.Hash(2), map[string]any{"1": 1, "2": 2, "3": 3, "12345678": 12345678}},
		} {
			o := newOdd(t, s, "odd", "odd", c.rule, "DROP TABLE IF EXISTS odd", "CREATE TABLE odd (id INT AUTO_INCREMENT PRIMARY KEY, u "+definition+" NOT NULL)")
			for text := range c.keys {
				database.Exec(t, o.source, "INSERT INTO odd (u) VALUES ("+text+")")
			}
			o.run(t)
			if v, err := o.Verify(t.Context()); err != nil || !v.Clean() {
				t.Errorf("%s: %+v, %v", definition, v, err)
			}
			for text, key := range c.keys {
				at, err := o.table.Target(key)
				if err != nil {
					t.Fatal(err)
				}
				if got := database.Texts(t, o.shards[at.DB], "SELECT id FROM "+at.Table+" WHERE u = "+text); len(got) != 1 {
					t.Errorf("%s: %s is not in %s", definition, text, at)
				}
			}
			if err := o.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.drop(t)
		}
	})
}

func TestWhatACopyWouldChangeIsFoundAndNotCopied(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, e ENUM('a', '', '0'), c VARCHAR(9) CHARACTER SET cp1251, j JSON)",
			"INSERT INTO odd (id, u, c, e) VALUES (1, 1, 'A', ''), (2, 1, _cp1251 x'41e4', 'a')")
		o.run(t)
		database.Exec(t, o.source, "SET GLOBAL sql_mode = ''")
		lax := s.Open(t, "odd")
		refused := func(id int64, write, finding, mend string) {
			t.Helper()
			database.Exec(t, lax, write)
			o.finds(t, fmt.Sprintf("block lost_value %s in 1 row, the first of which is row %d", finding, id))
			var row *migrate.RowError
			if err := o.Run(t.Context()); !errors.As(err, &row) || row.ID != id || !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), finding) {
				t.Errorf("%s: a run ended with %v", write, err)
			}
			for step := range strings.SplitSeq(mend, ";") {
				database.Exec(t, lax, step)
			}
		}
		refused(3, "INSERT INTO odd (id, u, e) VALUES (3, 2, 'what?')", "e has the empty value with which the server replaces one that the ENUM does not allow", "UPDATE odd SET e = '' WHERE id = 3")
		refused(4, "INSERT INTO odd (id, u, c) VALUES (4, 1, _cp1251 x'4198')", "c has bytes that are no character of cp1251, or not that one alone", "UPDATE odd SET c = 'A?' WHERE id = 4")
		o.run(t)
		if v, err := o.Verify(t.Context()); err != nil || !v.Clean() {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// The text of a SET does not tell its empty member from no member.
func TestTheEmptyMemberOfASetIsFoundAndNotCopied(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, s SET('a', '', 'it''s') CHARACTER SET ucs2)",
			"INSERT INTO odd (id, u, s) VALUES (1, 1, 5), (2, 1, 0), (3, 2, NULL)")
		o.run(t)
		for _, value := range []string{"2", "3", "7"} {
			database.Exec(t, o.source, "UPDATE odd SET s = "+value+" WHERE id = 3")
			o.finds(t, "block lost_value s has the member '' of the SET, which its text does not show in 1 row, the first of which is row 3")
			var row *migrate.RowError
			if err := o.Run(t.Context()); !errors.As(err, &row) || row.ID != 3 || !errors.Is(err, migrate.ErrUnsupported) {
				t.Errorf("%s: a run ended with %v", value, err)
			}
		}
		database.Exec(t, o.source, "UPDATE odd SET s = `s` & ~2 WHERE id = 3")
		o.run(t)
		if got := o.on(t, "SELECT CONCAT(id, ' ', s+0) FROM %s"); !slices.Equal(got, []string{"1 5", "2 0", "3 5"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestARowOfMariaDBWithoutItsGeometryIsFound(t *testing.T) {
	s := server.RunMariaDB(t)
	o := newOdd(t, s, "odd", "odd", sharding.Low(1), "SET sql_mode = ''", "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, g POINT NOT NULL)", "INSERT INTO odd VALUES (1, 1, POINT(1, 2))", "INSERT INTO odd (id, u) VALUES (2, 1)")
	o.finds(t, "block lost_value g has no geometry, but the empty value that a row gets which was inserted without one in 1 row, the first of which is row 2")
	database.Exec(t, o.source, "UPDATE odd SET g = POINT(0, 0) WHERE id = 2")
	o.run(t)
}

func TestBitsThatAreNoTextAreCopied(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (x VARCHAR(9) CHARACTER SET ascii, b BIT(63), id MEDIUMINT PRIMARY KEY, u BIGINT NOT NULL)")
		for i, bits := range []string{"NULL", "0x19A089B858", "0x475CD1", "0xC3A4", "NULL", "0xCEB1", "0x7FFFFFFFFFFFFFFF", "0", "NULL", "0xFF"} {
			database.Exec(t, o.source, fmt.Sprintf("INSERT INTO odd VALUES ('x', %s, %d, %d)", bits, i, i))
			database.Exec(t, o.source, fmt.Sprintf("INSERT INTO odd VALUES ('x', %s, %d, %d)", bits, 100+i, 100-i))
			o.run(t)
		}
		for range 10 {
			database.Exec(t, o.source, "UPDATE odd SET b = IF(b IS NULL, 0x19A089B858 + id, IF(id % 3 = 0, NULL, b)), u = u + 1")
			o.run(t)
		}
		want := database.Texts(t, o.source, "SELECT CONCAT(id, ' ', COALESCE(HEX(b), 'NULL')) FROM odd")
		slices.Sort(want)
		if got := o.on(t, "SELECT CONCAT(id, ' ', COALESCE(HEX(b), 'NULL')) FROM %s"); !slices.Equal(got, want) {
			t.Errorf("got %q, not %q", got, want)
		}
	})
}

func TestARowOfMySQLWithoutItsVectorIsFoundAndNotCopied(t *testing.T) {
	o := newOdd(t, server.RunMySQL(t), "odd", "odd", sharding.Low(1), "SET sql_mode = ''", "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, v VECTOR(2) NOT NULL)", "INSERT INTO odd VALUES (1, 1, STRING_TO_VECTOR('[1,2]'))")
	o.run(t)
	conn, err := o.source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, write := range []string{"SET sql_mode = ''", "INSERT INTO odd (id, u) VALUES (2, 1)"} {
		if _, err := conn.ExecContext(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	const finding = "v has no vector, but the empty value that a row gets which was inserted without one"
	o.finds(t, "block lost_value "+finding+" in 1 row, the first of which is row 2")
	var row *migrate.RowError
	if err := o.Run(t.Context()); !errors.As(err, &row) || row.ID != 2 || !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), finding) {
		t.Errorf("a run ended with %v", err)
	}
	database.Exec(t, o.source, "UPDATE odd SET v = STRING_TO_VECTOR('[0,0]') WHERE id = 2")
	o.run(t)
}

// A server prepares a statement again if its tables were closed since, which a full cache of tables or FLUSH TABLES does.
// Then MySQL takes a text for what the driver has called it: the bytes of a BIT or of a VECTOR are none.
func TestBytesAreCopiedByStatementsThatTheServerPreparesAgain(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		vector := "VARBINARY(12)"
		if _, is := s.(*server.MySQL); is {
			vector = "VECTOR(3)"
		}
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (b BIT(63), id INT PRIMARY KEY, v "+vector+", g GEOMETRY, x VARBINARY(9), l VARCHAR(9) CHARACTER SET latin1, c BINARY(2), o BLOB, e ENUM('ä', 'b') CHARACTER SET latin1, j JSON, f FLOAT, n DECIMAL(20,9), y YEAR, d DATE, m TIME(6), u INT NOT NULL)")
		for i := range 40 {
			database.Exec(t, o.source, fmt.Sprintf("INSERT INTO odd VALUES (%s, %d, x'%02[2]xCEB1330E31CEB1330E31%02[2]x', POINT(%[2]d, 206.69), x'CEB1', _latin1 x'E4%02[2]x', x'FFCE', x'CEB1', 'ä', '{\"α\": 1.5}', 16777217, -0.1, 1901, '2024-02-29', '-838:59:58.5', %[2]d)",
				[]string{"NULL", "0x19A089B858", "0xCEB1", "0x7FFFFFFFFFFFFFFF"}[i%4], i))
		}
		flushed := s.Open(t, "odd")
		flush := func() { database.Exec(t, flushed, "FLUSH TABLES") }
		var err error
		o.Job, err = migrate.New(migrate.Config{Name: "odd", Source: o.source, Shards: o.shards, Tables: []migrate.Table{o.table}, ChunkRows: 2, Copiers: 1, Observe: func(migrate.Step) { flush() }})
		if err != nil {
			t.Fatal(err)
		}
		o.run(t)
		database.Exec(t, o.source, "UPDATE odd SET b = b ^ 0x4DB1, v = x'00CEB1330E31CEB1330E3141'")
		o.run(t)
		const query = "SELECT CONCAT_WS(' ', id, HEX(b), HEX(v), HEX(g), HEX(x), HEX(l), HEX(c), HEX(o), e + 0, HEX(CAST(j AS CHAR)), f, n, y, d, m) FROM "
		want := database.Texts(t, o.source, query+"odd")
		slices.Sort(want)
		if got := o.on(t, query+"%s"); !slices.Equal(got, want) {
			t.Errorf("the source has %q, the shards %q", want, got)
		}
	})
}

func TestJSONTypesThatTheTextDoesNotShowAreReportedAndNotCopied(t *testing.T) {
	o := newOdd(t, server.RunMySQL(t), "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, j JSON)",
		"INSERT INTO odd VALUES (1, 1, JSON_OBJECT('a', JSON_ARRAY(1, -1, 1.5e0, true, null, 'b', 18446744073709551615, CAST(7 AS UNSIGNED))))", "INSERT INTO odd VALUES (2, 2, NULL), (3, 2, '[]')")
	o.run(t)
	const finding = "j has a DECIMAL, a date, a time or bytes inside, which become a DOUBLE or a string when read as text"
	for typed, text := range typedJSON {
		database.Exec(t, o.source, "UPDATE odd SET j = "+typed+" WHERE id = 3")
		o.finds(t, "block lost_value "+finding+" in 1 row, the first of which is row 3")
		var row *migrate.RowError
		if err := o.Run(t.Context()); !errors.As(err, &row) || row.ID != 3 || !errors.Is(err, migrate.ErrUnsupported) {
			t.Errorf("%s: a run ended with %v", typed, err)
		}
		if v, err := o.Verify(t.Context()); err != nil || v.Clean() {
			t.Errorf("%s: %+v, %v", typed, v, err)
		}
		database.Exec(t, o.source, "UPDATE odd SET j = NULL WHERE id = 3") // as an equal number changes nothing
		database.Exec(t, o.source, "UPDATE odd SET j = '"+text+"' WHERE id = 3")
		o.run(t)
	}
	if v, err := o.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
}

// MariaDB keeps the texts of JSON, and knows nothing of types inside.
func TestJSONOfMySQLIsCopiedToMariaDBAndCompared(t *testing.T) {
	o := newOdd(t, server.RunMySQL(t), "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, j JSON)",
		`INSERT INTO odd VALUES (1, 1, '{"a": [1.5, -0.0, "ü", {"b": null}]}'), (2, 1, '[]')`)
	o.reach(t, "b", server.RunMariaDB(t).Open(t, "odd_b"))
	database.Exec(t, o.shards["b"], "CREATE TABLE odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, j JSON)")
	o.run(t)
	if v, err := o.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	database.Exec(t, o.shards["b"], "UPDATE odd_1 SET j = '[0]' WHERE id = 2")
	if v, err := o.Verify(t.Context()); err != nil || len(v.Divergences) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestAValueThatIsRefusedIsNotStoredInAWiderColumnEither(t *testing.T) {
	s := server.RunMariaDB(t)
	o := newOdd(t, s, "odd", "odd", sharding.Low(1), "SET GLOBAL sql_mode = ''", "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, e ENUM('a'))")
	database.Exec(t, o.shards["a"], "CREATE TABLE odd_0 (id BIGINT PRIMARY KEY, u INT NOT NULL, e LONGTEXT)")
	o.run(t)
	database.Exec(t, s.Open(t, "odd"), "INSERT INTO odd VALUES (1, 2, 'what?')")
	var row *migrate.RowError
	if err := o.Run(t.Context()); !errors.As(err, &row) || row.ID != 1 {
		t.Errorf("a run ended with %v", err)
	}
	if got := o.on(t, "SELECT e FROM %s"); len(got) > 0 {
		t.Errorf("the shards have %q", got)
	}
}

func TestInspectFindsWhatStandsInTheWayOfAnOddTable(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE audit (id INT PRIMARY KEY)",
			"CREATE TABLE odd (id BIGINT UNSIGNED PRIMARY KEY, u INT NOT NULL, up BIGINT UNSIGNED, s INT NOT NULL AUTO_INCREMENT UNIQUE, ts TIMESTAMP NULL, day DATE AS (DATE(ts)) STORED,"+
				" FOREIGN KEY (up) REFERENCES odd (id) ON DELETE SET NULL)",
			"CREATE TRIGGER noted AFTER INSERT ON audit FOR EACH ROW UPDATE odd SET u = 1 WHERE id = NEW.id",
			"CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DO DELETE FROM odd WHERE u = 9",
			"CREATE PROCEDURE clean() DELETE FROM `odd` WHERE u = 8",
			"CREATE PROCEDURE harmless() DELETE FROM oddity",
			"INSERT INTO odd (id, u) VALUES (1, 1)")
		o.finds(t, "block cascades the foreign key on (up) to the table itself",
			"warn auto_increment s is numbered by the table", "warn generated_columns day is stored as computed from the TIMESTAMP ts",
			"warn outside_job the trigger noted of audit names it", "warn outside_job the event nightly names it", "warn outside_job the routine clean names it")
		database.Exec(t, o.source, "INSERT INTO odd (id, u) VALUES (9223372036854775808, 1)")
		o.finds(t, "block unsupported table odd has the id 9223372036854775808")
		if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) {
			t.Errorf("a run ended with %v", err)
		}
	})
}

func TestATableOfAnotherDatabaseIsNotTakenForTheOneOfItsName(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		s.Open(t, "other")
		o := newOdd(t, s, "shop", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL)",
			"CREATE TABLE other.odd (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES shop.odd (id))")
		o.finds(t, "block outside_job the table other.odd, which is not in the job, refers to it by (up)")
		if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) {
			t.Errorf("a run ended with %v", err)
		}
	})
}

func TestATextThatLooksLikeADefinitionIsNotTakenForOne(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		const comment = "no AUTO_INCREMENT, (see)\n) AUTO_INCREMENT=77"
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE parents (id INT PRIMARY KEY)",
			"CREATE TABLE odd (`a``(b` INT COMMENT '"+comment+"', id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL, p INT,"+
				" CONSTRAINT `f``k (x` FOREIGN KEY (p) REFERENCES odd (id), CONSTRAINT `c``k` CHECK (u < 100)) COMMENT '"+comment+"'",
			"INSERT INTO odd (u) VALUES (1), (2)")
		o.run(t)
		if got := o.on(t, "SELECT CONCAT(EXTRA, COLUMN_COMMENT) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '%s' AND EXTRA <> ''"); len(got) > 0 {
			t.Errorf("the shards have %q", got)
		}
		if got := o.on(t, "SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '%s' AND COLUMN_COMMENT <> ''"); !slices.Equal(got, []string{comment, comment}) {
			t.Errorf("got %q", got)
		}
		if got := o.on(t, "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '%s' AND CONSTRAINT_TYPE = 'FOREIGN KEY'"); len(got) > 0 {
			t.Errorf("the shards have the foreign keys %q", got)
		}
	})
}

func TestRowsFromBeforeACheckAreCopied(t *testing.T) {
	o := newOdd(t, server.RunMariaDB(t), "odd", "odd", sharding.Low(1), "SET check_constraint_checks = OFF",
		"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, j JSON, CHECK (u < 5))", "INSERT INTO odd VALUES (1, 7, '{'), (2, 8, '{}')")
	o.run(t)
	if got := o.on(t, "SELECT CONCAT(u, j) FROM %s"); !slices.Equal(got, []string{"7{", "8{}"}) {
		t.Errorf("got %q", got)
	}
}

func TestACollationThatAShardDoesNotKnowIsFound(t *testing.T) {
	from, to := server.RunMySQL(t), server.RunMariaDB(t)
	o := newOdd(t, from, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, x VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)")
	o.reach(t, "b", to.Open(t, "odd_b"))
	o.finds(t, "block charset the server does not know the collation utf8mb4_0900_ai_ci of odd")
	database.Exec(t, o.shards["b"], "CREATE TABLE odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, x VARCHAR(9))")
	found, err := o.Inspect(t.Context())
	if err != nil || migrate.Blocked(found) {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestTheCommandLineCopiesRowsThatAreLongerThanAStatement(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		for _, statement := range []string{
			"ALTER TABLE orders ADD a LONGTEXT, ADD b LONGBLOB", "SET GLOBAL max_allowed_packet = 1048576",
			"INSERT INTO orders (user_id, a) VALUES (1, REPEAT('y', 900000)), (2, REPEAT('x', 900000))", "UPDATE orders SET b = REPEAT(x'ff27', 450000)",
		} {
			database.Exec(t, s.source, statement)
		}
		database.Exec(t, s.shards["b"], "SET GLOBAL max_allowed_packet = 1048576")
		o := newOperator(t, s)
		o.must(t, 0, "run", "--once")
		o.must(t, 0, "verify")
		for shard, table := range map[string]string{"a": "orders_02", "b": "orders_01"} {
			if got := database.Texts(t, s.shards[shard], "SELECT CONCAT(OCTET_LENGTH(a), ' ', OCTET_LENGTH(b)) FROM "+table); !slices.Equal(got, []string{"900000 900000"}) {
				t.Errorf("%s has %q", table, got)
			}
		}
	})
}

func TestAServerThatGivesTimestampsDefaultsIsFound(t *testing.T) {
	from, to := server.RunMariaDB(t), server.RunMariaDB(t, "--explicit-defaults-for-timestamp=0")
	o := newOdd(t, from, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, at TIMESTAMP NOT NULL, seen TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00')")
	if found, err := o.Inspect(t.Context()); err != nil || migrate.Blocked(found) {
		t.Errorf("%+v, %v", found, err)
	}
	o.reach(t, "b", to.Open(t, "odd_b"))
	o.finds(t, "block implicit_defaults explicit_defaults_for_timestamp is off, so that at of odd would")
}

func TestATableThatRefersToOneWhichStaysGoesThereAndBack(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "shop", "odd", sharding.Low(1), "CREATE TABLE users (id INT PRIMARY KEY)", "INSERT INTO users VALUES (1), (2)",
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, FOREIGN KEY (u) REFERENCES users (id))", "INSERT INTO odd VALUES (1, 1), (2, 2)")
		o.finds(t, "warn outside_job (u) refers to the table users, which is not in the job")
		o.run(t)
		if _, err := o.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, o.shards["b"], "INSERT INTO odd_1 VALUES (3, 1)")
		database.Exec(t, o.shards["a"], "DELETE FROM odd_0")
		if _, err := o.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if rows := database.Texts(t, o.source, "SELECT CONCAT(id, ' ', u) FROM odd ORDER BY id"); fmt.Sprint(rows) != "[1 1 3 1]" {
			t.Error(rows)
		}
		if _, err := o.source.ExecContext(t.Context(), "INSERT INTO odd VALUES (4, 9)"); err == nil {
			t.Error("the foreign key is gone")
		}
	})
}

// MySQL 9.7.4 works out once whether a variable is NULL in a trigger, for all connections that
// use the same open table.
func TestARetiredTableRefusesAllWritersButTheRunner(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		var writers []*sql.Conn
		for range 64 { // MySQL divides its connections into 16 groups that share open tables
			conn, err := s.source.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			writers = append(writers, conn)
		}
		rounds := 5
		if effort.Soak() {
			rounds = 20
		}
		for round := range rounds {
			for _, at := range shopOrders(t, "id").Map.Targets() {
				database.Exec(t, s.shards[at.DB], fmt.Sprintf("UPDATE %s SET total = %d", at.Table, round))
			}
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, conn := range writers {
				for _, late := range []string{"DELETE FROM orders_old WHERE id = 1", "UPDATE orders_old SET note = 'late' WHERE id = 2", "INSERT INTO orders_old (id, user_id, note) VALUES (5000, 1, 'late')"} {
					_, err := conn.ExecContext(t.Context(), late)
					if err == nil || !strings.Contains(err.Error(), "this table moved to shards") {
						t.Fatalf("round %d, connection %d: %s: %v", round, i, late, err)
					}
				}
			}
		}
	})
}
