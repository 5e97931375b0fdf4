// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// family makes orders with items with notes; deletes and key changes cascade
// through both levels.
func family(t *testing.T, s *migrationShop) migrate.Config {
	t.Helper()
	database.Exec(t, s.source, `CREATE TABLE items (id INT `+s.speaks.counted+` PRIMARY KEY, order_id INT NULL, what VARCHAR(20),
		CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE ON UPDATE CASCADE)`)
	database.Exec(t, s.source, `CREATE TABLE notes (id INT `+s.speaks.counted+` PRIMARY KEY, item_id INT NULL,
		CONSTRAINT notes_item FOREIGN KEY (item_id) REFERENCES items (id) ON DELETE SET NULL ON UPDATE CASCADE)`)
	for i := 1; i <= 300; i++ {
		database.Exec(t, s.source, fmt.Sprintf("INSERT INTO items VALUES (%d, %d, 'x'), (%d, %d, 'y')", i, i, 1000+i, i))
		database.Exec(t, s.source, fmt.Sprintf("INSERT INTO notes VALUES (%d, %d)", i, i))
	}
	cfg := s.config(t, "id")
	for _, name := range []string{"items", "notes"} {
		s.fixCounter(t, name)
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%02d")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Tables = append(cfg.Tables, migrate.Table{Table: sharding.Table{Name: name, Key: "id", Rule: sharding.Low(2), Map: m}})
	}
	return cfg
}

func (s *migrationShop) compareTable(t *testing.T, table migrate.Table, expression, source string) {
	t.Helper()
	want := database.Texts(t, s.source, "SELECT "+expression+" FROM "+source)
	var got []string
	for _, at := range table.Map.Targets() {
		got = append(got, database.Texts(t, s.shards[at.DB], "SELECT "+expression+" FROM "+at.Table)...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s: %d rows on the source, %d on the shards", source, len(want), len(got))
		reportMissing(t, "only on the source", want, got)
		reportMissing(t, "only on a shard", got, want)
	}
}

func TestCascadesReachTheShards(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 300)
		cfg := family(t, s)
		cfg.ChunkRows = 20
		j, err := migrate.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		changes := 0
		wg.Go(func() {
			random := rand.New(rand.NewPCG(5, 5))
			for ctx.Err() == nil {
				id := random.IntN(300) + 1
				for _, text := range []string{
					fmt.Sprintf("DELETE FROM orders WHERE id = %d", id),
					fmt.Sprintf("INSERT INTO orders (id, user_id) VALUES (%d, 1)", id),
					fmt.Sprintf("INSERT INTO items (order_id, what) VALUES (%d, 'new')", id),
					fmt.Sprintf("INSERT INTO notes (item_id) SELECT MAX(id) FROM items WHERE order_id = %d", id),
					fmt.Sprintf("UPDATE orders SET id = %d WHERE id = %d", 1000+random.IntN(9000), id),
				} {
					if _, err := s.source.ExecContext(context.WithoutCancel(ctx), text); err == nil {
						changes++
					}
				}
				time.Sleep(writersRest())
			}
		})
		if err := j.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(ctx, longPause); err != nil {
			t.Fatal(err)
		}
		cancel()
		wg.Wait()
		t.Logf("%d changes", changes)
		s.compareTable(t, cfg.Tables[0], s.speaks.row, "orders_old")
		s.compareTable(t, cfg.Tables[1], "CONCAT_WS('|', id, order_id IS NULL, order_id, what)", "items_old")
		s.compareTable(t, cfg.Tables[2], "CONCAT_WS('|', id, item_id IS NULL, item_id)", "notes_old")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, s.source, "DELETE FROM orders WHERE id BETWEEN 1 AND 50") // cascades as before
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compareTable(t, cfg.Tables[1], "CONCAT_WS('|', id, order_id IS NULL, order_id, what)", "items_old")
		s.compareTable(t, cfg.Tables[2], "CONCAT_WS('|', id, item_id IS NULL, item_id)", "notes_old")
	})
}

