// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/throttle"
	"github.com/shardid/shardid/sharding"
)

// newStandby makes a copy of a PostgreSQL server, which replicates changes if follow is
// set. Otherwise it stays behind.
func newStandby(t *testing.T, primary *server.Postgres, follows bool) *server.Postgres {
	t.Helper()
	standby := server.RunPostgres(t)
	dir := database.Texts(t, standby.Open(t, "empty"), "SHOW data_directory")[0]
	standby.Kill()
	db := primary.Open(t, "shop")
	base := fmt.Sprintf(`rm -rf %[1]s && "%[2]s/pg_basebackup" -D %[1]s -d "host=127.0.0.1 port=%[3]s user=postgres" -c fast -X stream`,
		dir, database.Texts(t, db, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")[0], database.Texts(t, db, "SHOW port")[0])
	if follows {
		base += " -R"
	} else {
		base += " && : >" + dir + "/standby.signal"
	}
	database.Exec(t, db, "COPY (SELECT 1) TO PROGRAM '"+base+"'")
	if err := standby.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return standby
}

// onServer opens a database that a server has.
func onServer(t *testing.T, s database.Server, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// takeOver makes a standby a primary.
func takeOver(t *testing.T, standby *server.Postgres) {
	t.Helper()
	db := onServer(t, standby, "shop")
	database.Exec(t, db, "SELECT pg_promote(wait => false)")
	testwait.Until(t, "the standby takes writes", func() bool {
		return database.Texts(t, db, "SELECT pg_is_in_recovery()")[0] == "false"
	})
}

// Changes that a standby did not have when it took over are lost on the source. They are also removed from
// the shards, whether the job had applied them or not.
func TestAfterAStandbyTookOverTheShardsHaveWhatItHas(t *testing.T) {
	first, second := server.RunPostgres(t), server.RunPostgres(t)
	s := newMigrationShop(t, first, second)
	second.Open(t, "shop") // by this name its standby is asked
	s.fill(t, 200)
	run := func() {
		t.Helper()
		if err := s.job(t, "user_id").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "user_id", "orders", "")
	}
	run()

	shard := newStandby(t, second, false)
	s.lag(t, 20)
	takeOver(t, shard)
	s.shards = sharding.DBs{"a": s.shards["a"], "b": onServer(t, shard, "shop_b")}
	run()

	source := newStandby(t, first, false)
	s.lag(t, 60)
	takeOver(t, source)
	s.source = onServer(t, source, "shop")
	s.shards = sharding.DBs{"a": onServer(t, source, "shop_a"), "b": s.shards["b"]}
	database.Exec(t, s.source, "UPDATE orders SET note = 'after the change' WHERE id BETWEEN 61 AND 63")
	run()

	late := newStandby(t, source, false)
	if _, err := s.job(t, "user_id").Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	s.compare(t, "user_id", "orders_old", "")
	database.Exec(t, s.shards["a"], "UPDATE orders_00 SET note = 'on the shard'")
	takeOver(t, late)
	s.source = onServer(t, late, "shop") // knows nothing of the switch
	if err := s.job(t, "user_id").Run(t.Context()); !errors.Is(err, migrate.ErrUnclear) {
		t.Errorf("a source from before the switch: %v", err)
	}
	if n := database.MustNumber(t, s.shards["a"], "SELECT COUNT(*) FROM orders_00 WHERE note <> 'on the shard'"); n != 0 {
		t.Errorf("%d rows that were written to the shard are gone", n)
	}
}

// A copy pauses while too many connections run a statement. Only
// a user with the right to see them can count them.
func TestACopyWaitsWhilePostgresIsBusy(t *testing.T) {
	s := newMigrationShop(t, server.RunPostgres(t), server.RunPostgres(t))
	s.fill(t, 100)
	o := newOperator(t, s)
	busy, idle := context.WithCancel(t.Context())
	defer idle()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { _, _ = s.source.ExecContext(busy, "SELECT pg_sleep(600)") }) // it is cancelled
	}
	run := o.start(t, "run", "--once", "--max-threads", "3", "--interval", "100ms")
	run.waitFor(t, "copying nothing for now: ")
	if said := run.stderr.String(); !strings.Contains(said, "threads are running on the source, at most 3") {
		t.Errorf("it waits for something else: %s", said)
	}
	idle()
	wg.Wait()
	if code := run.code(t); code != 0 {
		t.Errorf("exit code %d: %s", code, run.stderr.String())
	}
	s.compare(t, "user_id", "orders", "")
	o.must(t, 0, "abort", "--yes")
	database.Exec(t, s.source, "REVOKE pg_read_all_stats FROM mover")
	blind := o.start(t, "run", "--once", "--max-threads", "3")
	if code := blind.code(t); code == 0 || !strings.Contains(blind.stderr.String(), "GRANT pg_read_all_stats") {
		t.Errorf("a user who sees no others: exit code %d: %s", code, blind.stderr.String())
	}
}

// A new connection has no state yet, like a connection that the user may not see.
func TestAThrottleCountsWhileConnectionsComeAndGo(t *testing.T) {
	s := newMigrationShop(t, server.RunPostgres(t), server.RunPostgres(t))
	throttled, err := throttle.New(throttle.Config{Source: s.source, Name: "orders", MaxThreads: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				db, err := sql.Open("pgx", s.servers[0].DSN("shop"))
				if err == nil {
					err = errors.Join(db.PingContext(ctx), db.Close())
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range effort.Cases(2000, 20_000) {
		if err := throttled.Wait(ctx); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	wg.Wait()
}
