// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// Parcel is a row that moves from one database to the shards of two.
type Parcel struct {
	ID    int64 `keygen:""`
	Note  string
	Stamp string `keygen:"stamp"`
}

const createParcels = "CREATE TABLE parcels (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT NOT NULL, stamp TEXT NOT NULL)"

// removal is a migration of parcels whose steps the tests execute.
type removal struct {
	dbs  sharding.DBs
	job  *migrate.Job
	seed atomic.Int64 // the generators' last id
}

func newRemoval(t *testing.T) *removal {
	t.Helper()
	r := &removal{dbs: sharding.DBs{}}
	for _, name := range []string{"source", "a", "b"} {
		r.dbs[name] = openShared(t, name)
	}
	must(t, r.dbs["source"], createParcels)
	must(t, r.dbs["source"], "CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
	must(t, r.dbs["source"], "INSERT INTO parcels (note, stamp) VALUES ('old', 'o'), ('old', 'o'), ('old', 'o'), ('old', 'o'), ('old', 'o')")
	var err error
	r.job, err = migrate.New(migrate.Config{Source: r.dbs["source"], Shards: r.dbs, Tables: []migrate.Table{{Table: parcels(t)}}, ChunkRows: 50})
	if err != nil {
		t.Fatal(err)
	}
	r.seed.Store(1_000_000)
	return r
}

// openShared opens a file of its own that many connections write to.
func openShared(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), name+".db")+"?_pragma=busy_timeout(3600000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func parcels(t *testing.T) sharding.Table {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "parcels_%d")
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: "parcels", Key: "id", Rule: sharding.Low(2), Map: m, OnMissing: sharding.FanOutReads}
}

// process is a program that uses the tables with its own router. Its generator issues even ids or
// odd ones, so that its rows share a database.
func (r *removal) process(t *testing.T, odd int64) *gorm.DB {
	t.Helper()
	router, err := sharding.New(r.dbs, parcels(t), sharding.Migration{Source: "source", Tables: map[string]string{"parcels": "id"}, Patience: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, r.dbs["source"])
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: r.generators(odd), Router: router})); err != nil {
		t.Fatal(err)
	}
	return db
}

func (r *removal) generators(odd int64) keygen.Set {
	ids := keygen.Func[int64](func(context.Context) (int64, error) { return 2*r.seed.Add(1) + odd, nil })
	stamps := keygen.Func[string](func(context.Context) (string, error) { return "s", nil })
	return keygen.Set{Default: ids, Text: map[string]keygen.Generator[string]{"stamp": stamps}}
}

func (r *removal) run(t *testing.T) {
	t.Helper()
	if err := r.job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *removal) cutover(t *testing.T) {
	t.Helper()
	r.run(t)
	if _, err := r.job.Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

func (r *removal) rollback(t *testing.T) {
	t.Helper()
	if _, err := r.job.Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

// stored returns the notes of all rows, wherever they are, by id.
func (r *removal) stored(t *testing.T, tables map[string][]string) map[int64]string {
	t.Helper()
	notes := map[int64]string{}
	for db, names := range tables {
		for _, name := range names {
			rows, err := r.dbs[db].QueryContext(t.Context(), "SELECT id, note FROM "+name)
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
					t.Errorf("row %d is there twice", id)
				}
				notes[id] = note
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // before the next query
				t.Fatal(err)
			}
		}
	}
	return notes
}

var (
	onSource = map[string][]string{"source": {"parcels"}}
	onShards = map[string][]string{"a": {"parcels_0", "parcels_2"}, "b": {"parcels_1", "parcels_3"}}
)

// hand is a writer that remembers the expected values of its rows.
type hand struct {
	db    *gorm.DB
	name  string
	rows  map[int64]string
	ids   []int64
	steps atomic.Int64
}