func TestAForeignKeyAcrossTheEdgeOfTheJobIsRefused(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 300)
		cfg := family(t, s)
		cfg.Tables = cfg.Tables[:1]
		j, err := migrate.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "items") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTruncateIsDetected(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, s.source, "TRUNCATE TABLE orders")
		if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("Cutover: %v", err)
		}
		if err := j.Run(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestATruncateEndsARunnerThatFollowsAndNothingIsNoted(t *testing.T) {
	for _, change := range []string{"TRUNCATE TABLE orders", "ALTER TABLE orders DROP COLUMN note"} {
		onShopServers(t, func(t *testing.T, s *migrationShop) {
			s.fill(t, 100)
			j := s.job(t, "id")
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			following := make(chan error, 1)
			go func() { following <- j.Follow(t.Context()) }()
			database.Exec(t, s.source, change)
			if err := <-following; !errors.Is(err, migrate.ErrChanged) {
				t.Errorf("%s: Follow: %v", change, err)
			}
			if _, err := j.Verify(t.Context()); !errors.Is(err, migrate.ErrChanged) {
				t.Errorf("%s: Verify: %v", change, err)
			}
			if noted := database.Texts(t, s.source, "SELECT id FROM shardid_log_orders"); len(noted) > 0 {
				t.Errorf("%s: %d entries were noted", change, len(noted))
			}
		})
	}
}

func TestATruncateOfAShardIsDetected(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 400)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.truncated(t, "Verify, Cutover", func() []error {
			_, verify := j.Verify(t.Context())
			_, cutover := j.Cutover(t.Context(), longPause)
			return []error{verify, cutover}
		})
		if err := errors.Join(j.Abort(t.Context()), j.Run(t.Context())); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		following := make(chan error, 1)
		go func() { following <- j.Follow(t.Context()) }()
		s.truncated(t, "Follow, Verify, Rollback", func() []error {
			follow := <-following
			_, verify := j.Verify(t.Context())
			_, rollback := j.Rollback(t.Context(), longPause)
			return []error{follow, verify, rollback}
		})
		// As the runbook says: the rows are on the source.
		for _, row := range database.Texts(t, s.source, "SELECT CONCAT_WS(',', id, user_id, QUOTE(code), QUOTE(note), total, weight, QUOTE(made)) FROM orders_old WHERE id & 3 = 1") {
			database.Exec(t, s.shards["b"], "INSERT INTO orders_01 VALUES ("+row+")")
		}
		database.Exec(t, s.source, "DELETE FROM shardid_target WHERE job = 'orders' AND place = 'b/orders_01'")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders", "_sealed")
	})
}

// truncated fails unless each of the errors says that the shard was truncated.
func (s *migrationShop) truncated(t *testing.T, calls string, do func() []error) {
	t.Helper()
	database.Exec(t, s.shards["b"], "TRUNCATE TABLE orders_01")
	for i, err := range do() {
		if !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "orders_01 on b") {
			t.Errorf("%d of %s: %v", i, calls, err)
		}
	}
}

func TestOfTwoJobsThatBeginAtOnceOneGetsTheTable(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		before := s.job(t, "id")
		if err := before.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := before.Abort(t.Context()); err != nil { // the shards stay
			t.Fatal(err)
		}
		results := make(chan error, 2)
		for _, name := range []string{"first", "second"} {
			cfg := s.config(t, "id")
			cfg.Name = name
			j, err := migrate.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			go func() { results <- j.Run(t.Context()) }()
		}
		a, b := <-results, <-results
		if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), migrate.ErrNotReady) {
			t.Errorf("the jobs ended with %v and %v", a, b)
		}
		if jobs := database.Texts(t, s.source, "SELECT job FROM shardid_job"); len(jobs) != 1 {
			t.Errorf("the source has the jobs %v", jobs)
		}
		if triggers := database.Texts(t, s.source, "SELECT name FROM ("+s.speaks.triggers+") t WHERE name NOT LIKE CONCAT('shardid_', (SELECT job FROM shardid_job), '_%')"); len(triggers) > 0 {
			t.Errorf("the other job left the triggers %v", triggers)
		}
	})
}

func TestOfTwoSourcesThatBeginAtOnceOneGetsTheShards(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		other := &migrationShop{speaks: s.speaks, servers: s.servers, source: s.servers[1].Open(t, "elsewhere"), shards: s.shards}
		database.Exec(t, other.source, s.speaks.table)
		database.Exec(t, other.source, "INSERT INTO orders (user_id, note) VALUES (1, 'of the other source'), (2, ''), (3, ''), (4, '')")
		type outcome struct {
			of  *migrationShop
			err error
		}
		results := make(chan outcome, 2)
		for _, of := range []*migrationShop{s, other} {
			j := of.job(t, "id")
			go func() { results <- outcome{of, j.Run(t.Context())} }()
		}
		a, b := <-results, <-results
		if b.err == nil {
			a, b = b, a
		}
		if a.err != nil || !errors.Is(b.err, migrate.ErrNotReady) {
			t.Fatalf("the jobs ended with %v and %v", a.err, b.err)
		}
		if triggers := database.Texts(t, b.of.source, s.speaks.triggers); len(triggers) > 0 {
			t.Errorf("the refused job left the triggers %v", triggers)
		}
		if _, err := a.of.job(t, "id").Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		a.of.compare(t, "id", "orders_old", "")
	})
}

