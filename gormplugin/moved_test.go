// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

func TestTheSourceAcceptsStatementsThatShardsRefuse(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	must(t, r.dbs["source"], "INSERT INTO users (name) VALUES ('old')")
	var notes []string
	var n int64
	for what, err := range map[string]error{
		"an update without a key": db.Model(&Parcel{}).Where("note <> ?", "x").Update("note", "all").Error,
		"a join":                  db.Model(&User{}).Joins("JOIN parcels ON parcels.id = users.id").Count(&n).Error,
		"a join of it":            db.Model(&Parcel{}).Joins("JOIN users ON parcels.id = users.id").Pluck("note", &notes).Error,
		"a subquery":              db.Where("id IN (?)", db.Model(&Parcel{}).Select("id")).Find(&[]User{}).Error,
		"a text":                  db.Exec("DELETE FROM parcels WHERE note = 'none' OR id = 5").Error,
		"a text with a result":    db.Raw("SELECT note FROM parcels").Scan(&notes).Error,
		"a group":                 db.Model(&Parcel{}).Select("note, count(distinct stamp)").Group("note").Having("count(*) > 1").Find(&[]map[string]any{}).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := r.stored(t, onSource); len(got) != 4 || got[1] != "all" || n != 1 {
		t.Errorf("%v, %d", got, n)
	}
}

func TestTheSourceNumbersRowsAndOtherFieldsAreFilled(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	p := Parcel{Note: "new"}
	if err := db.Create(&p).Error; err != nil || p.ID != 6 || p.Stamp != "s" {
		t.Errorf("%+v, %v", p, err)
	}
	list := []Parcel{{Note: "new"}, {ID: 50, Note: "new"}, {Note: "new"}}
	if err := db.Create(&list).Error; err != nil || list[0].ID == 0 || list[1].ID != 50 || list[2].ID != 51 {
		t.Errorf("%+v, %v", list, err)
	}
	if r.seed.Load() != 1_000_000 {
		t.Error("a generator was asked for ids that the database gives")
	}
}

func TestOnlyRowsOfTheSourceAreChanged(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	shard := sharding.On(t.Context(), sharding.Target{DB: "a", Table: "parcels_0"})
	for what, refusal := range map[string]struct{ err, want error }{
		"DROP":             {db.Exec("DROP TABLE parcels").Error, sharding.ErrRawTable},
		"ALTER":            {db.Exec("ALTER TABLE parcels ADD COLUMN more").Error, sharding.ErrRawTable},
		"a hint elsewhere": {db.WithContext(shard).First(&Parcel{}, 4).Error, sharding.ErrCrossShard},
	} {
		if !errors.Is(refusal.err, refusal.want) {
			t.Errorf("%s: %v", what, refusal.err)
		}
	}
	if err := gormplugin.Migrate(t.Context(), db, &Parcel{}); !errors.Is(err, gormplugin.ErrMigrating) {
		t.Errorf("Migrate: %v", err)
	}
}

func TestALateTextIsNotSentToShards(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	if err := db.First(&Parcel{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	r.cutover(t)
	err := db.Exec("INSERT INTO users (name) VALUES ('once'); UPDATE parcels SET note = 'late'").Error
	if err == nil || !strings.Contains(err.Error(), "no such table") || errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("two statements: %v", err)
	}
	if err := db.Exec("UPDATE parcels SET note = 'late'").Error; !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("one statement: %v", err)
	}
	var n int64
	if err := db.Model(&User{}).Count(&n).Error; err != nil || n != 1 {
		t.Errorf("the first of two statements was made %d times (%v)", n, err)
	}
	for id, note := range r.stored(t, onShards) {
		if note != "old" {
			t.Errorf("row %d is %q", id, note)
		}
	}
}

func TestATransactionDuringASwitchFailsAndItsKeysAreRemoved(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	if err := db.First(&Parcel{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	r.cutover(t)
	late := Parcel{Note: "late"}
	work := func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT 1").Error; err != nil {
			return err
		}
		return tx.Create(&late).Error
	}
	err := db.Transaction(work)
	var moved *sharding.MovedError
	if !errors.Is(err, sharding.ErrRouteMoved) || !errors.As(err, &moved) || moved.Table != "parcels" || late.ID != 0 || late.Stamp != "" {
		t.Errorf("%+v: %v", late, err)
	}
	if err := db.Transaction(func(tx *gorm.DB) error { return tx.Create(&late).Error }); err != nil || late.ID < 1_000_000 {
		t.Errorf("%+v: %v", late, err)
	}
}

func TestAStatementWaitsForTheSwitchNoLongerThanItsContext(t *testing.T) {
	r := newRemoval(t)
	db := r.process(t, 0)
	r.run(t)
	if err := db.First(&Parcel{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	must(t, r.dbs["source"], "ALTER TABLE parcels RENAME TO parcels_old") // and nobody flips the route
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	late := Parcel{Note: "late"}
	for what, err := range map[string]error{
		"create": db.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&late).Error,
		"row":    db.WithContext(ctx).Model(&Parcel{}).Select("note").Where("id = 1").Row().Scan(new(string)),
	} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if late.ID != 0 || late.Stamp != "" {
		t.Errorf("keys were left in %+v", late)
	}
}

func TestATransactionDoesNotReadRoutesThroughAPoolThatItHolds(t *testing.T) {
	r := newRemoval(t)
	r.dbs["source"].SetMaxOpenConns(1)
	db := r.process(t, 0)
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&User{Name: "new"}).Error; err != nil {
			return err
		}
		return tx.First(&Parcel{}, 1).Error
	})
	if err != nil { // the route was read before the transaction took the connection
		t.Error(err)
	}
	if err := db.Transaction(func(tx *gorm.DB) error { return tx.First(&Parcel{}, 1).Error }); err != nil {
		t.Error(err)
	}
}

func TestTheRefusalOfAMovingSlotIsDistinguishedFromOtherErrors(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	target, err := c.router.Target("orders", 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		must(t, c.router.DB(target.DB), "CREATE TRIGGER fence_"+event+" BEFORE "+event+" ON "+target.Table+" BEGIN SELECT RAISE(ABORT, '"+sharding.FenceMessage+"'); END")
	}
	onFive := sharding.OnKey(t.Context(), "orders", 5)
	for what, err := range map[string]error{
		"create":          c.Create(&Order{ID: 21}).Error,
		"create of many":  c.Create([]*Order{{ID: 17}, {ID: 19}, {ID: 21}}).Error,
		"update":          c.Model(&Order{ID: 5}).Update("note", "x").Error,
		"delete":          c.Delete(&Order{}, 5).Error,
		"update of many":  c.Model(&Order{}).Where("id IN ?", []int{5, 7}).Update("note", "x").Error,
		"a hinted text":   c.WithContext(onFive).Exec("UPDATE orders SET note = 'x' WHERE id = 5").Error,
		"an insert by id": c.Select("id").Create(&Order{ID: 37}).Error,
	} {
		if !errors.Is(err, sharding.ErrSlotMoving) || strings.Count(err.Error(), "try again") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Create(&Order{ID: 5}).Error; errors.Is(err, sharding.ErrUnmergeable) || err == nil {
		t.Errorf("got %v", err)
	}
}
