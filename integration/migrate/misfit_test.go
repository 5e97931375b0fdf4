// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// MySQL, MariaDB and PostgreSQL round decimals and times to the digits of the column, without an error.
func TestATableOfAShardThatWouldRoundValuesIsFoundBeforeARun(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1),
			"CREATE TABLE odd (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL, price DECIMAL(10,2), made DATETIME(3))", "INSERT INTO odd VALUES (1, 1, 1.26, '2024-01-01 00:00:00.400')")
		o.wouldRound(t, "odd_0 (id BIGINT PRIMARY KEY, u INT NOT NULL, price DECIMAL(10,1), made DATETIME(3))", "odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, price DECIMAL(10,2), made DATETIME)",
			"block misfit its column price is decimal(10,1), and in odd decimal(10,2)", "block misfit its column made is datetime, and in odd datetime(3)")
		o.wouldRound(t, "odd_0 (id BIGINT PRIMARY KEY, u INT AS (id % 2) STORED, price DECIMAL(10,2), made DATETIME(3))", "odd_1 (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL, price DECIMAL(10,2), made DATETIME(3))",
			"block misfit its column u is generated", "block misfit its column id is int")
		o.fits(t, "odd_0 (id BIGINT PRIMARY KEY, u BIGINT NOT NULL, made DATETIME(6), price DECIMAL(12,2))", "odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, price DECIMAL(10,2), made DATETIME(3))")
	})
}

func TestATableOfAShardOfPostgresThatWouldRoundValuesIsFoundBeforeARun(t *testing.T) {
	o := newOdd(t, server.RunPostgres(t), "odd", "odd", sharding.Low(1),
		"CREATE TABLE odd (id serial PRIMARY KEY, u int NOT NULL, price numeric, made timestamp, text varchar(9), prices numeric(10,2)[])", "INSERT INTO odd VALUES (1, 1, 1.26, '2024-01-01 00:00:00.400', 'x', '{1.26}')")
	o.wouldRound(t, "odd_0 (id bigint PRIMARY KEY, u int NOT NULL, price numeric(10,1), made timestamp, text text, prices numeric[])", "odd_1 (id bigint PRIMARY KEY, u int NOT NULL, price numeric, made timestamp(0), text text, prices numeric[])",
		"block misfit its column price is numeric(10,1), and in odd numeric", "block misfit its column made is timestamp(0) without time zone, and in odd timestamp without time zone")
	o.wouldRound(t, "odd_0 (id bigint PRIMARY KEY, u int NOT NULL, price numeric, made timestamp, text text, prices numeric(10,1)[])", "odd_1 (id bigint PRIMARY KEY, u int NOT NULL, price numeric, made timestamp, text varchar(8), prices numeric[])",
		"block misfit its column prices is numeric(10,1)[], and in odd numeric(10,2)[]", "block misfit its column text is character varying(8), and in odd character varying(9)")
	o.fits(t, "odd_0 (id bigint PRIMARY KEY, u int NOT NULL, made timestamp, price numeric, text varchar(20), prices numeric(10,2)[])", "odd_1 (id bigint PRIMARY KEY, u int NOT NULL, price numeric, made timestamp, text text, prices numeric[])")
}

// A copy finds the members of an ENUM by their text, and cuts spaces off the ends of a text that is too long.
func TestATableOfAShardWithOtherMembersOrShorterTextsIsFoundBeforeARun(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1),
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, e ENUM('a (b)', 'c,d)', '/*', 'it''s'), s SET('x (y)', 'z)', '(w'), t VARCHAR(9), d DOUBLE)", "INSERT INTO odd VALUES (1, 1, 'c,d)', 'x (y),(w', 'abc  ', 1.26)")
		o.wouldRound(t, "odd_0 (id BIGINT PRIMARY KEY, u INT NOT NULL, e ENUM('A (B)', 'c,d)', '/*', 'it''s'), s SET('x (y)', 'z)', '(w'), t VARCHAR(3), d DOUBLE)",
			"odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, e ENUM('a (b)', 'c,d)', '/*', 'it''s'), s SET('z)', 'x (y)', '(w'), t VARCHAR(9), d DOUBLE(10,1))",
			"block misfit its column e is enum('A (B)'", "block misfit its column s is set('z)'")
		o.wouldRound(t, "odd_0 (id BIGINT PRIMARY KEY, u INT NOT NULL, e VARCHAR(9), s VARCHAR(99), t VARCHAR(3), d DOUBLE)", "odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, e VARCHAR(9), s VARCHAR(99), t VARCHAR(9), d DOUBLE(10,1))",
			"block misfit its column t is varchar(3)", "block misfit its column d is double(10,1)")
		o.fits(t, "odd_0 (id BIGINT PRIMARY KEY, u INT NOT NULL, e ENUM('it''s', 'more (', '/*', 'c,d)', 'a (b)'), s SET('x (y)', '()', 'z)', '(w'), t TEXT, d DOUBLE)", "odd_1 (id BIGINT PRIMARY KEY, u INT NOT NULL, e VARCHAR(9), s VARCHAR(99), t VARCHAR(20), d DOUBLE)")
	})
}

// wouldRound creates the tables of the shards, which must have the findings, and drops them.
func (o *odd) wouldRound(t *testing.T, a, b string, wanted ...string) {
	t.Helper()
	o.create(t, a, b)
	o.finds(t, wanted...)
	var blocked *migrate.BlockedError
	if err := o.Run(t.Context()); !errors.As(err, &blocked) {
		t.Errorf("a run: %v", err)
	}
	o.drop(t)
}

// fits creates the tables of the shards, to which all rows must be copied.
func (o *odd) fits(t *testing.T, a, b string) {
	t.Helper()
	o.create(t, a, b)
	o.run(t)
	if v, err := o.Verify(t.Context()); err != nil || v.Requeued > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

func (o *odd) create(t *testing.T, a, b string) {
	t.Helper()
	database.Exec(t, o.shards["a"], "CREATE TABLE "+a)
	database.Exec(t, o.shards["b"], "CREATE TABLE "+b)
}
