// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// gateParcel is sharded by its id, and what is in it by the parcel's.
type gateParcel struct {
	ID    int64 `keygen:""`
	Note  string
	Goods []gateGood `gorm:"foreignKey:ParcelID"`
}

func (gateParcel) TableName() string { return "parcels" }

type gateGood struct {
	ID       int64 `keygen:""`
	ParcelID int64
	Name     string
}

func (gateGood) TableName() string { return "goods" }

// gateDepot is a source with both tables, which move to shards on its own server
// and on another one.
type gateDepot struct {
	dbs  sharding.DBs
	job  *migrate.Job
	seed atomic.Int64 // of the generators
	calm sync.RWMutex // is held for each step of a writer
}

// onGateServers runs a test on two servers of MariaDB and on two of PostgreSQL.
func onGateServers(t *testing.T, test func(t *testing.T, d *gateDepot)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, newGateDepot(t, server.RunMariaDB(t), server.RunMariaDB(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newGateDepot(t, server.RunPostgres(t), server.RunPostgres(t))) })
}

func newGateDepot(t *testing.T, near, far database.Server) *gateDepot {
	t.Helper()
	d := &gateDepot{dbs: sharding.DBs{"source": near.Open(t, "depot"), "a": near.Open(t, "depot_a"), "b": far.Open(t, "depot_b")}}
	id := "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
	if database.DriverName(d.dbs["source"]) == "pgx" {
		id = "BIGSERIAL PRIMARY KEY"
	}
	database.Exec(t, d.dbs["source"], "CREATE TABLE parcels (id "+id+", note VARCHAR(100) NOT NULL)")
	database.Exec(t, d.dbs["source"], "CREATE TABLE goods (id "+id+", parcel_id BIGINT NOT NULL, name VARCHAR(100) NOT NULL)")
	database.Exec(t, d.dbs["source"], "CREATE INDEX by_parcel ON goods (parcel_id)")
	database.Exec(t, d.dbs["source"], "CREATE TABLE depots (id BIGINT NOT NULL PRIMARY KEY)")
	database.Exec(t, d.dbs["source"], "INSERT INTO parcels (note) VALUES ('old'), ('old'), ('old')")
	var tables []migrate.Table
	for _, table := range gateTables(t) {
		tables = append(tables, migrate.Table{Table: table})
	}
	var err error
	d.job, err = migrate.New(migrate.Config{Source: d.dbs["source"], Shards: d.dbs, Tables: tables, ChunkRows: 50})
	if err != nil {
		t.Fatal(err)
	}
	d.seed.Store(1_000_000)
	return d
}

func gateTables(t *testing.T) []sharding.Table {
	t.Helper()
	var tables []sharding.Table
	for name, key := range map[string]string{"parcels": "id", "goods": "parcel_id"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: m, Group: "depot"})
	}
	return tables
}

// process is a program with a router of its own.
func (d *gateDepot) process(t *testing.T) *gorm.DB {
	t.Helper()
	router, err := sharding.New(d.dbs, sharding.Tables(gateTables(t)...),
		sharding.Migration{Source: "source", Tables: map[string]string{"parcels": "id", "goods": "id"}, Patience: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenGORM(t, d.dbs["source"], false)
	ids := keygen.Func[int64](func(context.Context) (int64, error) { return d.seed.Add(1), nil })
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})); err != nil {
		t.Fatal(err)
	}
	return db
}

func (d *gateDepot) cutover(t *testing.T) {
	t.Helper()
	if err := d.job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("there: writers waited %s", d.switches(t, d.job.Cutover))
}

func (d *gateDepot) rollback(t *testing.T) {
	t.Helper()
	t.Logf("back: writers waited %s", d.switches(t, d.job.Rollback))
}

