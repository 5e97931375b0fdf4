// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// clusters start three members that all accept writes.
var clusters = map[dialect.Cluster]func(t *testing.T) []database.Server{
	dialect.Galera: func(t *testing.T) (members []database.Server) {
		for _, m := range server.RunGaleraCluster(t, 3) {
			members = append(members, m)
		}
		return members
	},
	dialect.GroupReplication: func(t *testing.T) (members []database.Server) {
		for _, m := range server.RunGroup(t, 3, "--loose-group-replication-single-primary-mode=OFF") {
			members = append(members, m)
		}
		return members
	},
}

func onEach(t *testing.T, test func(t *testing.T, c cluster)) {
	t.Helper()
	for kind, run := range clusters {
		t.Run(string(kind), func(t *testing.T) { test(t, prepared(t, kind, run(t))) })
	}
}

// cluster is three members with the tables of all counters, a pool and a store on each.
type cluster struct {
	kind    dialect.Cluster
	members []database.Server
	dbs     []*sql.DB
	stores  []*sqlstore.Store
}

const ticketTable = "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE)"

// makeTables makes the tables of all counters.
func makeTables(t *testing.T, db *sql.DB) {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"orders", "guarded"} {
		if _, err := schema.Seed(t.Context(), db, tag, 1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, db, ticketTable)
}

func prepared(t *testing.T, kind dialect.Cluster, members []database.Server) cluster {
	t.Helper()
	c := cluster{kind: kind, members: members}
	for n, m := range members {
		db := m.Open(t, "app")
		if n == 0 {
			makeTables(t, db)
		}
		testwait.Until(t, "the tables on every member", func() bool {
			var n int
			err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'").Scan(&n)
			return err == nil && n == 5
		})
		c.dbs, c.stores = append(c.dbs, db), append(c.stores, database.StoreOn(t, db))
	}
	return c
}

// countAlike sets the increment of all Galera members to 1, as tickets need. By default the
// increment is the number of members, which changes when a member fails.
func (c cluster) countAlike(t *testing.T) {
	t.Helper()
	for _, db := range c.dbs {
		if c.kind == dialect.Galera {
			database.Exec(t, db, "SET GLOBAL wsrep_auto_increment_control = OFF, GLOBAL auto_increment_increment = 1, GLOBAL auto_increment_offset = 1")
		}
	}
}

func TestWritersOnEveryMemberNeverShareANumberWhileOneIsKilled(t *testing.T) {
	onEach(t, func(t *testing.T, c cluster) {
		c.countAlike(t)
		w := &writers{each: 1, calls: 100}
		ctx := testwait.Context(t)
		var gone, never atomic.Bool
		last := len(c.members) - 1
		all := 0
		for n := range c.members {
			is := &never
			if n == last {
				is = &gone
			}
			takes := counters(t, c.members[n].Open(t, "app"), c.stores[n])
			all += len(takes) * w.each * w.calls
			w.on(ctx, takes, is)
		}
		testwait.Until(t, "half of all numbers", func() bool { return w.done.Load() > int64(all/2) })
		gone.Store(true)
		c.members[last].Kill()
		w.check(t)
	})
}

// Of a group's members the one that committed last would commit again and again: the others have
// not applied its change yet when its next one comes.
func TestWritersOnMembersOfAGroupTakeTurns(t *testing.T) {
	c := prepared(t, dialect.GroupReplication, clusters[dialect.GroupReplication](t))
	const calls, fair = 300, 150
	var on []*writers
	finished := func(w *writers) bool { return w.done.Load() == calls }
	for _, store := range c.stores {
		w := &writers{each: 1, calls: calls}
		w.on(testwait.Context(t), map[string]take{"segments": spans(store.Tag("orders"), 10)}, new(atomic.Bool))
		on = append(on, w)
	}
	testwait.Until(t, "the first to finish", func() bool { return slices.ContainsFunc(on, finished) })
	for n, w := range on {
		done := w.done.Load()
		if t.Logf("member %d made %d of %d calls before the first one had made all", n, done, calls); done < fair {
			t.Error("others were not to finish first")
		}
	}
	for _, w := range on {
		w.check(t)
	}
}

