// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestATransactionReadsTheCopyOfABroadcastTableWhereItHasBegun(t *testing.T) {
	routed, copies := rated(t, sharding.SingleShard)
	for i, db := range copies {
		exec(t, db, "INSERT INTO rates VALUES (1, ?, 0)", []string{"home", "a", "b"}[i])
	}
	for user, want := range []string{"a", "b"} {
		tx, err := routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (?, ?)", 100+user, user)
		if got := one[string](t, tx, "SELECT name FROM rates WHERE id IN (SELECT id FROM rates)"); got != want {
			t.Errorf("user %d reads the copy of %s, want %s", user, got, want)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	if got := one[string](t, routed, "SELECT name FROM rates"); got != "home" {
		t.Errorf("outside of a transaction the copy of %s is read", got)
	}
}

func TestARefusalAfterABroadcastTableWasReadSaysToReadItLater(t *testing.T) {
	routed, _ := rated(t, sharding.SingleShard)
	const later = "read the broadcast table after the first statement"
	for _, c := range []struct {
		first []string
		says  bool
	}{{[]string{"SELECT name FROM rates", "SELECT id FROM rates"}, true}, {[]string{"SELECT name FROM rates", "INSERT INTO orders (id, user_id) VALUES (201, 1)"}, true}, {[]string{"INSERT INTO orders (id, user_id) VALUES (200, 0)", "SELECT name FROM rates"}, false}} {
		tx, err := routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(c.first, "INSERT INTO orders (id, user_id) VALUES (203, 1)") {
			_, err = tx.Exec(text)
		}
		if !errors.Is(err, sharding.ErrCrossDatabase) || strings.Contains(err.Error(), later) != c.says {
			t.Errorf("after %s: %v", c.first, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// A statement without a table may come first, such as a check of the connection, or between those of a shard.
func TestAStatementWithoutATableBindsATransactionToNoDatabase(t *testing.T) {
	s := newShop(t).narrow()
	tx, err := s.routed.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, text := range []string{"SELECT 1", "SELECT CURRENT_TIMESTAMP", "SELECT (SELECT 2) + ?"} {
			var args []any
			if strings.Contains(text, "?") {
				args = append(args, 3)
			}
			var got string
			if err := tx.QueryRowContext(within(t), text, args...).Scan(&got); err != nil || got == "" {
				t.Errorf("%s: %q, %v", text, got, err)
			}
		}
		exec(t, tx, "INSERT OR IGNORE INTO orders (id, user_id, note) VALUES (70, 5, 'x')")
	}
	for _, text := range []string{"SELECT sqlite_version()", "SELECT last_insert_rowid()"} { // which may differ
		if _, err := tx.ExecContext(within(t), text); !errors.Is(err, sharding.ErrCrossDatabase) && !errors.Is(err, sharding.ErrSettings) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, s.routed, "SELECT COUNT(*) FROM orders WHERE id = 70"); n != 1 {
		t.Errorf("%d orders", n)
	}
	s.idle(t)
}
