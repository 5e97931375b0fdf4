// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Bill is numbered by the source until its table is on the shards of its users.
type Bill struct {
	ID     int64 `keygen:""`
	UserID int64
	Note   string
}

const createBills = "CREATE TABLE %s (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, note TEXT NOT NULL)"

// foreseen is a source of bills, their shards, and a program that uses them with a preview.
type foreseen struct {
	*gorm.DB
	dbs     sharding.DBs
	preview *sharding.Preview
}

// newForeseen shards bills by a column over two databases with two tables each: those of even
// users, or ids, are in a.
func newForeseen(t *testing.T, key string, set keygen.Set, m sharding.Migration, options ...sharding.Option) *foreseen {
	t.Helper()
	f := &foreseen{dbs: sharding.DBs{}, preview: m.Preview}
	for _, name := range []string{"source", "a", "b"} {
		f.dbs[name] = openShared(t, name)
	}
	layout, err := sharding.Spread([]string{"a", "b"}, 4, "bills_%d")
	if err != nil {
		t.Fatal(err)
	}
	must(t, f.dbs["source"], fmt.Sprintf(createBills, "bills"))
	must(t, f.dbs["source"], "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	for _, at := range layout.Targets() {
		must(t, f.dbs[at.DB], fmt.Sprintf(createBills, at.Table))
	}
	table := sharding.Table{Name: "bills", Key: key, Rule: sharding.Low(2), Map: layout}
	m.Source, m.Tables, m.Patience = "source", map[string]string{"bills": "id"}, time.Minute
	router, err := sharding.New(f.dbs, append(options, table, m)...)
	if err != nil {
		t.Fatal(err)
	}
	f.DB = openGORM(t, f.dbs["source"])
	if err := f.Use(gormplugin.New(gormplugin.Config{Generators: set, Router: router})); err != nil {
		t.Fatal(err)
	}
	return f
}

// switches makes the shards serve.
func (f *foreseen) switches(t *testing.T) {
	t.Helper()
	must(t, f.dbs["source"], "ALTER TABLE bills RENAME TO bills_old")
	must(t, f.dbs["source"], "INSERT INTO shardid_route VALUES ('bills', 'autumn', 1, 'shards')")
}

// creates are programs that create bills, with the refusals by shards of users whose generator makes the ids.
var creates = map[string]struct {
	mode   sharding.TxMode
	create func(*gorm.DB) error
	want   error
}{
	"a batch of users in two databases": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{UserID: 1}, {UserID: 2}}).Error
	}, sharding.ErrCrossDatabase},
	"a batch without a transaction": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&[]Bill{{UserID: 1}, {UserID: 2}}).Error
	}, sharding.ErrCrossDatabase},
	"a batch of which one row has an id": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{ID: 50, UserID: 1}, {UserID: 2}}).Error
	}, sharding.ErrCrossDatabase},
	"an upsert of a batch": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Bill{{UserID: 1}, {UserID: 2}}).Error
	}, sharding.ErrCrossDatabase},
	"two creates in a transaction": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Bill{UserID: 1}).Error, tx.Create(&Bill{UserID: 2}).Error)
		})
	}, sharding.ErrCrossDatabase},
	"a create and an update in a transaction": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Bill{UserID: 1}).Error, tx.Model(&Bill{}).Where("user_id = ?", 2).Update("note", "x").Error)
		})
	}, sharding.ErrCrossDatabase},
	"a struct without a key": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Create(&Bill{Note: "x"}).Error
	}, sharding.ErrMissingKey},
	"a batch of which one row has no key": {sharding.BestEffort, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{UserID: 1}, {}}).Error
	}, sharding.ErrMissingKey},
	"a map without a key": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Model(&Bill{}).Create(map[string]any{"note": "x", "user_id": gorm.Expr("1 + 1")}).Error
	}, sharding.ErrMissingKey},
	"the id left out": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Omit("ID").Create(&Bill{UserID: 1}).Error
	}, sharding.ErrNotNumbered},
	"a row": {sharding.SingleShard, func(db *gorm.DB) error { return db.Create(&Bill{UserID: 1}).Error }, nil},
	"a map with the key 0": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Model(&Bill{}).Create(map[string]any{"note": "x", "user_id": 0}).Error
	}, nil},
	"a batch of one user": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{UserID: 1}, {UserID: 1}}).Error
	}, nil},
	"a batch of one database": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{UserID: 1}, {UserID: 3}}).Error
	}, nil},
	"an upsert": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&[]Bill{{UserID: 1}, {UserID: 3}}).Error
	}, nil},
	"two creates of one user in a transaction": {sharding.SingleShard, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Bill{UserID: 1}).Error, tx.Create(&Bill{UserID: 3}).Error)
		})
	}, nil},
	"a batch by best effort": {sharding.BestEffort, func(db *gorm.DB) error {
		return db.Create(&[]Bill{{UserID: 1}, {UserID: 2}}).Error
	}, nil},
	"an upsert by best effort": {sharding.BestEffort, func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Bill{{UserID: 1}, {UserID: 2}}).Error
	}, nil},
	"two creates by best effort": {sharding.BestEffort, func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Bill{UserID: 1}).Error, tx.Create(&Bill{UserID: 2}).Error)
		})
	}, nil},
}

