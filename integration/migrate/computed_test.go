// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// computed are the findings about expressions that use ids.
func (o *odd) computed(t *testing.T) (all []string) {
	t.Helper()
	found, err := o.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Code == migrate.ComputedID && f.Database != "b" { // which has the same as a
			all = append(all, fmt.Sprintf("%s %s: %s", f.Severity, f.Database, f.Message))
		}
	}
	return all
}

// computedCase is a table with an expression that uses its id, and the beginnings of the findings.
type computedCase struct {
	table, row string
	want       []string
}

func checkComputed(t *testing.T, s database.DSNOpener, cases []computedCase) {
	t.Helper()
	for _, c := range cases {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), append([]string{"DROP TABLE IF EXISTS odd"}, strings.Split(strings.Replace(c.table, "odd (", "CREATE TABLE odd (u INT NOT NULL, ", 1), "; ")...)...)
		if c.row != "" {
			database.Exec(t, o.source, "INSERT INTO odd (u, id) VALUES "+c.row)
		}
		got := o.computed(t)
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s %s: got %q, want %q", c.table, c.row, got, c.want)
		}
		blocked := slices.ContainsFunc(c.want, func(f string) bool { return strings.HasPrefix(f, "block") })
		if len(c.want) > 0 && !blocked {
			continue // a warning stops nothing
		}
		err := o.Run(t.Context())
		if blocked != (err != nil) {
			t.Errorf("%s %s: a run ends with %v", c.table, c.row, err)
		}
		if err != nil {
			continue
		}
		if err := o.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.drop(t)
	}
}

func TestExpressionsOverIDsThatAreBigintOnTheShardsAreTried(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		cases := []computedCase{
			{"odd (id BIGINT PRIMARY KEY, g BIGINT AS (id DIV 2) STORED, h VARCHAR(40) AS (CONCAT('it''s \\\\ ', id)), CHECK (id <> 13 OR u > 0), KEY (g))", "(1, 1), (1, 13)", nil},
			{"odd (id BIGINT PRIMARY KEY, g BIGINT AS (id * 2) STORED)", "(1, 1)", []string{"warn a: the generated column g uses id, and does not allow ids above 4611686018427387903 on the shards: Error 1690"}},
			{"odd (id BIGINT PRIMARY KEY, g BIGINT AS (id + 1))", "", []string{"warn a: the generated column g uses id, and does not allow ids above 9223372036854775806 on the shards: Error 1690"}},
			{"odd (id INT PRIMARY KEY, g INT AS (id DIV 2) STORED)", "(1, 7)", []string{"warn a: the generated column g uses id, and does not allow ids above 4294967295 on the shards: its result is not allowed"}},
			{"odd (id INT PRIMARY KEY, g VARCHAR(5) AS (CONCAT('x', id)))", "(1, 7)", []string{"warn a: the generated column g uses id, and does not allow ids above 9999 on the shards: its result is not allowed"}},
			{"odd (id INT PRIMARY KEY, g DECIMAL(6,2) AS (id))", "(1, 7)", []string{"warn a: the generated column g uses id, and does not allow ids above 9999 on the shards"}},
			{"odd (id INT PRIMARY KEY, CONSTRAINT c CHECK (id < 1000000))", "(1, 7)", []string{"warn a: the check c uses id, and does not allow ids above 999999 on the shards: its result is not allowed"}},
			{"odd (id BIGINT UNSIGNED PRIMARY KEY, g BIGINT UNSIGNED AS (id * 2) STORED)", "(1, 4611686018427387904)", []string{"block a: the generated column g uses id, which is BIGINT on the shards, and would fail or have another value there, as in the row with id = 4611686018427387904: Error 1690"}},
			{"odd (id BIGINT UNSIGNED PRIMARY KEY, g BIGINT UNSIGNED AS (id + 1))", "(1, 9223372036854775807)", []string{"block a: the generated column g uses id"}},
			{"odd (id INT(5) ZEROFILL PRIMARY KEY, g VARCHAR(40) AS (CONCAT('x', id)))", "(1, 7)", []string{"block a: the generated column g uses id, which is BIGINT on the shards, and would fail or have another value there, as in the row with id = 7: the result is 'x7' there, not 'x00007'"}},
			{"odd (id BIGINT UNSIGNED PRIMARY KEY) PARTITION BY HASH (id * 2) PARTITIONS 2", "(1, 5)", []string{"warn a: the division into partitions uses id, and does not allow ids above 4611686018427387903"}},
		}
		if _, is := s.(*server.MySQL); is {
			cases = append(cases,
				computedCase{"odd (id BIGINT UNSIGNED PRIMARY KEY, KEY f ((id + 1)))", "(1, 9223372036854775807)", []string{"block a: the index f uses id"}},
				computedCase{"odd (id BIGINT PRIMARY KEY, UNIQUE KEY f ((id * 2), u))", "(1, 5)", []string{"warn a: the index f uses id, and does not allow ids above 4611686018427387903 on the shards: Error 1690"}},
				computedCase{"odd (id INT PRIMARY KEY, CONSTRAINT c CHECK (id < 10) NOT ENFORCED)", "(1, 5)", nil})
		}
		checkComputed(t, s, cases)
	})
}