func TestAPreparedTransactionKeepsTheCutoverFromHappening(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn, err := s.source.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"XA START 'late'", "UPDATE orders SET note = 'late' WHERE id = 1", "XA END 'late'", "XA PREPARE 'late'"} {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // its client is gone for good
		if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "XA RECOVER") {
			t.Errorf("got %v", err)
		}
	})
}

func TestARunnerWhoseLockWasLostIsFenced(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		leading, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		zombie := s.job(t, "id", func(c *migrate.Config) {
			c.Copiers = 1
			c.Observe = func(step migrate.Step) {
				if step.Name == migrate.StepSnapshot {
					once.Do(func() { close(leading); <-goOn })
				}
			}
		})
		ended := make(chan error, 1)
		go func() { ended <- zombie.Run(t.Context()) }()
		<-leading
		if err := s.job(t, "id").Run(t.Context()); !errors.Is(err, migrate.ErrLocked) {
			t.Fatalf("a second runner: %v", err)
		}
		var holder int64
		err := s.source.QueryRowContext(t.Context(), s.speaks.leads).Scan(&holder)
		if err != nil {
			t.Fatal(err)
		}
		database.Exec(t, s.source, fmt.Sprintf(s.speaks.kills, holder))
		next := s.job(t, "id")
		for errors.Is(next.Run(t.Context()), migrate.ErrLocked) { // until the server has noticed
			continue
		}
		database.Exec(t, s.source, "UPDATE orders SET note = 'after the zombie read it'")
		close(goOn)
		if err := <-ended; !errors.Is(err, migrate.ErrFenced) {
			t.Errorf("the zombie ended with %v", err)
		}
		if err := next.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders", "")
	})
}

func TestASettingOfTheSessionThatBreaksACopyDoesNotReachIt(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		for _, setting := range []string{"sql_mode = ''", "time_zone = '+09:00'"} {
			database.Exec(t, s.source, "SET GLOBAL "+setting)
		}
		broken := s.source.Driver()
		db := sql.OpenDB(settingConnector{broken, s.servers[0].DSN("shop"), []string{"SET autocommit = 0, sql_select_limit = 7, time_zone = '-05:00', sql_mode = 'ANSI_QUOTES', foreign_key_checks = 1, completion_type = 'RELEASE'", "SET NAMES latin1"}})
		defer func() { _ = db.Close() }()
		j := s.job(t, "id", func(c *migrate.Config) { c.Source = db })
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders", "")
	})
}

// settingConnector opens connections with settings that a proxy has changed.
type settingConnector struct {
	of       driver.Driver
	dsn      string
	settings []string
}

func (c settingConnector) Driver() driver.Driver { return c.of }

func (c settingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.of.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	for _, text := range c.settings {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, text, nil); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

func TestAServerKilledInTheMiddleLosesNothing(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 3000)
		stop := s.writers(t, 1)
		random := rand.New(rand.NewPCG(9, 9))
		steps := make(chan struct{})
		killed := 0
		j := s.job(t, "id", func(c *migrate.Config) {
			c.ChunkRows = 50
			c.Observe = func(migrate.Step) {
				select {
				case steps <- struct{}{}:
				default:
				}
			}
		})
		ended := make(chan error, 1)
		go func() { ended <- j.Run(t.Context()) }()
		for running := true; running && killed < 5; {
			for range random.IntN(20) + 1 {
				select {
				case <-steps:
				case err := <-ended:
					ended <- err
					running = false
				}
			}
			victim := s.servers[1-killed%2] // the source is on the first one
			victim.Kill()
			if err := victim.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			killed++
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		stop()
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("killed %d times", killed)
		s.compare(t, "id", "orders", "")
	})
}

// A switch of a killed runner continues in the server.
func TestATableThatIsRenamedMeanwhileIsNotMisread(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 10)
		job := s.job(t, "id")
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		names := [2]string{"orders", "orders_old"}
		for i := range 200 {
			var renaming sync.WaitGroup
			renaming.Go(func() {
				if _, err := s.source.ExecContext(t.Context(), "ALTER TABLE "+names[i%2]+" RENAME TO "+names[1-i%2]); err != nil {
					t.Error(err)
				}
			})
			_, err := job.Progress(t.Context())
			renaming.Wait()
			if errors.Is(err, migrate.ErrUnsupported) || errors.Is(err, migrate.ErrConfig) {
				t.Fatal(err)
			}
		}
	})
}