// step executes one of several statements and records the acknowledged values.
func (h *hand) step(n int) error {
	note := fmt.Sprint(h.name, n)
	switch n % 8 {
	case 0, 1:
		p := Parcel{Note: note}
		return h.made(h.db.Session(&gorm.Session{SkipDefaultTransaction: n%16 < 8}).Create(&p).Error, p)
	case 2:
		list := []Parcel{{Note: note}, {Note: note}, {Note: note}}
		if err := h.db.Create(&list).Error; err != nil {
			return fmt.Errorf("create of three: %w", err)
		}
		return h.made(nil, list...)
	case 3:
		return h.changed(note, h.db.Model(&Parcel{}).Where("id = ?", h.ids[n%len(h.ids)]).Update("note", note))
	case 4:
		return h.save(h.ids[n%len(h.ids)], note)
	case 5:
		id := h.ids[0]
		h.ids = h.ids[1:]
		delete(h.rows, id)
		if tx := h.db.Delete(&Parcel{}, id); tx.Error != nil || tx.RowsAffected != 1 {
			return fmt.Errorf("delete %d: %d rows, %w", id, tx.RowsAffected, tx.Error)
		}
		return nil
	case 6:
		return h.read(h.ids[n%len(h.ids)])
	}
	return h.together(note)
}

func (h *hand) made(err error, list ...Parcel) error {
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for _, p := range list {
		if _, twice := h.rows[p.ID]; twice || p.ID == 0 {
			return fmt.Errorf("create: id %d", p.ID)
		}
		h.rows[p.ID] = p.Note
		h.ids = append(h.ids, p.ID)
	}
	return nil
}

func (h *hand) changed(note string, tx *gorm.DB) error {
	if tx.Error != nil || tx.RowsAffected != 1 {
		return fmt.Errorf("update: %d rows, %w", tx.RowsAffected, tx.Error)
	}
	h.rows[h.ids[slices.Index(h.ids, h.idOf(tx))]] = note
	return nil
}

// idOf returns the id of an updated row.
func (h *hand) idOf(tx *gorm.DB) int64 {
	where := tx.Statement.Clauses["WHERE"].Expression.(clause.Where)
	return where.Exprs[0].(clause.Expr).Vars[0].(int64)
}

func (h *hand) save(id int64, note string) error {
	if err := h.db.Save(&Parcel{ID: id, Note: note, Stamp: "saved"}).Error; err != nil {
		return fmt.Errorf("save: %w", err)
	}
	h.rows[id] = note
	return nil
}

func (h *hand) read(id int64) error {
	var p Parcel
	if err := h.db.First(&p, id).Error; err != nil || p.Note != h.rows[id] {
		return fmt.Errorf("row %d is %q, not %q: %w", id, p.Note, h.rows[id], err)
	}
	var note string
	if err := h.db.Model(&Parcel{}).Select("note").Where("id = ?", id).Row().Scan(&note); err != nil || note != h.rows[id] {
		return fmt.Errorf("row %d is %q, not %q: %w", id, note, h.rows[id], err)
	}
	return nil
}

// together writes two rows in a transaction, which it may repeat.
func (h *hand) together(note string) error {
	for {
		var first Parcel
		err := h.db.Transaction(func(tx *gorm.DB) error {
			first = Parcel{Note: note} // not the one of an attempt before, which has an id
			if err := tx.Create(&first).Error; err != nil {
				return err
			}
			return tx.Model(&first).Update("note", note+"!").Error
		})
		if errors.Is(err, sharding.ErrRouteMoved) {
			continue
		}
		return h.made(err, first)
	}
}

// work makes steps until the context ends.
func (h *hand) work(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		if err := h.step(n); err != nil {
			t.Errorf("%s: %v", h.name, err)
			return
		}
		h.steps.Add(1)
		time.Sleep(5 * time.Millisecond) // SQLite hands out its lock to whoever asks most often
	}
}

// crew are the writers of several processes.
type crew []*hand

// start runs all writers until stop is called.
func (c crew) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, h := range c {
		all.Go(func() { h.work(ctx, t) })
	}
	return func() { cancel(); all.Wait() }
}

// proceed waits until every writer has made some more steps.
func (c crew) proceed(t *testing.T) {
	t.Helper()
	for _, h := range c {
		goal := h.steps.Load() + 24
		testwait.Until(t, h.name+" goes on", func() bool { return h.steps.Load() >= goal || t.Failed() })
	}
}