// switches makes the writers wait while the runner catches up with their changes.
func (d *gateDepot) switches(t *testing.T, to func(context.Context, time.Duration) (migrate.Switch, error)) time.Duration {
	t.Helper()
	done, err := to(t.Context(), time.Minute)
	for errors.Is(err, migrate.ErrNotReady) {
		t.Log(err)
		d.calm.Lock()
		err = d.job.Run(t.Context())
		d.calm.Unlock()
		if err == nil {
			done, err = to(t.Context(), time.Minute)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return done.Pause
}

// onShards returns the notes of all rows of the shards by id.
func (d *gateDepot) onShards(t *testing.T, table, column string) map[int64]string {
	t.Helper()
	notes := map[int64]string{}
	for i := range 4 {
		rows, err := d.dbs[[]string{"a", "b"}[i%2]].QueryContext(t.Context(), fmt.Sprintf("SELECT id, %s FROM %s_%d", column, table, i))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id int64
			var note string
			if err := rows.Scan(&id, &note); err != nil {
				t.Fatal(err)
			}
			if _, twice := notes[id]; twice {
				t.Errorf("row %d of %s is there twice", id, table)
			}
			notes[id] = note
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // before the next query
			t.Fatal(err)
		}
	}
	return notes
}

// gateHand is a writer that writes its own rows and stores their expected content.
type gateHand struct {
	db      *gorm.DB
	name    string
	ids     []int64
	parcels map[int64]string
	goods   map[int64]string
	steps   atomic.Int64
}

// step runs one of several statements and records the acknowledged result.
func (h *gateHand) step(n int) error {
	note := fmt.Sprint(h.name, " ", n)
	switch n % 6 {
	case 0:
		return h.create(h.db.Session(&gorm.Session{PrepareStmt: n%12 == 0, SkipDefaultTransaction: n%18 == 0}), note)
	case 1:
		return h.change(note, func(id int64) *gorm.DB { return h.db.Model(&gateParcel{ID: id}).Update("note", note) })
	case 2:
		return h.change(note, func(id int64) *gorm.DB { return h.db.Save(&gateParcel{ID: id, Note: note}) })
	case 3:
		id := h.ids[n%len(h.ids)]
		var p gateParcel
		if err := h.db.Preload("Goods").First(&p, id).Error; err != nil || p.Note != h.parcels[id] || len(p.Goods) > 0 && h.goods[p.Goods[0].ID] != p.Goods[0].Name {
			return fmt.Errorf("parcel %d is %+v, not %q: %w", id, p, h.parcels[id], err)
		}
		return nil
	case 4:
		return h.together(note)
	}
	return h.remove()
}

func (h *gateHand) create(db *gorm.DB, note string) error {
	p := gateParcel{Note: note}
	if err := db.Create(&p).Error; err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return h.keep(p)
}

func (h *gateHand) keep(p gateParcel) error {
	if _, twice := h.parcels[p.ID]; twice || p.ID == 0 {
		return fmt.Errorf("a parcel of id %d", p.ID)
	}
	h.parcels[p.ID] = p.Note
	h.ids = append(h.ids, p.ID)
	for _, g := range p.Goods {
		h.goods[g.ID] = g.Name
	}
	return nil
}

func (h *gateHand) change(note string, send func(id int64) *gorm.DB) error {
	id := h.ids[len(h.ids)-1]
	if tx := send(id); tx.Error != nil || tx.RowsAffected != 1 {
		return fmt.Errorf("change %d: %d rows, %w", id, tx.RowsAffected, tx.Error)
	}
	h.parcels[id] = note
	return nil
}

func (h *gateHand) remove() error {
	id := h.ids[0]
	if tx := h.db.Delete(&gateParcel{}, id); tx.Error != nil || tx.RowsAffected != 1 {
		return fmt.Errorf("delete %d: %d rows, %w", id, tx.RowsAffected, tx.Error)
	}
	delete(h.parcels, id)
	h.ids = h.ids[1:]
	return nil
}

// together writes a parcel and its goods in a transaction. It repeats the transaction
// when the tables are switched meanwhile, and when it deadlocks with the locks of the
// switch.
func (h *gateHand) together(note string) error {
	for {
		p := gateParcel{Note: note, Goods: []gateGood{{Name: note}, {Name: note}}}
		err := h.db.Create(&p).Error
		switch {
		case err == nil:
			return h.keep(p)
		case errors.Is(err, sharding.ErrRouteMoved), dialect.Contended(err):
		default:
			return fmt.Errorf("create with goods: %w", err)
		}
	}
}

func (h *gateHand) work(ctx context.Context, t *testing.T, calm *sync.RWMutex) {
	for n := 0; ctx.Err() == nil; n++ {
		calm.RLock()
		err := h.step(n)
		calm.RUnlock()
		if err != nil {
			t.Errorf("%s: %v", h.name, err)
			return
		}
		h.steps.Add(1)
	}
}

func TestGORMWritersNoticeNothingOfAWholeMigration(t *testing.T) {
	onGateServers(t, writersNoticeNothing)
}

func writersNoticeNothing(t *testing.T, d *gateDepot) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var hands []*gateHand
	var all sync.WaitGroup
	for i := range 4 {
		h := &gateHand{db: d.process(t), name: fmt.Sprint("w", i), parcels: map[int64]string{}, goods: map[int64]string{}}
		hands = append(hands, h)
		all.Go(func() { h.work(ctx, t, &d.calm) })
	}
	proceed := func() {
		for _, h := range hands {
			goal := h.steps.Load() + 60
			testwait.Until(t, h.name+" goes on", func() bool { return h.steps.Load() >= goal || t.Failed() })
		}
	}
	proceed()
	for _, step := range []func(*testing.T){d.cutover, d.rollback, d.cutover} {
		step(t)
		proceed()
	}
	cancel()
	all.Wait()
	parcels, goods := map[int64]string{1: "old", 2: "old", 3: "old"}, map[int64]string{}
	for _, h := range hands {
		t.Logf("%s made %d steps", h.name, h.steps.Load())
		maps.Copy(parcels, h.parcels)
		maps.Copy(goods, h.goods)
	}
	gateSame(t, "parcels", d.onShards(t, "parcels", "note"), parcels)
	gateSame(t, "goods", d.onShards(t, "goods", "name"), goods)
}

