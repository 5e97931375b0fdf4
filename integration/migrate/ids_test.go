// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// sales are invoices with lines with tags on the source of a shop: only invoices
// know their customer, by which all of them are sharded.
type sales struct {
	*migrationShop

	ids migrate.IDs
	job string
	// turns are given to the writers with each step of a runner: on a busy machine
	// they would be faster than any runner can follow.
	turns chan struct{}
}

func (s *sales) fillSource(t *testing.T, rows int) {
	t.Helper()
	for _, text := range []string{
		"DROP TABLE IF EXISTS tags, `lines`, invoices, tags_old, lines_old, invoices_old",
		`CREATE TABLE invoices (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL, code VARCHAR(20) NULL, twin_id INT UNSIGNED NULL,
			UNIQUE KEY code (code), CONSTRAINT twin FOREIGN KEY (twin_id) REFERENCES invoices (id))`,
		"CREATE TABLE `lines` (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'the id', invoice_id INT UNSIGNED NOT NULL COMMENT 'int', what VARCHAR(20)," +
			" CONSTRAINT line_invoice FOREIGN KEY (invoice_id) REFERENCES invoices (id) ON DELETE CASCADE)",
		"CREATE TABLE tags (id MEDIUMINT NOT NULL AUTO_INCREMENT PRIMARY KEY, line_id INT NOT NULL, invoice INT NOT NULL DEFAULT 0, what VARCHAR(20)," +
			" CONSTRAINT tag_line FOREIGN KEY (line_id) REFERENCES `lines` (id) ON DELETE CASCADE ON UPDATE CASCADE)",
	} {
		database.Exec(t, s.source, text)
	}
	var invoices, lines, tags []string
	for i := 1; i <= rows; i++ {
		invoices = append(invoices, fmt.Sprintf("(%d,%d,'c%d',NULL)", i, i%13, i))
		lines = append(lines, fmt.Sprintf("(%d,%d,'line')", i, (i+1)/2))
		tags = append(tags, fmt.Sprintf("(%d,%d,%d,'tag')", i, (i+1)/2, i%2*i))
	}
	database.Exec(t, s.source, "INSERT INTO invoices VALUES "+strings.Join(invoices, ","))
	database.Exec(t, s.source, "INSERT INTO `lines` VALUES "+strings.Join(lines, ","))
	database.Exec(t, s.source, "INSERT INTO tags VALUES "+strings.Join(tags, ","))
	database.Exec(t, s.source, "UPDATE invoices SET twin_id = id DIV 3 WHERE id % 3 = 0")
}

func (s *sales) config(t testing.TB) migrate.Config {
	t.Helper()
	table := func(name, via string, references ...migrate.Reference) migrate.Table {
		m, err := sharding.Spread([]string{"a", "b"}, 4, s.job+"_"+name+"_%02d")
		if err != nil {
			t.Fatal(err)
		}
		return migrate.Table{Table: sharding.Table{Name: name, Key: "customer_id", Rule: sharding.Low(2), Map: m}, Via: via, References: references}
	}
	return migrate.Config{
		Name: s.job, Source: s.source, Shards: s.shards, ChunkRows: 40, IDs: s.ids,
		Tables: []migrate.Table{
			table("invoices", ""), table("lines", "invoice_id"),
			table("tags", "line_id", migrate.Reference{Column: "invoice", Table: "invoices"}),
		},
	}
}