// Until the switch the source numbers the bills; a preview checks the rest as if they had ids.
func TestAPreviewRefusesTheCreatesThatShardsRefuse(t *testing.T) {
	for what, c := range creates {
		t.Run(what, func(t *testing.T) {
			f := newForeseen(t, "user_id", keygen.Set{Default: keygen.Counting(1000, 1)}, sharding.Migration{Preview: new(sharding.Preview)}, sharding.Transactions(c.mode))
			if err := c.create(f.DB); err != nil {
				t.Fatalf("the source: %v", err)
			}
			expectPreviewed(t, f.preview, c.want)
			f.switches(t)
			if err := c.create(f.DB); !errors.Is(err, c.want) {
				t.Errorf("the shards: %v", err)
			}
		})
	}
}

// expectPreviewed checks that one statement will be refused for a reason, or none.
func expectPreviewed(t *testing.T, p *sharding.Preview, want error) {
	t.Helper()
	var refused []sharding.Previewed
	for _, s := range p.Statements() {
		if s.Change == sharding.WillBeRefused {
			refused = append(refused, s)
		}
	}
	if want == nil && len(refused) > 0 || want != nil && (len(refused) != 1 || !errors.Is(refused[0].Err, want)) {
		t.Errorf("previewed %+v, want %v", refused, want)
	}
}

func TestAStrictSourceRefusesTheCreatesThatShardsRefuse(t *testing.T) {
	for what, c := range creates {
		t.Run(what, func(t *testing.T) {
			f := newForeseen(t, "user_id", keygen.Set{Default: keygen.Counting(1000, 1)}, sharding.Migration{Strict: true}, sharding.Transactions(c.mode))
			want := c.want
			if want == sharding.ErrNotNumbered { //nolint:errorlint // the table's own value
				want = nil // no other INSERT is correct before the switch
			}
			err := c.create(f.DB)
			if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "Migration.Strict") {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// Without a generator nobody makes the ids.
func TestAPreviewRefusesCreatesOfRowsThatNobodyNumbers(t *testing.T) {
	f := newForeseen(t, "user_id", keygen.Set{}, sharding.Migration{Preview: new(sharding.Preview)})
	type bill struct{ ID, UserID int64 }
	if err := f.Table("bills").Select("UserID").Create(&bill{UserID: 1}).Error; err == nil {
		t.Fatal("the column note is NOT NULL")
	}
	expectPreviewed(t, f.preview, sharding.ErrNotNumbered)
}

// Ids that lead to the shards are not known before a generator makes them.
func TestAPreviewFindsRowsThatTheirIDsMayPlaceInSeveralDatabases(t *testing.T) {
	for what, c := range map[string]struct {
		mode   sharding.TxMode
		create func(*gorm.DB) error
		want   error
	}{
		"a batch": {sharding.SingleShard, func(db *gorm.DB) error { return db.Create(&[]Bill{{}, {}}).Error }, sharding.ErrCrossDatabase},
		"two creates": {sharding.SingleShard, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Create(&Bill{}).Error, tx.Create(&Bill{}).Error) })
		}, sharding.ErrCrossDatabase},
		"a batch by best effort": {sharding.BestEffort, func(db *gorm.DB) error { return db.Create(&[]Bill{{}, {}}).Error }, nil},
		"a row":                  {sharding.SingleShard, func(db *gorm.DB) error { return db.Create(&Bill{}).Error }, nil},
		"a row, and a statement about it": {sharding.SingleShard, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				row := Bill{}
				return errors.Join(tx.Create(&row).Error, tx.Model(&row).Update("note", "x").Error)
			})
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			f := newForeseen(t, "id", keygen.Set{Default: keygen.Counting(1000, 1)}, sharding.Migration{Preview: new(sharding.Preview)}, sharding.Transactions(c.mode))
			if err := c.create(f.DB); err != nil {
				t.Fatalf("the source: %v", err)
			}
			expectPreviewed(t, f.preview, c.want)
			f.switches(t)
			if err := c.create(f.DB); !errors.Is(err, c.want) {
				t.Errorf("the shards: %v", err)
			}
		})
	}
}
