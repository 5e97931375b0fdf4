// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
)

// otherTables are those of other people's id services, with a row each.
var otherTables = []string{
	"CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE) ENGINE=InnoDB",
	"CREATE TABLE tiny_id_info (id bigint unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint NOT NULL DEFAULT '0'," +
		" max_id bigint NOT NULL DEFAULT '0', step int DEFAULT '0', delta int NOT NULL DEFAULT '1', remainder int NOT NULL DEFAULT '0'," +
		" create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00'," +
		" version bigint NOT NULL DEFAULT '0', PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB",
	"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('order', 1, 1, 1000, 1, 0, 1)",
	"CREATE TABLE cosid (name varchar(100) NOT NULL, last_max_id bigint NOT NULL DEFAULT 0, last_fetch_time bigint NOT NULL, PRIMARY KEY (name)) ENGINE=InnoDB",
	"INSERT INTO cosid (name, last_max_id, last_fetch_time) VALUES ('shop.order', 0, unix_timestamp())",
	"CREATE TABLE wuid (h int NOT NULL AUTO_INCREMENT, x tinyint NOT NULL DEFAULT '0', PRIMARY KEY (x), UNIQUE KEY h (h)) ENGINE=InnoDB",
}

func TestIDStoresKeepTheContractByVtgateInAnUnshardedKeyspace(t *testing.T) {
	s := newCombo(t, server.RunMySQL(t, forVitess...), keyspace{"ids", []string{"0"}})
	db := s.open(t, "ids")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "orders", 1, 1000); err != nil {
		t.Fatal(err)
	}
	for _, text := range otherTables {
		execf(t, db, "%s", text)
	}
	// Each handle is as another process would open it.
	open := func(t *testing.T) *sqlstore.Store {
		t.Helper()
		store, err := sqlstore.New(t.Context(), s.open(t, "ids"))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	for name, source := range map[string]func(t *testing.T) keygen.Source{
		"leaf_alloc": func(t *testing.T) keygen.Source { return open(t).Tag("orders") },
		"guarded":    func(t *testing.T) keygen.Source { return open(t).GuardedTag("orders") },
		"periods":    func(t *testing.T) keygen.Source { return thisYear{open(t).Periods()} },
		"cosid":      func(t *testing.T) keygen.Source { return open(t).CosID("shop.order") },
		"tinyid": func(t *testing.T) keygen.Source {
			source, err := open(t).TinyID("order", 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			return source
		},
		"wuid": func(t *testing.T) keygen.Source {
			highs, err := open(t).WUID("wuid")
			if err != nil {
				t.Fatal(err)
			}
			source, err := keygen.Sections(highs, 4)
			if err != nil {
				t.Fatal(err)
			}
			return source
		},
	} {
		t.Run(name, func(t *testing.T) { keygentest.Source(t, source) })
	}
	t.Run("worker_lease", func(t *testing.T) {
		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger { return open(t).Leases() })
	})
	t.Run("WORKER_NODE", func(t *testing.T) { workerNodes(t, open(t)) })
	t.Run("several tickets", func(t *testing.T) { manyTicketsAreRefused(t, s.open(t, "ids")) })
	t.Run("tickets one by one", func(t *testing.T) {
		ticketsOneByOne(t, func() *ticket.Table { return newTickets(t, s.open(t, "ids")) })
	})
	t.Run("segments", func(t *testing.T) {
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
			g, err := segment.New(t.Context(), segment.Config{Source: open(t).Tag("orders"), Step: 5000})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Close() })
			return g
		})
	})
}

// thisYear is one counter of a period as a source.
type thisYear struct{ periodic.Counters }

// Reserve takes n numbers.
func (y thisYear) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	return y.Counters.Reserve(ctx, "order/shop7", "2026", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), n)
}

// workerNodes has generators started one after another.
func workerNodes(t *testing.T, store *sqlstore.Store) {
	layout := keygen.Baidu()
	layout.Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := map[int64]bool{}
	for _, worker := range []keygen.Assigner{store.WorkerNode("host", "1"), store.WorkerNode("host", "1"), store.GuardedWorkerNode("host", "1")} {
		g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: worker})
		if err != nil {
			t.Fatal(err)
		}
		seen[g.Stats().Worker] = true
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("3 starts got the worker ids %v", seen)
	}
}

// newTickets is Tickets64 as another process would open it.
func newTickets(t *testing.T, db *sql.DB) *ticket.Table {
	t.Helper()
	table, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: ticket.Numbering{Offset: 1, Increment: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ticketsOneByOne has several processes take tickets at once.
func ticketsOneByOne(t *testing.T, open func() *ticket.Table) {
	const processes, each = 4, 50
	var got [processes][]int64
	var all sync.WaitGroup
	for n := range processes {
		table := open()
		all.Go(func() {
			for range each {
				span, err := table.Reserve(t.Context(), 1)
				if err != nil {
					t.Error(err)
				}
				got[n] = append(got[n], span.First)
			}
		})
	}
	all.Wait()
	for n, ids := range got {
		if !slices.IsSorted(ids) {
			t.Errorf("process %d got %d", n, ids)
		}
	}
	if id, twice := keygentest.Duplicate(slices.Concat(got[:]...)); twice {
		t.Errorf("ticket %d was given twice", id)
	}
}

// manyTicketsAreRefused: vtgate sets no AUTO_INCREMENT for a session and locks no tables.
func manyTicketsAreRefused(t *testing.T, db *sql.DB) {
	var setup *keygen.SetupError
	if span, err := newTickets(t, db).Reserve(t.Context(), 10); !errors.As(err, &setup) || !strings.Contains(err.Error(), recorded) || !strings.Contains(setup.Cure, "Step") {
		t.Errorf("%+v, %v", span, err)
	}
}

// recorded is vtgate's answer, with which the tests of package ticket refuse without a Vitess.
const recorded = "Error 1235 (42000): VT12001: unsupported: system setting: auto_increment_increment"