func (s *sales) migration(t testing.TB, change ...func(*migrate.Config)) *migrate.Job {
	t.Helper()
	cfg := s.config(t)
	cfg.Observe = func(migrate.Step) { s.giveTurns() }
	for _, c := range change {
		c(&cfg)
	}
	j, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (s *sales) giveTurns() {
	for range 3 {
		select {
		case s.turns <- struct{}{}:
		default: // the writers have enough to do
		}
	}
}

// salesTables are the columns to compare: the id, two references with the tables
// they refer to, the rest, and the sharding key on the source.
var salesTables = []struct {
	name, rest, key string
	refers          [2]string
	to              [2]int
}{
	{"invoices", "IFNULL(code, 'NULL'), customer_id", "t.customer_id", [2]string{"IFNULL(twin_id, 0)", "0"}, [2]int{0, 0}},
	{"lines", "what", "(SELECT customer_id FROM invoices%[1]s i WHERE i.id = t.invoice_id)", [2]string{"invoice_id", "0"}, [2]int{0, 0}},
	{"tags", "what", "(SELECT customer_id FROM invoices%[1]s i JOIN lines%[1]s l ON i.id = l.invoice_id WHERE l.id = t.line_id)", [2]string{"line_id", "invoice"}, [2]int{1, 0}},
}

// newID is the SQL of what an id of a table, by its place in the job, is to have
// become on the source's server.
func (s *sales) newID(tbl int, old string) string {
	switch s.ids.String() {
	case "kept":
		return old
	case "map table":
		return fmt.Sprintf("IF(%s = 0, 0, (SELECT new FROM shardid_ids_%s m WHERE m.tbl = %d AND m.old = %[1]s))", old, s.job, tbl)
	}
	return fmt.Sprintf("IF(%s = 0, 0, %[1]s * 10 + 3)", old)
}

// compare fails unless the shards have exactly the rows of the source, with new
// ids, where they belong.
func (s *sales) compare(t *testing.T, sourceSuffix, shardSuffix string) {
	t.Helper()
	for ord, table := range salesTables {
		key := strings.ReplaceAll(table.key, "%[1]s", sourceSuffix)
		key = strings.ReplaceAll(key, "JOIN lines"+sourceSuffix, "JOIN `lines"+sourceSuffix+"`")
		want := database.Texts(t, s.source, fmt.Sprintf("SELECT CONCAT_WS('|', %s, %s, %s, %s, 'on', %s & 3) FROM `%s%s` t",
			s.newID(ord, "t.id"), s.newID(table.to[0], table.refers[0]), s.newID(table.to[1], table.refers[1]), table.rest, key, table.name, sourceSuffix))
		var got []string
		for slot := range 4 {
			got = append(got, database.Texts(t, s.shards[[]string{"a", "b"}[slot%2]], fmt.Sprintf("SELECT CONCAT_WS('|', id, %s, %s, %s, 'on', %d) FROM %[5]s_%[6]s_%02[4]d%[7]s",
				table.refers[0], table.refers[1], table.rest, slot, s.job, table.name, shardSuffix))...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: %d rows on the source, %d on the shards", table.name, len(want), len(got))
			reportMissing(t, "only on the source", want, got)
			reportMissing(t, "only on a shard", got, want)
		}
	}
}

// write changes the source until stop is called.
func (s *sales) write(t *testing.T) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var done atomic.Int64
	for range 2 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(rand.Uint64(), 3))
			for {
				select {
				case <-s.turns:
				case <-ctx.Done():
					return
				}
				if _, err := s.source.ExecContext(context.Background(), salesChange(random)); err == nil {
					done.Add(1)
				}
			}
		})
	}
	return sync.OnceValue(func() int64 {
		cancel()
		wg.Wait()
		return done.Load()
	})
}

func salesChange(random *rand.Rand) string {
	id, other := random.IntN(200)+1, random.IntN(200)+1
	statements := []string{
		fmt.Sprintf("INSERT INTO invoices (customer_id, code, twin_id) VALUES (%d, 'n%d', %d)", other%13, random.IntN(1000), id),
		fmt.Sprintf("INSERT INTO `lines` (invoice_id, what) VALUES (%d, 'new')", id),
		fmt.Sprintf("INSERT INTO tags (line_id, invoice, what) VALUES (%d, %d, 'new')", id, other),
		fmt.Sprintf("UPDATE invoices SET customer_id = %d WHERE id BETWEEN %d AND %d", other%13, id, id+2),
		fmt.Sprintf("UPDATE `lines` SET invoice_id = %d WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE `lines` SET id = %d WHERE id = %d", 1000+random.IntN(1000), id),
		fmt.Sprintf("UPDATE tags SET line_id = %d, what = 'moved' WHERE id = %d", other, id),
		fmt.Sprintf("DELETE FROM invoices WHERE id = %d", id),
		fmt.Sprintf("DELETE FROM `lines` WHERE id = %d", id),
		// No REPLACE: MySQL 9.7 leaves the grandchildren of the rows that it removes.
		fmt.Sprintf("INSERT INTO invoices (id, customer_id, code) VALUES (%d, 5, 'c%d') ON DUPLICATE KEY UPDATE customer_id = customer_id + 1", id, other),
	}
	return statements[random.IntN(len(statements))]
}

