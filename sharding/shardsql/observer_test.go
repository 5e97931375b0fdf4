// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// told collects the statements that an observer is told.
type told struct {
	mu  sync.Mutex
	all []shardsql.Statement
}

func (o *told) observer() shardsql.Observer {
	return shardsql.Observer{Statement: func(_ context.Context, s shardsql.Statement) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all = append(o.all, s)
	}}
}

// only returns the single statement that the observer was told since the last call.
func (o *told) only(t *testing.T) shardsql.Statement {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	if o.all = nil; len(all) != 1 {
		t.Fatalf("the observer was told %d times: %+v", len(all), all)
	}
	return all[0]
}

// observedShop is filled, and its observer.
func observedShop(t *testing.T) (*shop, *told) {
	t.Helper()
	s, o := filled(t), &told{}
	s.routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home, Observer: o.observer()})
	t.Cleanup(func() { _ = s.routed.Close() })
	return s, o
}

func targets(names ...string) (all []sharding.Target) {
	for _, name := range names {
		all = append(all, sharding.Target{DB: name[:1], Table: name[2:]})
	}
	return all
}

func TestAnObserverIsCalledOnceForEachStatement(t *testing.T) {
	s, o := observedShop(t)
	for _, c := range []struct {
		text, fingerprint string
		kind              shardsql.Kind
		table             string
		targets           []sharding.Target
		rows              int64
		err               error
	}{
		{"SELECT id FROM orders WHERE user_id = 5", "SELECT id FROM orders WHERE user_id = ?", shardsql.One, "orders", targets("b/orders_1"), 3, nil},
		{"SELECT id FROM orders ORDER BY id LIMIT 4", "SELECT id FROM orders ORDER BY id LIMIT ?", shardsql.Scatter, "orders", targets("a/orders_0", "b/orders_1", "a/orders_2", "b/orders_3"), 4, nil},
		{"SELECT code FROM coupons", "SELECT code FROM coupons", shardsql.Home, "", nil, 3, nil},
		{"SELECT code FROM countries", "SELECT code FROM countries", shardsql.Home, "countries", nil, 3, nil},
		{"UPDATE orders SET note = 'w' WHERE user_id IN (5, 3) RETURNING id", "", shardsql.Several, "orders", targets("b/orders_1", "b/orders_3"), 5, nil},
		{"DELETE FROM items", "DELETE FROM items", shardsql.Refused, "items", nil, 0, sharding.ErrMissingKey},
		{"UPDATE orders SET user_id = 6 WHERE id = 1 AND user_id = 5", "", shardsql.Refused, "orders", nil, 0, sharding.ErrKeyChange},
	} {
		for name, db := range map[string]func() error{
			"read": func() error {
				rows, err := s.routed.Query(c.text)
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				for rows.Next() {
				}
				return rows.Err()
			},
			"read, prepared": func() error {
				rows, err := prepare(t, s.routed, c.text).Query() //nolint:sqlclosecheck // the statement, by prepare
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				for rows.Next() {
				}
				return rows.Err()
			},
		} {
			if err := db(); !errors.Is(err, c.err) {
				t.Fatalf("%s, %s: %v", c.text, name, err)
			}
			got := o.only(t)
			if got.Text != c.text || c.fingerprint != "" && got.Fingerprint != c.fingerprint || got.Kind != c.kind || got.Table != c.table ||
				!reflect.DeepEqual(got.Targets, c.targets) || got.Rows != c.rows || !errors.Is(got.Err, c.err) || got.Took <= 0 {
				t.Errorf("%s, %s: %+v", c.text, name, got)
			}
		}
	}
}

func TestAnObserverIsToldHowManyRowsAWriteAffects(t *testing.T) {
	s, o := observedShop(t)
	for text, want := range map[string]struct {
		kind shardsql.Kind
		rows int64
	}{
		"UPDATE orders SET note = 'w' WHERE user_id = 5":         {shardsql.One, 3},
		"UPDATE orders SET note = 'w' WHERE user_id IN (5, 3)":   {shardsql.Several, 5},
		"UPDATE coupons SET used = 1 WHERE code <> 'x'":          {shardsql.Home, 2},
		"INSERT INTO countries (code) VALUES ('CH')":             {shardsql.Copies, 1},
		"SELECT id FROM orders":                                  {shardsql.Scatter, 0}, // whose rows nobody wants
		"UPDATE orders SET note = 'w' WHERE user_id = 5 AND 0=1": {shardsql.One, 0},
	} {
		exec(t, s.routed, text)
		if got := o.only(t); got.Kind != want.kind || got.Rows != want.rows || got.Err != nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if _, err := s.routed.Exec("UPDATE coupons SET nothing = 1"); err == nil {
		t.Error("a column that is not there")
	} else if got := o.only(t); got.Kind != shardsql.Home || got.Err == nil {
		t.Errorf("%+v", got)
	}
	tx, err := s.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "SAVEPOINT here")
	if got := o.only(t); got.Kind != shardsql.Home || got.Text != "SAVEPOINT here" {
		t.Errorf("%+v", got)
	}
	if err := tx.Rollback(); err != nil || len(o.all) > 0 {
		t.Errorf("%v, %+v", err, o.all)
	}
}

func TestAnObserverIsToldWhyRowsWereLeft(t *testing.T) {
	s, o := observedShop(t)
	for name, text := range statements {
		rows, err := s.routed.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() || len(o.all) > 0 {
			t.Fatalf("%s: %v, %+v", name, rows.Err(), o.all)
		}
		if err := rows.Close(); err != nil { //nolint:sqlclosecheck // its error is wanted
			t.Error(err)
		}
		if got := o.only(t); got.Rows != 1 || got.Err != nil {
			t.Errorf("%s: %+v", name, got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		rows, err = s.routed.QueryContext(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for rows.Next() {
		}
		_ = rows.Close() //nolint:sqlclosecheck // the rows are left
		s.idle(t)
		if got := o.only(t); rows.Err() != nil && !errors.Is(got.Err, context.Canceled) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnObserverIsToldHowOftenATableHadMoved(t *testing.T) {
	m, o := newMoving(t), &told{}
	routed := shardsql.OpenDB(shardsql.Config{Router: m.router, Home: m.db, Observer: o.observer()})
	t.Cleanup(func() { _ = routed.Close() })
	exec(t, routed, "INSERT INTO orders (user_id) VALUES (1)")
	if got := o.only(t); got.Retries != 0 {
		t.Errorf("before the switch: %+v", got)
	}
	m.closes(t, sharding.OnShards)()
	exec(t, routed, "UPDATE orders SET note = 'x' WHERE user_id = 1")
	if got := o.only(t); got.Retries != 1 || got.Kind != shardsql.One || !slices.Equal(got.Targets, []sharding.Target{{DB: "main", Table: "orders_1"}}) {
		t.Errorf("after it: %+v", got)
	}
}

func TestObservedRowsTellTheTypesOfTheirColumns(t *testing.T) {
	s, _ := observedShop(t)
	for name, text := range statements {
		types := func(db *sql.DB) (all []string) {
			rows, err := db.Query(text)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			found, err := rows.ColumnTypes()
			if err != nil || rows.Err() != nil {
				t.Fatal(err, rows.Err())
			}
			for _, c := range found {
				all = append(all, c.DatabaseTypeName()+" "+c.ScanType().String())
			}
			return all
		}
		plain := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
		if got, want := types(s.routed), types(plain); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if err := plain.Close(); err != nil {
			t.Error(err)
		}
	}
}