func TestWritersSeeNoErrorDuringAWholeMigration(t *testing.T) {
	r := newRemoval(t)
	var all crew
	for i := range 4 {
		all = append(all, &hand{db: r.process(t, int64(i%2)), name: fmt.Sprint("w", i, " "), rows: map[int64]string{}})
	}
	stop := all.start(t)
	defer stop()
	all.proceed(t)
	for round, step := range []func(*testing.T){r.cutover, r.rollback, r.cutover} {
		step(t)
		all.proceed(t)
		t.Logf("after step %d", round)
	}
	stop()
	want := map[int64]string{1: "old", 2: "old", 3: "old", 4: "old", 5: "old"}
	for _, h := range all {
		maps.Copy(want, h.rows)
		t.Logf("%s made %d steps", h.name, h.steps.Load())
	}
	got := r.stored(t, onShards)
	for id, note := range want {
		if got[id] != note {
			t.Errorf("row %d is %q, not %q", id, got[id], note)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, not %d", len(got), len(want))
	}
}

// switches are the two ways in which a table is closed during a process.
var switches = map[string]struct {
	before, change func(*removal, *testing.T)
	after          map[string][]string
}{
	"cutover":  {func(*removal, *testing.T) {}, (*removal).cutover, onShards},
	"rollback": {(*removal).cutover, (*removal).rollback, onSource},
}

// late are statements of a process that does not know of the switch. Each sets the note of want
// rows.
var late = map[string]struct {
	want int
	send func(tx *gorm.DB) error
}{
	"create": {1, func(tx *gorm.DB) error {
		p := Parcel{Note: "late"}
		if err := tx.Create(&p).Error; err != nil || p.ID < 6 || p.Stamp != "s" {
			return fmt.Errorf("%+v: %w", p, err)
		}
		return tx.Where("note = ?", "late").First(&Parcel{}, p.ID).Error
	}},
	"create of several": {3, func(tx *gorm.DB) error {
		list := []*Parcel{{Note: "late"}, {Note: "late"}, {Note: "late"}}
		err := tx.Create(&list).Error
		if list[0].ID == 0 || list[1].ID == 0 || list[2].ID == 0 {
			return fmt.Errorf("ids %d, %d, %d: %w", list[0].ID, list[1].ID, list[2].ID, err)
		}
		return err
	}},
	"create of a map": {1, func(tx *gorm.DB) error {
		return tx.Model(&Parcel{}).Create(map[string]any{"note": "late"}).Error
	}},
	"create with a key": {1, func(tx *gorm.DB) error { return tx.Create(&Parcel{ID: 77, Note: "late"}).Error }},
	"create with Select": {1, func(tx *gorm.DB) error {
		return tx.Select("Note", "Stamp").Create(&Parcel{Note: "late"}).Error
	}},
	"upsert": {1, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Parcel{ID: 3, Note: "late"}).Error
	}},
	"CreateInBatches": {4, func(tx *gorm.DB) error {
		return tx.CreateInBatches([]Parcel{{Note: "late"}, {Note: "late"}, {Note: "late"}, {Note: "late"}}, 2).Error
	}},
	"update":  {1, func(tx *gorm.DB) error { return tx.Model(&Parcel{ID: 2}).Update("note", "late").Error }},
	"updates": {1, func(tx *gorm.DB) error { return tx.Where("id = ?", 2).Updates(&Parcel{Note: "late"}).Error }},
	"update of two": {2, func(tx *gorm.DB) error {
		return tx.Model(&Parcel{}).Where("id IN ?", []int{1, 3}).Update("note", "late").Error
	}},
	"Save": {1, func(tx *gorm.DB) error { return tx.Save(&Parcel{ID: 2, Note: "late"}).Error }},
	"Save of a new row": {1, func(tx *gorm.DB) error {
		return tx.Save(&Parcel{Note: "late"}).Error
	}},
	"delete": {0, func(tx *gorm.DB) error {
		if tx = tx.Delete(&Parcel{}, 4); tx.RowsAffected != 1 {
			return fmt.Errorf("%d rows: %w", tx.RowsAffected, tx.Error)
		}
		return nil
	}},
	"FirstOrCreate": {1, func(tx *gorm.DB) error {
		return tx.Where(&Parcel{ID: 4}).Assign(Parcel{Note: "late"}).FirstOrCreate(&Parcel{}).Error
	}},
	"First": {0, func(tx *gorm.DB) error { return tx.First(&Parcel{}, 3).Error }},
	"Find of all": {0, func(tx *gorm.DB) error {
		var list []Parcel
		if err := tx.Order("id").Find(&list).Error; err != nil || len(list) != 5 || list[4].ID != 5 {
			return fmt.Errorf("%v: %w", list, err)
		}
		return nil
	}},
	"FindInBatches": {0, func(tx *gorm.DB) error {
		n := 0
		err := tx.FindInBatches(&[]Parcel{}, 2, func(tx *gorm.DB, _ int) error { n += int(tx.RowsAffected); return nil }).Error
		if n != 5 {
			return fmt.Errorf("%d rows: %w", n, err)
		}
		return err
	}},
	"Rows": {0, func(tx *gorm.DB) error {
		notes, err := readRows(tx.Model(&Parcel{}).Select("note").Where("id = ?", 5))
		if fmt.Sprint(notes) != "[old]" {
			return fmt.Errorf("%v: %w", notes, err)
		}
		return err
	}},
	"Row": {0, func(tx *gorm.DB) error {
		var note string
		return tx.Model(&Parcel{}).Select("note").Where("id = ?", 5).Row().Scan(&note)
	}},
	"Count": {0, func(tx *gorm.DB) error {
		var n int64
		if err := tx.Model(&Parcel{}).Count(&n).Error; err != nil || n != 5 {
			return fmt.Errorf("%d: %w", n, err)
		}
		return nil
	}},
	"a hinted text": {1, func(tx *gorm.DB) error {
		ctx := sharding.OnKey(tx.Statement.Context, "parcels", 2)
		return tx.WithContext(ctx).Exec("UPDATE parcels SET note = 'late' WHERE id = 2").Error
	}},
	"a transaction": {2, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Parcel{ID: 2}).Update("note", "late").Error; err != nil {
				return err
			}
			return tx.Create(&Parcel{ID: 78, Note: "late"}).Error
		})
	}},
	"a nested transaction": {1, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&Parcel{ID: 2}).Update("note", "late").Error })
		})
	}},
}