func TestTheFirstLeaseBeginsAtOnceOnAnotherMember(t *testing.T) {
	onEach(t, func(t *testing.T, c cluster) {
		claim := workerid.Claim{Namespace: "first", Owner: "a", Holder: "a", Most: 1, Layout: keygen.Twitter(), Term: time.Hour}
		e, err := c.stores[1].Leases().Take(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		if begin := claim.Layout.At(e.NotBefore); begin.After(time.Now().Add(claim.Term)) {
			t.Errorf("the lease begins at %v, as after a fail-over", begin)
		}
	})
}

// Members take turns in all calls of the ledger's contract.
func TestLeasesKeepTheContractOnWhateverMember(t *testing.T) {
	onEach(t, func(t *testing.T, c cluster) {
		var turn atomic.Int64
		keygentest.Ledger(t, func(*testing.T) workerid.Ledger {
			return c.stores[int(turn.Add(1))%len(c.stores)].Leases()
		})
	})
}

// A correctly configured cluster gets no error about its sessions' settings.
func TestTheIdentityIsTheClustersOnEachMember(t *testing.T) {
	onEach(t, func(t *testing.T, c cluster) {
		identities, nodes := map[string]bool{}, map[string]bool{}
		for n, db := range c.dbs {
			s, err := dialect.Identify(t.Context(), db)
			if err != nil || s.Cluster != c.kind {
				t.Fatalf("%+v, %v", s, err)
			}
			for expression, into := range map[string]map[string]bool{s.IdentityExpr(): identities, s.NodeExpr(): nodes} {
				into[database.Texts(t, db, "SELECT "+expression)[0]] = true
			}
			before := database.MustNumber(t, c.dbs[0], "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'guarded'")
			span, err := c.stores[n].GuardedTag("guarded").Reserve(t.Context(), 10)
			if err != nil || n > 0 && span.First != before {
				t.Errorf("member %d reserves %+v of a counter at %d, %v", n, span, before, err)
			}
			testwait.Until(t, "the reservation on the first member", func() bool {
				return database.MustNumber(t, c.dbs[0], "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'guarded'") == span.Last()+1
			})
		}
		if len(identities) != 1 || len(nodes) != len(c.dbs) {
			t.Errorf("%d members are %v as members, and %v as a cluster", len(c.dbs), nodes, identities)
		}
	})
}

// The members count by 7, and by 3, so that each gives numbers of its own.
func TestDoctorWarnsOfWorkerIDsThatRiseByTheGroupsIncrement(t *testing.T) {
	onEach(t, func(t *testing.T, c cluster) {
		if _, err := c.stores[0].WorkerNode("h", "1").Acquire(t.Context(), keygen.Disposable()); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, c.dbs[0], "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
		one, err := sharding.Spread([]string{"db"}, 1, "orders")
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(sharding.DBs{"db": c.dbs[0]}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(1), Map: one})
		if err != nil {
			t.Fatal(err)
		}
		found, err := schema.Doctor(t.Context(), router, schema.DoctorConfig{})
		if err != nil {
			t.Fatal(err)
		}
		setting := map[dialect.Cluster]string{dialect.Galera: "wsrep_auto_increment_control", dialect.GroupReplication: "group_replication_auto_increment_increment"}[c.kind]
		for _, f := range found.Findings {
			if f.Code == schema.NodeSteps && strings.Contains(f.Fix, setting) {
				return
			}
		}
		t.Errorf("doctor finds %+v", found.Findings)
	})
}

// If a server's increment or offset is not the configured one, its tickets would collide with another server's.
func TestTicketsOfGaleraSayWhichSettingKeepsTheirNumbering(t *testing.T) {
	c := prepared(t, dialect.Galera, clusters[dialect.Galera](t))
	table, err := ticket.NewTable(ticket.TableConfig{DB: c.dbs[0], Numbering: ticket.Numbering{Offset: 1, Increment: 1}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = table.Reserve(t.Context(), 1)
	var numbering *ticket.NumberingError
	if !errors.As(err, &numbering) || !strings.Contains(err.Error(), "wsrep_auto_increment_control=OFF") {
		t.Errorf("got %v", err)
	}
	c.countAlike(t)
	if _, err := table.Reserve(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