func gateSame(t *testing.T, what string, got, want map[int64]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d %s, not %d", len(got), what, len(want))
	}
	for id, note := range want {
		if got[id] != note {
			t.Errorf("%s: row %d is %q, not %q", what, id, got[id], note)
		}
	}
}

func TestATransactionEndsWithAnErrorWhenATableHasMoved(t *testing.T) {
	onGateServers(t, transactionIsTold)
}

func transactionIsTold(t *testing.T, d *gateDepot) {
	t.Helper()
	db := d.process(t)
	database.Exec(t, d.dbs["source"], "INSERT INTO depots VALUES (1)")
	attempts := 0
	work := func(tx *gorm.DB) error {
		attempts++
		if attempts == 1 { // the transaction is under way on the source then
			if err := tx.Exec("UPDATE depots SET id = 2").Error; err != nil {
				return err
			}
			d.cutover(t)
		}
		return tx.Create(&gateParcel{Note: "moved"}).Error
	}
	if err := db.First(&gateParcel{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	err := db.Transaction(work)
	var moved *sharding.MovedError
	if !errors.Is(err, sharding.ErrRouteMoved) || !errors.As(err, &moved) || moved.Table != "parcels" {
		t.Fatalf("got %v", err)
	}
	var depot int64
	if err := d.dbs["source"].QueryRowContext(t.Context(), "SELECT id FROM depots").Scan(&depot); err != nil || depot != 1 {
		t.Errorf("the transaction left %d (%v)", depot, err)
	}
	if err := db.Transaction(work); err != nil {
		t.Fatal(err)
	}
	if got := d.onShards(t, "parcels", "note"); len(got) != 4 {
		t.Errorf("the shards hold %v", got)
	}
	if err := d.dbs["source"].QueryRowContext(t.Context(), "SELECT 1 FROM parcels").Scan(&depot); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("the source's table is open: %v", err)
	}
}
