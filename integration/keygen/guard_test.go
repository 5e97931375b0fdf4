// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/schema"
)

func TestGuardedSegmentsKeepTheContract(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		keygentest.Source(t, func(t *testing.T) keygen.Source {
			_, store := open.Store(t)
			return store.GuardedTag("orders")
		})
	})
}

func TestOnAnotherServerGuardedSegmentsBeginTenStepsHigherOnce(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		if _, err := schema.Seed(t.Context(), db, "items", 1, 50); err != nil {
			t.Fatal(err)
		}
		if _, err := store.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, db, "UPDATE worker_namespace SET identity = 'another server' WHERE namespace = 'leaf_alloc'")
		database.Exec(t, db, "UPDATE leaf_alloc SET max_id = 7")
		database.AtOnce(t, 8, func(i int) error {
			_, err := store.GuardedTag([]string{"orders", "items"}[i%2]).Reserve(t.Context(), 1)
			return err
		})
		if span, err := store.GuardedTag("unknown").Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrUnknownTag) {
			t.Errorf("%+v, %v", span, err)
		}
		for tag, want := range map[string]int64{"orders": 7 + 10*1000 + 4, "items": 7 + 10*50 + 4} {
			if got := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'"); got != want {
				t.Errorf("%s: max_id is %d, want %d", tag, got, want)
			}
		}
	})
}

// A segment grows with the demand, and may be a thousand times the row's step.
func TestOnAnotherServerGuardedSegmentsBeginTenOfTheLargestHigher(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		tag := store.GuardedTag("orders") // of step 1000
		for _, size := range []int64{1000, 500_000, 10} {
			if _, err := tag.Reserve(t.Context(), size); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tag.Reserve(t.Context(), 500_000); err != nil { // which the replica does not receive
			t.Fatal(err)
		}
		database.Exec(t, db, "UPDATE worker_namespace SET identity = 'another server' WHERE namespace = 'leaf_alloc'")
		database.Exec(t, db, "UPDATE leaf_alloc SET max_id = max_id - 500000")
		received := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
		span, err := store.GuardedTag("orders").Reserve(t.Context(), 10)
		if want := received + 10*500_000; err != nil || span.First != want {
			t.Errorf("%+v, %v, want the first to be %d", span, err, want)
		}
	})
}

// A replica would compare with its own identity.
func TestAGuardedSegmentIsRefusedWhereReplicasRunItsStatement(t *testing.T) {
	m := server.RunMariaDB(t, "--log-bin")
	database.MariaDB(m).Store(t)
	store := database.StoreOn(t, database.MariaDBWith(t, m, map[string]string{"binlog_format": "'STATEMENT'"}))
	if span, err := store.GuardedTag("orders").Reserve(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "STATEMENT") {
		t.Errorf("%+v, %v", span, err)
	}
}

// A lease and a row of WORKER_NODE are written at an isolation level whose changes the server can
// log only by their rows. A segment is one statement, and goes on.
func TestAServerThatLogsStatementsIsToldToLogRows(t *testing.T) {
	for name, open := range map[string]database.Opener{
		"MariaDB": database.MariaDB(server.RunMariaDB(t, "--log-bin", "--binlog-format=STATEMENT")),
		"MySQL":   database.MySQL(server.RunMySQL(t, "--log-bin", "--binlog-format=STATEMENT")),
	} {
		_, store := open.Store(t)
		_, leased := tryAcquire(t.Context(), store, "shop")
		_, numbered := store.WorkerNode("host", "port").Acquire(t.Context(), keygen.Twitter())
		for what, err := range map[string]error{"a lease": leased, "WORKER_NODE": numbered} {
			if setup := new(keygen.SetupError); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "binlog_format") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := store.Tag("orders").Reserve(t.Context(), 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
