// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
	"github.com/shardid/shardid/sqlxhook"
)

// slotShop has orders on two servers; the map begins with all slots on the first.
type slotShop struct {
	home   *sql.DB
	dbs    sharding.DBs
	dsns   []string
	shards []sharding.Target
	// lookups are those of orders. Writers that route by themselves would not keep them, so
	// there are none then.
	lookups []sharding.Lookup
}

const slotCount = 8

type slotOrder struct {
	ID     int64  `db:"id"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

func (slotOrder) TableName() string { return "orders" }

func onSlotServers(t *testing.T, rows int, test func(t *testing.T, s *slotShop)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, newSlotShop(t, server.RunMariaDB(t), server.RunMariaDB(t), rows)) })
	t.Run("MySQL", func(t *testing.T) { test(t, newSlotShop(t, server.RunMySQL(t), server.RunMySQL(t), rows)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newSlotShop(t, server.RunPostgres(t), server.RunPostgres(t), rows)) })
}

// slotOrders is its table on the first server.
var slotOrders = map[string][]string{
	"mysql": {"CREATE TABLE orders_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL, made DATETIME(6) NULL, KEY by_user (user_id))"},
	"pgx": {"CREATE TABLE orders_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL, made TIMESTAMP NULL)",
		"CREATE INDEX by_user ON orders_0 (user_id)"},
}

func newSlotShop(t *testing.T, first, second database.Server, rows int) *slotShop {
	t.Helper()
	s := slotShopOf(first.Open(t, "home"), first.Open(t, "shop_a"), second.Open(t, "shop_b"))
	s.dsns = []string{first.DSN("home"), first.DSN("shop_a"), second.DSN("shop_b")}
	for _, statement := range slotOrders[database.DriverName(s.home)] {
		database.Exec(t, s.dbs["a"], statement)
	}
	for from := 1; from <= rows; from += 1000 {
		var values []string
		for id := from; id < from+1000 && id <= rows; id++ {
			values = append(values, fmt.Sprintf("(%d, %d, 'first', CURRENT_TIMESTAMP)", id, id))
		}
		database.Exec(t, s.dbs["a"], "INSERT INTO orders_0 VALUES "+strings.Join(values, ","))
	}
	_, store := s.process(t)
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func slotShopOf(home, a, b *sql.DB) *slotShop {
	return &slotShop{
		home: home, dbs: sharding.DBs{"a": a, "b": b},
		shards: []sharding.Target{{DB: "a", Table: "orders_0"}, {DB: "b", Table: "orders_1"}},
	}
}

// process has the pools and the router of one process of the application.
func (s *slotShop) process(t *testing.T) (*sharding.Router, *slotstore.Store) {
	t.Helper()
	return s.processBy(t, sharding.Alt{Column: "id", Rule: sharding.Low(3)})
}

// processBy is process; the columns of also lead to shards, too.
func (s *slotShop) processBy(t *testing.T, also ...sharding.Alt) (*sharding.Router, *slotstore.Store) {
	t.Helper()
	place := make([]sharding.Target, slotCount)
	for i := range place {
		place[i] = s.shards[0]
	}
	m, err := sharding.MapOf(place...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(s.dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: m, Also: also, Lookups: s.lookups})
	if err != nil {
		t.Fatal(err)
	}
	store, err := slotstore.New(t.Context(), slotstore.Config{Name: "shop", DB: s.home, Router: r, Term: time.Second, Patience: time.Minute, Shards: map[string][]sharding.Target{"orders": s.shards}})
	if err != nil {
		t.Fatal(err)
	}
	return r, store
}

func (s *slotShop) mover(t *testing.T, observe func(rebalance.Step)) *rebalance.Mover {
	t.Helper()
	_, store := s.process(t)
	m, err := rebalance.NewMover(rebalance.MoverConfig{Store: store, ChunkRows: 200, Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *slotShop) moves(from, to int, slots ...sharding.Slot) []sharding.Move {
	var moves []sharding.Move
	for _, slot := range slots {
		moves = append(moves, sharding.Move{Slot: slot, From: s.shards[from], To: s.shards[to]})
	}
	return moves
}

// slotApp is one way in which applications write.
type slotApp interface {
	insert(ctx context.Context, o slotOrder) error
	update(ctx context.Context, o slotOrder) (int64, error)
	remove(ctx context.Context, o slotOrder) (int64, error)
}

type gormSlotApp struct{ db *gorm.DB }

func (a gormSlotApp) insert(ctx context.Context, o slotOrder) error {
	return sharding.SlotMoving(a.db.WithContext(ctx).Create(&o).Error)
}

func (a gormSlotApp) update(ctx context.Context, o slotOrder) (int64, error) {
	r := a.db.WithContext(ctx).Model(&slotOrder{}).Where("user_id = ? AND id = ?", o.UserID, o.ID).Update("note", o.Note)
	return r.RowsAffected, sharding.SlotMoving(r.Error)
}

func (a gormSlotApp) remove(ctx context.Context, o slotOrder) (int64, error) {
	r := a.db.WithContext(ctx).Where("user_id = ? AND id = ?", o.UserID, o.ID).Delete(&slotOrder{})
	return r.RowsAffected, sharding.SlotMoving(r.Error)
}

type sqlxSlotApp struct {
	hook *sqlxhook.Hook
	db   *sqlx.DB
}

func (a sqlxSlotApp) do(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := a.db.ExecContext(ctx, a.db.Rebind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (a sqlxSlotApp) insert(ctx context.Context, o slotOrder) error {
	_, err := a.hook.Insert(ctx, a.db, "orders", []slotOrder{o})
	return err
}

func (a sqlxSlotApp) update(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, "UPDATE orders SET note = ? WHERE user_id = ? AND id = ?", o.Note, o.UserID, o.ID)
}

func (a sqlxSlotApp) remove(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, "DELETE FROM orders WHERE user_id = ? AND id = ?", o.UserID, o.ID)
}

// idSlotApp writes by ids alone, so that all shards are searched for a row before each write.
type idSlotApp struct{ sqlxSlotApp }

func (a idSlotApp) update(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, "UPDATE orders SET note = ? WHERE id = ?", o.Note, o.ID)
}

func (a idSlotApp) remove(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, "DELETE FROM orders WHERE id = ?", o.ID)
}

// note returns the note of the row with an id, "" if there is none. Each shard reads its own rows while slots move.
func (a idSlotApp) note(ctx context.Context, id int64) (note string, err error) {
	var rows int
	err = a.db.QueryRowContext(ctx, a.db.Rebind("SELECT COUNT(*), COALESCE(MAX(note), '') FROM orders WHERE id = ?"), id).Scan(&rows, &note)
	if rows > 1 {
		return "", fmt.Errorf("row %d is returned %d times", id, rows)
	}
	return note, err
}

// plainSlotApp asks the router and writes what it wants by itself.
type plainSlotApp struct{ router *sharding.Router }

func (a plainSlotApp) do(ctx context.Context, o slotOrder, query string) (int64, error) {
	at, err := a.router.Target("orders", o.UserID)
	if err != nil {
		return 0, err
	}
	result, err := a.router.DB(at.DB).ExecContext(ctx, fmt.Sprintf(query, at.Table, o.ID, o.UserID, o.Note))
	if err != nil {
		return 0, sharding.SlotMoving(err)
	}
	return result.RowsAffected()
}

func (a plainSlotApp) insert(ctx context.Context, o slotOrder) error {
	_, err := a.do(ctx, o, "INSERT INTO %s (id, user_id, note) VALUES (%d, %d, '%s')")
	return err
}

func (a plainSlotApp) update(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, o, "UPDATE %[1]s SET note = '%[4]s' WHERE id = %[2]d")
}

func (a plainSlotApp) remove(ctx context.Context, o slotOrder) (int64, error) {
	return a.do(ctx, o, "DELETE FROM %[1]s WHERE id = %[2]d")
}

// apps are one process for each way.
func (s *slotShop) apps(t *testing.T) (all []slotApp, routers []*sharding.Router, stop func()) {
	t.Helper()
	var followers []*slotstore.Follower
	for i := range 4 {
		r, store := s.process(t)
		if i == 2 { // for idSlotApp
			r, store = s.processBy(t)
		}
		f, err := store.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		routers, followers = append(routers, r), append(followers, f)
	}
	db := database.OpenGORM(t, s.home, true)
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: routers[0]})); err != nil {
		t.Fatal(err)
	}
	hook, err := sqlxhook.New(sqlxhook.Config{Router: routers[1]})
	if err != nil {
		t.Fatal(err)
	}
	all = []slotApp{
		gormSlotApp{db}, sqlxSlotApp{hook, database.RoutedSqlx(t, routers[1], s.home)}, idSlotApp{sqlxSlotApp{hook, database.RoutedSqlx(t, routers[2], s.home)}},
	}
	if s.lookups == nil {
		all = append(all, plainSlotApp{routers[3]})
	}
	return all, routers, func() {
		for _, f := range followers {
			_ = f.Close(context.Background())
		}
	}
}

// slotWriter stores the expected content of its rows; "" means deleted.
type slotWriter struct {
	app    slotApp
	router *sharding.Router
	random *rand.Rand
	first  int64
	known  map[int64]string
	done   int
	reads  int // while slots moved
}

// look reads a row as the application would, if it has a way that is not a write, and compares it with what was written.
func (w *slotWriter) look(ctx context.Context, id int64) error {
	app, ok := w.app.(idSlotApp)
	before, _ := w.router.Table("orders")
	if !ok || len(before.Map.Shared()) == 0 {
		return nil
	}
	note, err := app.note(ctx, id)
	if err != nil {
		return err
	}
	if w.reads++; note != w.known[id] {
		return fmt.Errorf("row %d has the note %q, and not %q", id, note, w.known[id])
	}
	return nil
}

func (w *slotWriter) change(ctx context.Context) error {
	id := w.first + w.random.Int64N(60)
	if err := w.look(ctx, id); err != nil {
		return err
	}
	o := slotOrder{ID: id, UserID: id, Note: fmt.Sprint("v", w.first+int64(w.done)*1_000_000)}
	before, _ := w.router.Table("orders")
	n := int64(1)
	var err error
	switch {
	case w.known[id] == "":
		err = w.app.insert(ctx, o)
	case w.random.IntN(4) == 0:
		o.Note = ""
		n, err = w.app.remove(ctx, o)
	default:
		n, err = w.app.update(ctx, o)
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("row %d is not where the application looks for it", id)
		// A statement that waited for longer than a lease's renewal finds nothing.
		if _, stale := w.router.Target("orders", id); stale != nil {
			err = stale
		}
		if now, _ := w.router.Table("orders"); now.Map.Version() != before.Map.Version() {
			err = fmt.Errorf("%w: %w", sharding.ErrStaleMap, err)
		}
	}
	if err == nil {
		w.known[id] = o.Note
		w.done++
	}
	return err
}

// later reports whether nothing was written and a retry may succeed. A statement waits for its slot by itself, unless the application
// routes it, or it looks for its row in all shards, of which two may have one. MariaDB reports a missing log for
// statements that were prepared before the table had triggers.
func (w *slotWriter) later(err error) bool {
	switch w.app.(type) {
	case gormSlotApp, sqlxSlotApp:
		if errors.Is(err, sharding.ErrSlotMoving) {
			return false
		}
	}
	return later(err)
}

func later(err error) bool {
	return strings.Contains(err.Error(), "Error 1146") && strings.Contains(err.Error(), "shardid_log_slots_") || errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, sharding.ErrStaleMap) || dialect.Contended(err) || strings.Contains(err.Error(), "Error 1205")
}

// writers change rows in every way until stop is called.
func (s *slotShop) writers(t *testing.T) (stop func() []*slotWriter) {
	t.Helper()
	apps, routers, end := s.apps(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var wg sync.WaitGroup
	var all []*slotWriter
	for i, app := range apps {
		w := &slotWriter{app: app, router: routers[i], random: rand.New(rand.NewPCG(uint64(i), 5)), first: int64(100_000 * (i + 1)), known: map[int64]string{}}
		all = append(all, w)
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := w.change(context.Background()); err != nil && !w.later(err) {
					t.Errorf("%T: %v", w.app, err)
					return
				}
				time.Sleep(writersRest())
			}
		})
	}
	return func() []*slotWriter {
		cancel()
		wg.Wait()
		end()
		return all
	}
}

// check fails unless each row exists once, on the shard of the map, with the expected content.
func (s *slotShop) check(t *testing.T, rows int, writers []*slotWriter) {
	t.Helper()
	_, store := s.process(t)
	v, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[int64]string{}
	for shard := range s.shards {
		for id, note := range s.read(t, shard) {
			if _, twice := found[id]; twice {
				t.Errorf("row %d is on both shards", id)
			}
			if is := v.Slots[id&(slotCount-1)]; is.Shard != shard || is.State != slotstore.Active {
				t.Errorf("row %d is on shard %d, and its slot %s on %d", id, shard, is.State, is.Shard)
			}
			found[id] = note
		}
	}
	for _, w := range writers {
		for id, want := range w.known {
			if found[id] != want {
				t.Errorf("%T: row %d holds %q, and %q was acknowledged", w.app, id, found[id], want)
			}
			delete(found, id)
		}
		if w.done == 0 {
			t.Errorf("%T wrote nothing", w.app)
		}
	}
	if len(found) != rows {
		t.Errorf("%d rows that nobody changed, not %d", len(found), rows)
	}
}

func (s *slotShop) read(t *testing.T, shard int) map[int64]string {
	t.Helper()
	rows, err := s.dbs[s.shards[shard].DB].QueryContext(t.Context(), "SELECT id, note FROM "+s.shards[shard].Table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[int64]string{}
	for rows.Next() {
		var id int64
		var note string
		if err := rows.Scan(&id, &note); err != nil {
			t.Fatal(err)
		}
		all[id] = note
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSlotsMoveBetweenTwoServersUnderGORMAndSqlxWriters(t *testing.T) {
	onSlotServers(t, 3000, func(t *testing.T, s *slotShop) {
		stop := s.writers(t)
		m := s.mover(t, nil)
		moved, err := m.Run(t.Context(), s.moves(0, 1, 1, 3, 5, 7)...)
		if err != nil {
			t.Fatal(err)
		}
		back, err := m.Run(t.Context(), s.moves(1, 0, 3)...)
		if err != nil {
			t.Fatal(err)
		}
		writers := stop()
		changes, reads := 0, 0
		for _, w := range writers {
			changes += w.done
			reads += w.reads
		}
		t.Logf("there %+v, back %+v, beside %d changes and %d reads by ids alone", moved, back, changes, reads)
		if reads == 0 {
			t.Error("no row was read by its id alone")
		}
		if moved.Slots != 4 || moved.Rows < 1500 || back.Slots != 1 {
			t.Error("not all slots moved")
		}
		s.check(t, 3000, writers)
	})
}

// moverVar makes a test be a mover: it holds the DSNs.
const moverVar = "SHARDID_TEST_MOVER"

// moveForEver moves slots there and back, printing each step, until it is killed.
func moveForEver(t *testing.T, dsns []string) {
	t.Helper()
	var dbs [3]*sql.DB
	for i, dsn := range dsns {
		var err error
		driver := "mysql"
		if strings.HasPrefix(dsn, "postgres:") {
			driver = "pgx"
		}
		if dbs[i], err = sql.Open(driver, dsn); err != nil {
			t.Fatal(err)
		}
	}
	s := slotShopOf(dbs[0], dbs[1], dbs[2])
	m := s.mover(t, func(step rebalance.Step) { _, _ = fmt.Fprintln(os.Stdout, "step "+step.Name) })
	for {
		for from := range 2 {
			// The killed one's connection may hold its lock for another moment.
			if _, err := m.Run(t.Context(), s.moves(from, 1-from, 2, 3, 7)...); err != nil && !errors.Is(err, rebalance.ErrLocked) {
				t.Fatal(err)
			}
		}
	}
}

// killMover kills a mover at its n-th step of this name, or of any.
func killMover(t *testing.T, s *slotShop, n int, at string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.timeout=120s")
	cmd.Env = append(os.Environ(), moverVar+"="+strings.Join(s.dsns, " "))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	last := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		step, ok := strings.CutPrefix(lines.Text(), "step ")
		if !ok {
			said = append(said, lines.Text())
			continue
		}
		if last = step; at == "" || at == step {
			if n--; n <= 0 {
				_ = cmd.Process.Kill()
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the mover ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return last
}

func TestASlotMoveSurvivesKillsOfItsMover(t *testing.T) {
	if dsns := os.Getenv(moverVar); dsns != "" {
		moveForEver(t, strings.Fields(dsns))
	}
	onSlotServers(t, 1500, func(t *testing.T, s *slotShop) {
		stop := s.writers(t)
		for _, step := range []string{
			rebalance.StepLeading, rebalance.StepAnnounced, rebalance.StepBound, rebalance.StepSnapshot, rebalance.StepStored, rebalance.StepApplied, rebalance.StepAcked,
			rebalance.StepCompared, rebalance.StepFenced, rebalance.StepDrained, rebalance.StepSwitched, rebalance.StepSwept, rebalance.StepFinished,
		} {
			killMover(t, s, 1, step)
		}
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		met := map[string]int{}
		for range runnerKills() / 4 {
			met[killMover(t, s, 1+random.IntN(60), "")]++
		}
		t.Logf("seed %d, killed after %v", seed, met)
		s.finish(t)
		s.check(t, 1500, stop())
	})
}

// finish waits for the last killed mover's connection to go, and completes what
// it began.
func (s *slotShop) finish(t *testing.T) {
	t.Helper()
	for {
		_, err := s.mover(t, nil).Run(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, rebalance.ErrLocked) {
			t.Fatal(err)
		}
	}
}

// A program is killed after it has prepared its part of a transaction, and what commits it comes late. MariaDB releases shared locks
// when it prepares, and MySQL forgets them when it is killed, so that the lock of the fence does not keep the slot from closing.
func TestTheRowsOfAPreparedTransactionMoveWithTheirSlots(t *testing.T) {
	for name, c := range map[string]struct {
		at     string // the step at which it is prepared
		isDown bool   // the server is killed then, too
		run    func(t *testing.T) database.Server
	}{
		"MariaDB, before the log has its changes": {rebalance.StepLeading, false, func(t *testing.T) database.Server { return server.RunMariaDB(t) }},
		"MariaDB":       {rebalance.StepStored, false, func(t *testing.T) database.Server { return server.RunMariaDB(t) }},
		"MySQL, killed": {rebalance.StepStored, true, func(t *testing.T) database.Server { return server.RunMySQL(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := c.run(t)
			s := newSlotShop(t, first, first, 100)
			begun := false
			short, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := s.mover(t, func(step rebalance.Step) {
				if step.Name != c.at || begun {
					return
				}
				begun = true
				defer func() { time.AfterFunc(3*time.Second, cancel) }()
				conn, err := s.dbs["a"].Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"XA START 'late'", "INSERT INTO orders_0 (id, user_id, note) VALUES (1003, 1003, 'late')", "XA END 'late'", "XA PREPARE 'late'"} {
					if _, err := conn.ExecContext(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
				_ = conn.Close()
				if c.isDown {
					killed := first.(interface {
						Kill()
						Start(ctx context.Context) error
					})
					killed.Kill()
					if err := killed.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
			for isBack := false; !isBack; { // after a failure of the server the mover is started again
				moved, err := m.Run(short, s.moves(0, 1, 3)...)
				isBack = !c.isDown || err == nil || short.Err() != nil
				if isBack && !errors.Is(err, context.Canceled) || !isBack && !dialect.Unavailable(err) {
					t.Errorf("the mover ended beside the prepared transaction: %+v, %v", moved, err)
				}
			}
			database.Exec(t, s.dbs["a"], "XA COMMIT 'late'")
			if _, err := m.Run(t.Context(), s.moves(0, 1, 3)...); err != nil {
				t.Error(err)
			}
			if got := s.read(t, 1)[1003]; got != "late" {
				t.Errorf("the new shard has %q in the prepared row", got)
			}
		})
	}
}
