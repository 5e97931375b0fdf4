// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
)

func TestAnEnumWhoseMembersAreEqualIsFoundBeforeARun(t *testing.T) {
	s := server.RunMariaDB(t)
	for _, with := range []struct{ options, strict string }{{"", "ON"}, {"ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "ON"}, {"", "OFF"}} {
		database.Exec(t, s.Open(t, "odd"), "SET GLOBAL innodb_strict_mode = "+with.strict)
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "SET sql_mode = ''", "DROP TABLE IF EXISTS odd",
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, e ENUM('null', 'NULL') CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci) "+with.options)
		o.finds(t, "block row_format the server refuses to create the table of odd in strict sql_mode: Error 1291")
	}
}

// SHOW CREATE TABLE of MySQL writes a question mark for such a letter.
func TestLettersInExpressionsReachTheShardsOrAreFound(t *testing.T) {
	expressionsReachTheShardsOrAreFound(t, expressions{
		statements: []string{
			"SET NAMES latin1",
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, d TEXT DEFAULT ('\xe4'), g VARCHAR(9) CHARACTER SET utf8mb4 AS (CONCAT('\xe4', id)) VIRTUAL, CONSTRAINT c CHECK (id <> 7 OR '\xe4' = 'x'))",
		},
		lost:   " has a text in the character set latin1 with letters that SHOW CREATE TABLE does not give",
		mended: []string{"MODIFY d TEXT DEFAULT ('ä')", "MODIFY g VARCHAR(9) CHARACTER SET utf8mb4 AS (CONCAT('ä', id)) VIRTUAL", "DROP CHECK c"},
		reset:  "d = DEFAULT",
		shown:  "d, g",
		values: []string{"ä ä1", "ä ä2"},
	})
}

// SHOW CREATE TABLE of MySQL writes four question marks for such a letter.
func TestEmojiInExpressionsReachTheShardsOrAreFound(t *testing.T) {
	const bytes = "CONVERT(0xF09F9880 USING utf8mb4)"
	expressionsReachTheShardsOrAreFound(t, expressions{
		statements: []string{
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, d TEXT DEFAULT ('ü€😀'), g VARCHAR(9) AS (CONCAT('😀', id)) VIRTUAL, h TEXT DEFAULT ('ð'), CONSTRAINT c CHECK (id <> 7 OR '😀' = 'x')) CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
		},
		lost:   " has a text with letters of four bytes",
		mended: []string{"MODIFY d TEXT DEFAULT (CONCAT('ü€', " + bytes + "))", "MODIFY g VARCHAR(9) AS (CONCAT(" + bytes + ", id)) VIRTUAL", "DROP CHECK c"},
		reset:  "d = DEFAULT, h = DEFAULT",
		shown:  "d, g, h",
		values: []string{"ü€😀 😀1 ð", "ü€😀 😀2 ð"},
	})
}

// expressions are a table whose default d, generated column g and check c have a letter that SHOW CREATE TABLE of
// MySQL loses.
type expressions struct {
	statements   []string
	lost         string   // what inspect says
	mended       []string // changes that avoid the letter
	reset, shown string   // columns that the shards compute again, and those that are read
	values       []string // on the shards
}

func expressionsReachTheShardsOrAreFound(t *testing.T, of expressions) {
	t.Helper()
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), append(of.statements, "INSERT INTO odd (id, u) VALUES (1, 1), (2, 2)")...)
		if _, is := s.(*server.MySQL); is {
			o.finds(t, "block lost_value the expression of the column d"+of.lost, "block lost_value the expression of the column g"+of.lost, "block lost_value the expression of the check c"+of.lost)
			for _, step := range of.mended {
				database.Exec(t, o.source, "ALTER TABLE odd "+step)
			}
		}
		o.run(t)
		for _, at := range o.table.Map.Targets() {
			database.Exec(t, o.shards[at.DB], "UPDATE "+at.Table+" SET "+of.reset)
		}
		if got := o.on(t, "SELECT CONCAT_WS(' ', "+of.shown+") FROM %s"); !slices.Equal(got, of.values) {
			t.Errorf("got %q", got)
		}
	})
}

// SHOW CREATE TABLE of MariaDB writes three quotes for the default.
func TestADefinitionThatItsServerWouldNotTakeIsFoundBeforeARun(t *testing.T) {
	s := server.RunMariaDB(t)
	for _, strict := range []string{"ON", "OFF"} {
		database.Exec(t, s.Open(t, "odd"), "SET GLOBAL innodb_strict_mode = "+strict)
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "DROP TABLE IF EXISTS odd", "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, d TEXT DEFAULT (_utf8mb4 x'5c27'))")
		o.finds(t, "block row_format the server does not understand the definition of odd that the source shows: Error 1064")
	}
}

// SHOW CREATE TABLE writes one question mark for such a letter.
func TestEmojiInMembersAndDefaultsAreReported(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, e ENUM('😀', 'b'), l ENUM('?') CHARACTER SET latin1, d VARCHAR(9) DEFAULT '😀', n VARCHAR(9) DEFAULT 'ü') CHARSET=utf8mb4 COLLATE=utf8mb4_bin")
		columns := "e, d" // SHOW CREATE TABLE of MySQL gives the bytes of the default
		if _, is := s.(*server.MySQL); is {
			columns = "e"
		}
		o.finds(t, "warn lost_value the members or the default of "+columns+" have question marks")
	})
}
