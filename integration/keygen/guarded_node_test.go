// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/sqlstore"
)

// starts takes worker ids for n processes.
func starts(t *testing.T, workers keygen.Assigner, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		lease, err := workers.Acquire(t.Context(), keygen.Disposable())
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = lease.ID()
	}
	return ids
}

// sharedWith counts those that are in both.
func sharedWith(a, b []int64) (n int) {
	for _, id := range a {
		if slices.Contains(b, id) {
			n++
		}
	}
	return n
}

func TestAfterAnAsynchronousFailOverGuardedStartsHaveWorkerIDsOfTheirOwn(t *testing.T) {
	for guarded, want := range map[bool]int{true: 0, false: 200} {
		t.Run(fmt.Sprintf("guarded %v", guarded), func(t *testing.T) {
			p := newPair(t)
			workers := nodes(database.StoreOn(t, p.open(t)), guarded)
			starts(t, workers, 20)
			p.catchUp(t)
			p.cutOff(t)
			lost := starts(t, workers, 200)
			p.failOver(t)
			next := starts(t, nodes(database.StoreOn(t, p.open(t)), guarded), 200)
			if twice := sharedWith(next, lost); twice != want {
				t.Errorf("%d worker ids of 200 lost starts were given again, want %d", twice, want)
			}
		})
	}
}

func nodes(store *sqlstore.Store, guarded bool) keygen.Assigner {
	if guarded {
		return store.GuardedWorkerNode("host", "1")
	}
	return store.WorkerNode("host", "1")
}

func TestOnARestoredCopyGuardedStartsHaveWorkerIDsOfTheirOwn(t *testing.T) {
	for guarded, want := range map[bool]int{true: 0, false: 300} {
		t.Run(fmt.Sprintf("guarded %v", guarded), func(t *testing.T) {
			original, copied := server.RunMySQL(t), server.RunMySQL(t)
			copied.Renew(t)
			from, store := database.MySQL(original).Store(t)
			to, restored := database.MySQL(copied).Store(t)
			starts(t, nodes(store, guarded), 20)
			restore(t, from, to)
			lost := starts(t, nodes(store, guarded), 300) // the original goes on
			if twice := sharedWith(starts(t, nodes(restored, guarded), 300), lost); twice != want {
				t.Errorf("%d worker ids of 300 starts were given on the copy too, want %d", twice, want)
			}
		})
	}
}

// restore copies the tables of worker ids, as a dump does.
func restore(t *testing.T, from, to *sql.DB) {
	t.Helper()
	for table, columns := range map[string]string{
		"WORKER_NODE":      "ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE",
		"worker_namespace": "namespace, epoch_us, unit_ns, identity, longest_us, safe_from_us",
	} {
		database.Exec(t, to, "DELETE FROM "+table)
		n := strings.Count(columns, ",") + 1
		insert := "INSERT INTO " + table + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", n-1) + ")"
		err := sqlrun.Each(t.Context(), from, func(rows *sql.Rows) error {
			values, into := make([]any, n), make([]any, n)
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return err
			}
			_, err := to.Exec(insert, values...)
			return err
		}, "SELECT "+columns+" FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnAnotherServerGuardedStartsLeaveAThousandWorkerIDsOutOnce(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		first := starts(t, store.GuardedWorkerNode("host", "1"), 1)[0]
		if first != 1 {
			t.Errorf("the first start of an empty table has worker id %d", first)
		}
		database.Exec(t, db, "UPDATE worker_namespace SET identity = 'another server' WHERE namespace = 'WORKER_NODE'")
		var mu sync.Mutex
		var ids []int64
		database.AtOnce(t, 8, func(int) error {
			lease, err := store.GuardedWorkerNode("host", "1").Acquire(t.Context(), keygen.Disposable())
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				ids = append(ids, lease.ID())
			}
			return err
		})
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 8 || ids[0] <= first+1000 || ids[7] > first+1020 {
			t.Errorf("after %d came %v", first, ids)
		}
	})
}
