// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// spreadTwins are a table over two databases, on four shards by one of its columns, and the same table in one.
func spreadTwins(t *testing.T, open namedDatabase, table, key, columns string) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, table+"_a"), "b": open(t, table+"_b")}, open(t, table+"_whole")
	m, err := sharding.Spread([]string{"a", "b"}, 4, table+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" ("+columns+")")
	}
	database.Exec(t, whole, "CREATE TABLE "+table+" ("+columns+")")
	router, err := sharding.New(dbs, sharding.Table{Name: table, Key: key, Rule: sharding.Mod(4), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole
}

// tagTwins are a table of many types.
func tagTwins(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	return spreadTwins(t, open, "tags", "tenant_id", `id BIGINT NOT NULL PRIMARY KEY, tenant_id BIGINT NOT NULL, name TEXT, code VARCHAR(3), at TIMESTAMPTZ, body JSONB, raw BYTEA,
		price NUMERIC(10,2), ref UUID, small SMALLINT, ok BOOLEAN NOT NULL DEFAULT true, UNIQUE (tenant_id, name)`)
}

// arrayInserts are statements whose arguments are arrays, and whose rows are on several shards.
func arrayInserts(array func(any) any) []struct {
	text string
	args []any
} {
	name, now := "b", time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	type statement = struct {
		text string
		args []any
	}
	ids, tenants := array([]int64{1, 2, 3, 4, 5}), array([]int64{7, 8, 9, 7, 10})
	return []statement{
		{"INSERT INTO tags (id, tenant_id, name) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[])",
			[]any{ids, tenants, array([]string{`a`, `b,"c\`, ``, `NULL`, `{?} $1 é`})}},
		{"INSERT INTO tags (id, tenant_id, name) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) RETURNING id, tenant_id, name",
			[]any{ids, tenants, array([]*string{nil, &name, nil, &name, nil})}},
		{"INSERT INTO tags (tenant_id, id, name, code, price) SELECT t.tenant, i, upper(n) || $4, n::varchar(3), t.i * 1.005 FROM UNNEST($1::bigint[], $2::bigint[], $3::text[]) AS t (i, tenant, n) RETURNING *",
			[]any{ids, tenants, array([]string{"abcdef", "b", "c", "d", "e"}), "!"}},
		{"INSERT INTO tags (id, tenant_id, at, ok) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::timestamptz[]), $4",
			[]any{ids, tenants, array([]time.Time{now, now.Add(time.Microsecond), now.AddDate(0, 0, 1), now, now}), false}},
		{"INSERT INTO tags (id, tenant_id, code) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::varchar(3)[])",
			[]any{ids, tenants, array([]string{"abcdef", "abc", "é€xyz", "", "x"})}},
		{"INSERT INTO tags (id, tenant_id, body, ref, small, price) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::jsonb[]), unnest(CAST($4 AS uuid[])), unnest($5::smallint[]), unnest($6::numeric(6, 1)[])",
			[]any{ids, tenants, array([]string{`{"a": [1, 2]}`, `"x"`, `null`, `3`, `[]`}), array([]string{
				"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b811-9dad-11d1-80b4-00c04fd430c8", "6ba7b812-9dad-11d1-80b4-00c04fd430c8", "6ba7b814-9dad-11d1-80b4-00c04fd430c8", "6BA7B815-9DAD-11D1-80B4-00C04FD430C8",
			}), array([]int64{1, -2, 3, 4, 5}), array([]float64{1.25, 1.35, -7, 0, 12345.6})}},
		{"INSERT INTO tags (id, tenant_id, raw) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::bytea[])",
			[]any{ids, tenants, array([][]byte{{0, 255}, []byte(`a"\`), {}, nil, []byte("x")})}},
		{`INSERT INTO tags (id, tenant_id, raw) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::pg_catalog."bytea"[])`,
			[]any{ids, tenants, array([][]byte{{0, 255}, []byte(`a"\`), {}, nil, []byte("x")})}},
		{"INSERT INTO tags (id, tenant_id, name) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[]) ON CONFLICT (tenant_id, name) DO UPDATE SET small = COALESCE(tags.small, 0) + 1, code = $4 RETURNING id, small, code",
			[]any{ids, tenants, array([]string{"a", "b", "c", "d", "a"}), "xyz"}},
		{"INSERT INTO tags (id, tenant_id, name) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[]) ON CONFLICT (tenant_id, name) DO NOTHING",
			[]any{array([]int64{11, 12, 13}), array([]int64{7, 8, 7}), array([]string{"a", "b"})}},
		{"INSERT INTO tags (id, tenant_id) SELECT unnest($1::bigint[]), $2 ON CONFLICT (id) DO NOTHING", []any{ids, int64(7)}},
		{"INSERT INTO tags (id, tenant_id) SELECT unnest($1::bigint[]), unnest($2::bigint[]) RETURNING *", []any{array([]int64{}), array([]int64(nil))}},
		{"INSERT INTO tags (id, tenant_id) SELECT id + $2, id FROM unnest($1::bigint[]) AS id", []any{ids, int64(100)}},
	}
}

// answered executes an INSERT, and returns the rows or the count that it returns.
func answered(ctx context.Context, on interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}, text string, args []any) (all []string, err error) {
	if !strings.Contains(text, "RETURNING") {
		r, err := on.ExecContext(ctx, text, args...)
		if err != nil {
			return nil, err
		}
		n, err := r.RowsAffected()
		return []string{strconv.FormatInt(n, 10)}, err
	}
	return rowsReturned(ctx, on, text, args)
}

// rowsReturned returns the rows that a statement returns, in the order of their texts, and the names of their columns.
func rowsReturned(ctx context.Context, on interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}, text string, args []any) (all []string, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(values))
	}
	slices.Sort(all)
	return append(all, strings.Join(names, " ")), rows.Err()
}

// Programs on PostgreSQL, such as those of sqlc, insert many rows by arrays.
func TestTheElementsOfArraysAreInsertedOnTheirShards(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := tagTwins(t, open.of("arrays_"+name))
			array := func(v any) any { return v }
			if name == "pq" {
				array = func(v any) any { return pq.Array(v) }
			}
			for _, s := range arrayInserts(array) {
				if _, isPointers := s.args[len(s.args)-1].([]*string); name == "pq" && isPointers {
					continue
				}
				for _, prepared := range []bool{false, true} {
					var answers, rows []string
					for _, db := range []*sql.DB{whole, routed} {
						answer := insertedByArrays(t, db, s.text, s.args, prepared)
						answers = append(answers, answer)
						rows = append(rows, strings.Join(rowTexts(t, db, "SELECT * FROM tags"), "\n"))
						if !strings.Contains(s.text, "ON CONFLICT (tenant_id, name) DO UPDATE") {
							database.Exec(t, db, "DELETE FROM tags WHERE tenant_id IN (7, 8, 9, 10, 1, 2, 3, 4, 5)")
						}
					}
					if answers[0] != answers[1] || rows[0] != rows[1] {
						t.Errorf("%s\nprepared: %v\none table: %s\n%s\nshards:    %s\n%s", s.text, prepared, answers[0], rows[0], answers[1], rows[1])
					}
				}
			}
		})
	}
}

// insertedByArrays executes a statement in a transaction, and returns its answer.
func insertedByArrays(t *testing.T, db *sql.DB, text string, args []any, prepared bool) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var answer []string
	if prepared {
		st, err := tx.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		answer, err = answered(t.Context(), preparedStatement{st}, text, args)
		if err != nil {
			return "ERROR " + err.Error()
		}
	} else if answer, err = answered(t.Context(), tx, text, args); err != nil {
		return "ERROR " + err.Error()
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(answer, "\n")
}

// preparedStatement executes itself for any text.
type preparedStatement struct{ of *sql.Stmt }

func (s preparedStatement) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return s.of.QueryContext(ctx, args...)
}

func (s preparedStatement) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return s.of.ExecContext(ctx, args...)
}

func TestArraysOfManyRowsAreInserted(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := tagTwins(t, open.of("many_"+name))
			const rows = 20_000
			ids, names := make([]int64, rows), make([]string, rows)
			for i := range rows {
				ids[i], names[i] = int64(i), fmt.Sprint("n", i)
			}
			array := func(v any) any { return v }
			if name == "pq" {
				array = func(v any) any { return pq.Array(v) }
			}
			started := time.Now()
			r, err := routed.ExecContext(t.Context(), "INSERT INTO tags (id, tenant_id, name) SELECT unnest($1::bigint[]), unnest($2::bigint[]), unnest($3::text[])", array(ids), array(ids), array(names))
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := r.RowsAffected(); n != rows {
				t.Errorf("%d rows", n)
			}
			t.Logf("%d rows in %v", rows, time.Since(started))
			ids, tenants := make([]int64, 32_768), make([]int64, 32_768) // 65,536 values for one shard
			for i := range ids {
				ids[i] = int64(rows + i)
			}
			_, err = routed.ExecContext(t.Context(), "INSERT INTO tags (id, tenant_id) SELECT unnest($1::bigint[]), unnest($2::bigint[])", array(ids), array(tenants))
			if err == nil || !strings.Contains(err.Error(), "65535") {
				t.Errorf("more values than PostgreSQL allows: %v", err)
			}
			var n int
			if err := routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tags").Scan(&n); err != nil || n != rows {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}
