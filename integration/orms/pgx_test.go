// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
)

// copyOrders copies rows with an id, a user and an amount.
func copyOrders(ctx context.Context, router *sharding.Router, rows [][]any) error {
	parts := map[sharding.Target][][]any{}
	for _, row := range rows {
		at, err := router.Target("orders", row[1])
		if err != nil {
			return err
		}
		parts[at] = append(parts[at], row)
	}
	for at, rows := range parts {
		if err := copyInto(ctx, router.DB(at.DB), at.Table, rows); err != nil {
			return err
		}
	}
	return nil
}

func copyInto(ctx context.Context, db *sql.DB, table string, rows [][]any) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(c any) error {
		of, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("%T is no connection of pgx", c)
		}
		_, err := of.Conn().CopyFrom(ctx, pgx.Identifier{table}, []string{"id", "user_id", "amount"}, pgx.CopyFromRows(rows))
		return err
	})
}

func TestPgxCopiesRowsIntoThePhysicalTables(t *testing.T) {
	s := newShop(t, onPostgres(server.SharePostgres(t)), carrying)
	var rows [][]any
	for id := range int64(40) {
		rows = append(rows, []any{id, id & 3, 10 * id})
	}
	for _, at := range s.router.Targets("orders") {
		if _, err := s.dbs[at.DB].ExecContext(t.Context(), "ALTER TABLE "+at.Table+" ALTER created_at DROP NOT NULL"); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyOrders(t.Context(), s.router, rows); err != nil {
		t.Fatal(err)
	}
	s.liesRight(t, len(rows))
	var n, sum int
	if err := s.routed.QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(amount) FROM orders WHERE user_id = 2").Scan(&n, &sum); err != nil || n != 10 || sum != 2000 {
		t.Errorf("%d orders of a user with the sum %d, %v", n, sum, err)
	}
	if err := copyInto(t.Context(), s.routed, "orders", rows); err == nil {
		t.Error("the routed database has a connection of pgx")
	}
}