// numbering is a way to number rows, with steps at which runners are cut off.
type numbering struct {
	name  string
	ids   migrate.IDs
	steps []string
}

func numberings() []numbering {
	var n atomic.Int64
	n.Store(1 << 50)
	next := func(context.Context) (int64, error) { return n.Add(7), nil }
	return []numbering{
		{"kept", migrate.KeepIDs(), []string{migrate.StepApplied}},
		{"affine", migrate.Affine(10, 3), []string{migrate.StepStored, migrate.StepRenamed}},
		{"drawn", migrate.MapTable(keygen.Func[int64](next)), []string{migrate.StepStored, migrate.StepDrained, migrate.StepSealed}},
	}
}

func TestChildrenAndTheirIDsFollowTheirParents(t *testing.T) {
	onShopServers(t, func(t *testing.T, shop *migrationShop) {
		for _, n := range numberings() {
			name := n.name
			s := &sales{shop, n.ids, name, make(chan struct{}, 20)}
			s.fillSource(t, 200)
			stop := s.write(t)
			for _, step := range n.steps {
				s.cutOff(t, step)
			}
			j := s.migration(t)
			if _, err := j.Rollback(t.Context(), longPause); err != nil && !errors.Is(err, migrate.ErrPhase) {
				t.Fatal(name, err)
			}
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(name, err)
			}
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(name, err)
			}
			t.Log(name, stop(), "changes")
			s.compare(t, "_old", "")
			s.andBack(t, j)
		}
	})
}

// cutOff goes there and back, and ends at a step.
func (s *sales) cutOff(t *testing.T, step string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	j := s.migration(t, func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			s.giveTurns()
			if at.Name == step {
				once.Do(cancel)
			}
		}
	})
	// What one call cannot do because another was cut off, the next one does.
	if err := j.Run(ctx); err != nil {
		return
	}
	if _, err := j.Cutover(ctx, longPause); err != nil {
		return
	}
	if _, err := j.Rollback(ctx, longPause); err != nil && ctx.Err() == nil {
		t.Errorf("%s: %v", step, err)
	}
}

// andBack changes the shards, and expects it on the source.
func (s *sales) andBack(t *testing.T, j *migrate.Job) {
	t.Helper()
	made := map[string]int64{"kept": 70_001, "affine": 700_013, "map table": 1 << 40}[s.ids.String()]
	if made == 0 {
		made = 700_013
	}
	database.Exec(t, s.shards["b"], fmt.Sprintf("INSERT INTO %s_invoices_01 (id, customer_id, code) VALUES (%d, 1, 'born')", s.job, made))
	database.Exec(t, s.shards["b"], fmt.Sprintf("INSERT INTO %s_lines_01 (id, invoice_id, what) VALUES (%d, %[2]d, 'born')", s.job, made))
	database.Exec(t, s.shards["b"], fmt.Sprintf("UPDATE %s_lines_01 SET what = 'changed'", s.job))
	database.Exec(t, s.shards["a"], fmt.Sprintf("DELETE FROM %s_tags_00", s.job))
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(s.job, err)
	}
	if got := database.Texts(t, s.source, "SELECT COUNT(*) FROM `lines` l JOIN invoices i ON i.id = l.invoice_id WHERE l.what = 'changed' AND i.code = 'born'"); got[0] != "1" {
		t.Errorf("%s: what was born on a shard came back %s times", s.job, got[0])
	}
	database.Exec(t, s.source, "INSERT INTO invoices (customer_id, code) VALUES (3, 'next')")
	database.Exec(t, s.source, "UPDATE invoices SET customer_id = customer_id + 1 WHERE code = 'born'")
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(s.job, err)
	}
	if v, err := j.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%s: %+v, %v", s.job, v, err)
	}
	s.compare(t, "", "_sealed")
	if err := j.Abort(t.Context()); err != nil {
		t.Fatal(s.job, err)
	}
}

