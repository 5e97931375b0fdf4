// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

const longPause = 10 * time.Minute

func TestMigrationUnderWritersLosesNothing(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 3000)
		stop := s.writers(t, 4)
		j := s.job(t, "user_id")
		if err := j.Run(t.Context()); err != nil {
			stop()
			t.Fatal(err)
		}
		done, err := s.cutover(t, j)
		n := stop()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d transactions, pause %s, %d drained", n, done.Pause, done.Drained)
		s.compare(t, "user_id", "orders_old", "")
		if err := s.change(rand.New(rand.NewPCG(1, 1))); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(s.speaks.noTable, "orders")) {
			t.Errorf("a writer of the closed table got %v", err)
		}
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "user_id", "orders", "_sealed")
	})
}

func TestCutoverGivesUpWhenATransactionHoldsTheTable(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		tx, err := s.source.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'slow' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = j.Cutover(t.Context(), 200*time.Millisecond)
		var pause *migrate.PauseError
		if !errors.As(err, &pause) {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		t.Log(err)
		if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'goes on' WHERE id = 2"); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders_old", "")
	})
}
