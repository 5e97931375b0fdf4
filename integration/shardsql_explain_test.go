// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// explanations are the forms of EXPLAIN of each kind of server.
var explanations = map[string][]string{
	"MariaDB":    {"EXPLAIN", "DESCRIBE", "desc extended", "EXPLAIN FORMAT=JSON", "ANALYZE", "ANALYZE FORMAT=JSON"},
	"MySQL":      {"EXPLAIN", "DESC", "EXPLAIN FORMAT = TREE", "EXPLAIN ANALYZE", "/* a comment */ EXPLAIN FORMAT=JSON"},
	"PostgreSQL": {"EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE", "EXPLAIN (ANALYZE, COSTS off, FORMAT JSON)", "EXPLAIN (FORMAT YAML)"},
}

func TestADatabaseExplainsAQueryOfOneOfItsShards(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) { explains(t, open, explanations[name]) })
	}
	for driver, open := range postgresDrivers(t) {
		t.Run("PostgreSQL, "+driver, func(t *testing.T) { explains(t, open, explanations["PostgreSQL"]) })
	}
}

func explains(t *testing.T, open namedDatabase, forms []string) {
	t.Helper()
	dbs := sharding.DBs{"a": open(t, "explained_a"), "b": open(t, "explained_b")}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "people_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = routed.Close() }()
	for _, form := range forms {
		for key := range 4 {
			at := m.Targets()[key]
			const query = "%s SELECT id FROM %s WHERE user_id = %d AND id > 5 ORDER BY id"
			got, want := explainedColumns(t, routed, fmt.Sprintf(query, form, "people", key)), explainedColumns(t, dbs[at.DB], fmt.Sprintf(query, form, at.Table+" AS people", key))
			if !slices.Equal(got, want) {
				t.Errorf("%s has the columns %v, and that of the shard %v", form, got, want)
			}
		}
		if _, err := routed.ExecContext(sharding.On(t.Context(), m.Targets()[1]), form+" SELECT id FROM people"); err != nil {
			t.Errorf("%s of a chosen shard: %v", form, err)
		}
		if _, err := routed.QueryContext(t.Context(), form+" SELECT id FROM people"); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are none
			t.Errorf("%s of all shards: %v", form, err)
		}
	}
	if _, err := routed.ExecContext(t.Context(), forms[0]+" DELETE FROM people WHERE user_id = 1"); !errors.Is(err, sharding.ErrRawTable) {
		t.Errorf("EXPLAIN of a write: %v", err)
	}
}

func TestAPlannerDecidesByATableOfTheSourceAsTheShardsWould(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) { plansAsShards(t, open) })
	}
	for driver, open := range postgresDrivers(t) {
		t.Run("PostgreSQL, "+driver, func(t *testing.T) { plansAsShards(t, open) })
	}
}

func plansAsShards(t *testing.T, open namedDatabase) {
	t.Helper()
	const columns = " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, status VARCHAR(20) NOT NULL, total DECIMAL(10, 2) NOT NULL, number VARCHAR(20) UNIQUE)"
	dbs, source := sharding.DBs{"a": open(t, "planned_a"), "b": open(t, "planned_b")}, open(t, "planned_source")
	m, err := sharding.Spread([]string{"a", "b"}, 4, "sales_%d")
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, source, "DROP TABLE IF EXISTS sales")
	database.Exec(t, source, "CREATE TABLE sales"+columns)
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "sales", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = routed.Close() }()
	for where, db := range map[string]*sql.DB{"the source": source, "a shard": dbs["b"]} {
		p, err := shardsql.NewPlanner(t.Context(), router, db)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"SELECT user_id, SUM(total) FROM sales GROUP BY user_id", "SELECT status, SUM(total) FROM sales GROUP BY status", "SELECT COUNT(DISTINCT status) FROM sales",
			"SELECT id FROM sales ORDER BY status, id LIMIT 5", "SELECT MAX(number) FROM sales", "UPDATE sales SET status = 'x' WHERE status = 'y'", "UPDATE sales SET status = 'x' WHERE id = 5",
			"DELETE FROM sales WHERE number = 'n'", "SELECT id FROM sales ORDER BY colour",
		} {
			planned, err := p.Plan(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			explained, err := shardsql.Explain(t.Context(), routed, text)
			if err != nil {
				t.Fatal(err)
			}
			if planned.Kind != explained.Kind || planned.Merge != explained.Merge || len(planned.Shards) != len(explained.Shards) {
				t.Errorf("%s: by the columns of %s it is %s (%v), and on the shards %s (%v)", text, where, planned.Kind, planned.Err, explained.Kind, explained.Err)
			}
		}
		if absent := p.Absent(); len(absent) > 0 {
			t.Errorf("by the columns of %s there is no %v", where, absent)
		}
	}
}

// explainedColumns returns the columns of a result that has rows.
func explainedColumns(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return nil
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	n := 0
	for rows.Next() {
		n++
	}
	if err = errors.Join(err, rows.Err()); err != nil || n == 0 {
		t.Errorf("%s: %d rows, %v", query, n, err)
	}
	return columns
}