// Ids go up to the end of their type, and beyond it on the shards.
func TestIDsAndReferencesBecomeBigOnes(t *testing.T) {
	onShopServers(t, func(t *testing.T, shop *migrationShop) {
		s := &sales{shop, migrate.Affine(10, 3), "wide", make(chan struct{}, 1)}
		s.fillSource(t, 10)
		database.Exec(t, s.source, "INSERT INTO invoices VALUES (4294967295, 3, 'last', 7)")
		database.Exec(t, s.source, "INSERT INTO `lines` VALUES (2147483647, 4294967295, 'last')")
		j := s.migration(t)
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := database.Texts(t, s.shards["b"], "SELECT CONCAT_WS(' ', COLUMN_NAME, DATA_TYPE, COLUMN_TYPE LIKE '%unsigned%', IS_NULLABLE, EXTRA, COLUMN_COMMENT) FROM information_schema.COLUMNS"+
			" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('wide_invoices_01', 'wide_lines_01', 'wide_tags_01') AND DATA_TYPE LIKE '%int' ORDER BY TABLE_NAME, ORDINAL_POSITION")
		want := []string{
			"id bigint 0 NO  ", "customer_id int 0 NO  ", "twin_id bigint 0 YES  ",
			"id bigint 0 NO  the id", "invoice_id bigint 0 NO  int",
			"id bigint 0 NO  ", "line_id bigint 0 NO  ", "invoice bigint 0 NO  ",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if got := database.Texts(t, s.shards["b"], "SELECT CONCAT(id, ' ', invoice_id) FROM wide_lines_03"); !slices.Contains(got, "21474836473 42949672953") {
			t.Errorf("got %q", got)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "_old", "")
	})
}

// A row is inserted while a statement waits for it that moves several parents: it
// is there by then, but was not when the statement began.
func TestAChildInsertedWhileItsParentMovesGoesAlong(t *testing.T) {
	onShopServers(t, func(t *testing.T, shop *migrationShop) {
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			s := &sales{shop, migrate.KeepIDs(), fmt.Sprintf("along%d", isolation), make(chan struct{}, 1)}
			s.fillSource(t, 10)
			j := s.migration(t)
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			inserting, err := s.source.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inserting.ExecContext(t.Context(), "INSERT INTO `lines` (invoice_id, what) VALUES (5, 'meanwhile')"); err != nil {
				t.Fatal(err)
			}
			moved := make(chan error, 1)
			go func() { moved <- s.move(isolation) }()
			s.awaitBlocked(t)
			if err := inserting.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-moved; err != nil {
				t.Fatal(err)
			}
			if got := database.Texts(t, s.source, "SELECT COUNT(*) FROM shardid_log_"+s.job+" WHERE tbl = 1 AND id = (SELECT id FROM `lines` WHERE what = 'meanwhile')"); got[0] != "2" {
				t.Errorf("isolation %d: %s entries, one of the insert and one of the move are needed", isolation, got[0])
			}
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.compare(t, "", "")
			if err := j.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (s *sales) move(isolation sql.IsolationLevel) error {
	tx, err := s.source.BeginTx(context.Background(), &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(context.Background(), "UPDATE invoices SET customer_id = customer_id + 1 WHERE id IN (3, 5)"); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// awaitBlocked waits until a transaction waits for a lock. The server counts those
// anew for each query, as it does not for INNODB_TRX.
func (s *sales) awaitBlocked(t *testing.T) {
	t.Helper()
	testwait.Until(t, "a transaction waits for a lock", func() bool {
		var name, waits string
		if err := s.source.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &waits); err != nil {
			t.Fatal(err)
		}
		return waits != "0"
	})
}
