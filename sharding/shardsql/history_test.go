// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// changes() is about the last statement of its connection. That of a shard is another one.
func TestAFunctionAboutTheLastStatementIsRefusedOnAnotherConnection(t *testing.T) {
	s := newShop(t)
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	exec(t, c, "INSERT INTO coupons (code, used) VALUES ('a', 0), ('b', 0)")
	if n := one[int64](t, c, "SELECT changes()"); n != 2 {
		t.Errorf("%d changes at home", n)
	}
	exec(t, c, "INSERT INTO orders (id, user_id) VALUES (1, 5)")
	var n int64
	if err := c.QueryRowContext(t.Context(), "SELECT Changes ( )").Scan(&n); !errors.Is(err, sharding.ErrSettings) {
		t.Errorf("%d, %v", n, err)
	}
	exec(t, c, "INSERT INTO coupons (code, used) VALUES ('c', 0)")
	if n := one[int64](t, c, "SELECT changes()"); n != 1 {
		t.Errorf("%d changes at home", n)
	}
}

// A transaction that a text begins is on the connection at home alone.
func TestAfterATextThatBeginsATransactionOtherDatabasesRefuse(t *testing.T) {
	s := newShop(t)
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	exec(t, c, "BEGIN")
	exec(t, c, "INSERT INTO coupons (code, used) VALUES ('a', 0)")
	if _, err := c.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (1, 5)"); !errors.Is(err, sharding.ErrSettings) || !strings.Contains(err.Error(), "BeginTx") {
		t.Error(err)
	}
	exec(t, c, "ROLLBACK")
	exec(t, c, "INSERT INTO orders (id, user_id) VALUES (1, 5)")
	if n := one[int64](t, c, "SELECT COUNT(*) FROM coupons"); n != 0 {
		t.Errorf("%d coupons", n)
	}
}

// Outside of a transaction, SAVEPOINT begins one on SQLite.
func TestAfterATextThatSetsSomethingOnSQLiteOtherDatabasesRefuse(t *testing.T) {
	s := newShop(t)
	for set, reset := range map[string]string{
		"SAVEPOINT a": "RELEASE a", "PRAGMA query_only = 1": "", "pragma main.foreign_keys(1)": "", "/* x */ PRAGMA case_sensitive_like = true": "",
	} {
		c, err := s.routed.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const find = "SELECT COUNT(*) FROM orders WHERE user_id = 5"
		exec(t, c, "PRAGMA user_version")
		one[int64](t, c, find)
		exec(t, c, set)
		for _, text := range []string{"", "SAVEPOINT b", "RELEASE b"} {
			if text != "" {
				exec(t, c, text)
			}
			var n int64
			if err := c.QueryRowContext(t.Context(), find).Scan(&n); !errors.Is(err, sharding.ErrSettings) {
				t.Errorf("after %s; %s: %v", set, text, err)
			}
		}
		if reset != "" {
			exec(t, c, reset)
			one[int64](t, c, find)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A query does not change what changes() and last_insert_rowid() return: they are about the last write.
func TestAFunctionAboutTheLastWriteIsRefusedAfterAQueryOnItsConnection(t *testing.T) {
	s := newShop(t)
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	exec(t, c, "INSERT INTO coupons (code, used) VALUES ('a', 0), ('b', 0)")
	exec(t, c, "INSERT INTO orders (id, user_id) VALUES (1, 5)")
	one[int64](t, c, "SELECT COUNT(*) FROM coupons")
	for _, text := range []string{"SELECT changes()", "SELECT last_insert_rowid()"} {
		var n int64
		if err := c.QueryRowContext(t.Context(), text).Scan(&n); !errors.Is(err, sharding.ErrSettings) {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	exec(t, c, "UPDATE coupons SET used = 1 WHERE code = 'a'")
	if n := one[int64](t, c, "SELECT changes()"); n != 1 {
		t.Errorf("%d changes at home", n)
	}
	exec(t, c, "INSERT INTO coupons (code, used) VALUES ('c', 0)")
	one[int64](t, c, "SELECT COUNT(*) FROM orders")
	if n := one[int64](t, c, "SELECT last_insert_rowid()"); n != 3 {
		t.Errorf("row %d is the last one at home, want 3", n)
	}
}
