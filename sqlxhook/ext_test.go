package sqlxhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sharding"
)

// renameOrder is what repositories have: functions that take any handle of sqlx's.
func renameOrder(ctx context.Context, e sqlx.ExtContext, id int64, note string) (was string, err error) {
	row := e.QueryRowxContext(ctx, e.Rebind("SELECT note FROM orders WHERE id = ?"), id)
	if err := row.Scan(&was); err != nil {
		return "", err
	}
	_, err = sqlx.NamedExecContext(ctx, e, "UPDATE orders SET note = :note WHERE id = :id", map[string]any{"id": id, "note": note})
	return was, err
}

func TestFunctionsForAnyHandleOfSqlxWorkOnAShard(t *testing.T) {
	h, own := newSharded(t)
	ctx := t.Context()
	if _, err := h.Insert(ctx, own["east"], "orders", []order{{5, 1, "a"}, {9, 1, "b"}}); !errors.Is(err, sharding.ErrRawTable) {
		t.Fatal(err)
	}
	s, err := h.For("orders", 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(ctx, s, "orders", []order{{5, 1, "a"}, {9, 1, "b"}}); err != nil {
		t.Fatal(err)
	}
	if was, err := renameOrder(ctx, s, 5, "new"); err != nil || was != "a" {
		t.Errorf("%q, %v", was, err)
	}
	tx, err := s.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := renameOrder(ctx, tx, 5, "newer"); err != nil || was != "new" {
		t.Errorf("in a transaction: %q, %v", was, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	var notes []string
	if err := sqlx.SelectContext(ctx, s, &notes, "SELECT note FROM orders ORDER BY id"); err != nil || len(notes) != 2 || notes[0] != "newer" {
		t.Errorf("%q, %v", notes, err)
	}
	rows, err := sqlx.NamedQueryContext(ctx, s, "SELECT id FROM orders WHERE note = :note", order{Note: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if found := rows.Next(); !found || rows.Scan(&id) != nil || id != 9 || rows.Close() != nil {
		t.Errorf("%t, %d", found, id)
	}
	plain, err := s.QueryContext(ctx, "SELECT id FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	if !plain.Next() || plain.Close() != nil || plain.Err() != nil {
		t.Error(plain.Err())
	}
}

func TestARowThatIsRefusedSaysWhy(t *testing.T) {
	h, _ := newSharded(t)
	s, err := h.For("orders", 5)
	if err != nil {
		t.Fatal(err)
	}
	row := s.QueryRowxContext(t.Context(), "SELECT id FROM orders_2")
	if err := row.Err(); !errors.Is(err, sharding.ErrCrossShard) {
		t.Error(err)
	}
	if err := row.Scan(new(int64)); !errors.Is(err, sharding.ErrCrossShard) {
		t.Error(err)
	}
	if _, err := sqlx.NamedExecContext(t.Context(), s, "INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)", order{5, 1, "a"}); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("an INSERT whose row nobody looks at: %v", err)
	}
}