func TestExpressionsOverIDsOfPostgresAreTried(t *testing.T) {
	checkComputed(t, server.SharePostgres(t), []computedCase{
		{`odd (id bigint PRIMARY KEY, g bigint GENERATED ALWAYS AS (id / 2) STORED, CHECK (id <> 13 OR u > 0)); CREATE INDEX f ON odd (md5(id::text)) WHERE id > 7`, "(1, 1), (1, 13)", nil},
		{"odd (id integer PRIMARY KEY); CREATE INDEX f ON odd (u, (id + 1))", "(1, 7)", []string{
			"warn a: the index f uses id, and does not allow ids above 9223372036854775806 on the shards: ERROR: bigint out of range",
			"warn source: the index f uses id, and on the source does not allow ids above 2147483646, which the shards do: a rollback could not bring such rows back: ERROR: integer out of range"}},
		{"odd (id smallint PRIMARY KEY); CREATE INDEX f ON odd (u) WHERE id * 2::smallint > 0", "", []string{"warn a: the condition of the index f uses id", "warn source: the condition of the index f uses id, and on the source does not allow ids above 16383"}},
		{"odd (id integer PRIMARY KEY, g integer GENERATED ALWAYS AS (id / 2) STORED)", "(1, 7)", []string{"warn a: the generated column g uses id, and does not allow ids above 4294967295 on the shards: ERROR: integer out of range"}},
		{"odd (id integer PRIMARY KEY, g varchar(5) GENERATED ALWAYS AS ('x' || id) STORED)", "(1, 7)", []string{"warn a: the generated column g uses id, and does not allow ids above 9999 on the shards: its result is not allowed"}},
		{"odd (id integer PRIMARY KEY, CONSTRAINT c CHECK (id < 1000000))", "(1, 7)", []string{"warn a: the check c uses id, and does not allow ids above 999999 on the shards: its result is not allowed"}},
		{"odd (id integer PRIMARY KEY, g bigint GENERATED ALWAYS AS (id << 20) STORED)", "(1, 4097)", []string{"block a: the generated column g uses id, which is BIGINT on the shards, and would fail or have another value there, as in the row with id = 4097: the result is '4296015872' there, not '1048576'"}},
	})
}

// Generated ids begin above those of the table, and may be too large for its column.
func TestAnIDThatIsTooLargeForTheSourceIsBroughtBackWhenTheColumnWasWidened(t *testing.T) {
	onServers(t, func(t *testing.T, s database.DSNOpener) {
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id SMALLINT PRIMARY KEY, u INT NOT NULL)", "INSERT INTO odd VALUES (1, 1), (2, 2)")
		found, err := o.Inspect(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Code == migrate.NarrowKey && strings.Contains(f.Message, "too large for the source")
		}) {
			t.Errorf("%v, %v", found, err)
		}
		o.run(t)
		if _, err := o.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, o.shards["b"], "INSERT INTO odd_1 VALUES (32768, 1)")
		if _, err := o.Rollback(t.Context(), longPause); !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), "widen") {
			t.Errorf("a rollback with an id that is too large: %v", err)
		}
		widen := "ALTER TABLE odd_old MODIFY id INT NOT NULL"
		if isPostgres(s) {
			widen = "ALTER TABLE odd_old ALTER id TYPE integer"
		}
		database.Exec(t, o.source, widen)
		if _, err := o.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := o.source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM odd WHERE id IN (1, 2, 32768)").Scan(&n); err != nil || n != 3 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// A session without a strict sql_mode stored a value that strict ones refuse, or the row came after the inspection.
func TestARowThatAShardRefusesEndsARunWithAdvice(t *testing.T) {
	onServers(t, func(t *testing.T, s database.DSNOpener) {
		generated := "CREATE TABLE odd (id BIGINT PRIMARY KEY, u INT NOT NULL, n INT, g TINYINT AS (n) STORED)"
		writes := []string{"SET sql_mode = ''", "INSERT INTO odd (id, u, n) VALUES (3, 1, 300)"}
		if isPostgres(s) {
			generated = "CREATE TABLE odd (id integer PRIMARY KEY, u int NOT NULL, n int, g bigint GENERATED ALWAYS AS ((id << 20) * 2147483648) STORED)"
			writes = []string{"INSERT INTO odd (id, u, n) VALUES (1000000, 1, 300)"}
		}
		o := newOdd(t, s, "odd", "odd", sharding.Low(1), generated, "INSERT INTO odd (id, u) VALUES (1, 1), (2, 2)")
		o.run(t)
		conn, err := o.source.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for _, write := range writes {
			if _, err := conn.ExecContext(t.Context(), write); err != nil {
				t.Fatal(err)
			}
		}
		var row *migrate.RowError
		if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) || !errors.As(err, &row) || !strings.Contains(err.Error(), "change the row, or what computes or checks it") {
			t.Errorf("a run ended with %v", err)
		}
		database.Exec(t, o.source, "DELETE FROM odd WHERE id > 2")
		o.run(t)
	})
}