func TestALateStatementIsPlannedAgain(t *testing.T) {
	for how, s := range switches {
		for form, l := range late {
			for mode, session := range map[string]gorm.Session{"": {}, " without a default transaction": {SkipDefaultTransaction: true}, " prepared": {PrepareStmt: true}} {
				t.Run(how+"/"+form+mode, func(t *testing.T) {
					r := newRemoval(t)
					s.before(r, t)
					db := r.process(t, 0)
					if err := db.First(&Parcel{}, 1).Error; err != nil {
						t.Fatal(err)
					}
					r.run(t)
					s.change(r, t)
					if err := l.send(db.Session(&session)); err != nil {
						t.Error(err)
					}
					n := 0
					for _, note := range r.stored(t, s.after) {
						if note == "late" {
							n++
						}
					}
					if n != l.want {
						t.Errorf("%d rows were written, not %d", n, l.want)
					}
				})
			}
		}
	}
}

// Letter is a parcel whose key has the type that Base has.
type Letter struct {
	gormplugin.Base

	Note  string
	Stamp string `keygen:"stamp"`
}

func (Letter) TableName() string { return "parcels" }

func TestTheSourceNumbersAKeyOfTypeIDAsItDoesAnInteger(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	for _, tx := range []*gorm.DB{db, db.Session(&gorm.Session{SkipDefaultTransaction: true})} {
		one := Letter{Note: "one"}
		if err := tx.Create(&one).Error; err != nil || one.ID < 6 || one.ID > 100 {
			t.Fatalf("the source numbered it %d (%v)", one.ID, err)
		}
		several := []Letter{{Note: "a"}, {Note: "b"}}
		if err := tx.Create(&several).Error; err != nil || several[0].ID != one.ID+1 || several[1].ID != one.ID+2 {
			t.Fatalf("%+v after %d (%v)", several, one.ID, err)
		}
		var found Letter
		if err := tx.First(&found, several[1].ID).Error; err != nil || found.Note != "b" {
			t.Errorf("%+v (%v)", found, err)
		}
	}
	given := []Letter{{Base: gormplugin.Base{ID: 77}, Note: "given"}, {Note: "after"}}
	if err := db.Create(&given).Error; err != nil || given[0].ID != 77 || given[1].ID != 78 {
		t.Errorf("%+v (%v)", given, err)
	}
	type plainly struct {
		ID    int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
		Note  string
		Stamp string `keygen:"stamp"`
	}
	tagged := plainly{Note: "tagged"}
	if err := db.Table("parcels").Create(&tagged).Error; err != nil || tagged.ID != 79 {
		t.Errorf("a key with autoIncrement:false got %d (%v)", tagged.ID, err)
	}
	r.cutover(t)
	last := Letter{Note: "last"}
	if err := db.Create(&last).Error; err != nil || last.ID < 1_000_000 {
		t.Errorf("on the shards it has the number %d (%v)", last.ID, err)
	}
}
