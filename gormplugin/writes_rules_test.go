// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
)

// presetOrder is an order whose id the program sets.
type presetOrder struct {
	ID     int64
	UserID int64
	Note   string
}

func (presetOrder) TableName() string { return "orders" }

var errChangedMind = errors.New("the program rolls back")

// ledger writes to both sides of a world and knows the previous rows.
type ledger struct {
	*world
	before []presetOrder
}

// rows are those of the table, or of all its shards.
func (l *ledger) rows(t *testing.T, db *gorm.DB) []presetOrder {
	t.Helper()
	var list []presetOrder
	if err := db.WithContext(sharding.AllShards(t.Context())).Order("id, user_id").Find(&list).Error; err != nil {
		t.Fatalf("%s: %v", l.layout, err)
	}
	return list
}

// row returns the row of an id with a random note. Its user depends only on the id, so no id is
// given to two rows, which only one table could notice.
func (l *ledger) row(r conditions, id int64) presetOrder {
	row := presetOrder{ID: id, UserID: 1 + id%7, Note: strconv.Itoa(r.IntN(100))}
	for _, known := range l.before {
		if known.ID == id {
			row.UserID = known.UserID
		}
	}
	return row
}

func (l *ledger) matching(r conditions, base, db *gorm.DB) *gorm.DB {
	tx := db.Session(&gorm.Session{}).Model(&presetOrder{})
	if r.IntN(4) > 0 {
		tx = l.keyed(r, tx)
	}
	if r.IntN(2) == 0 {
		tx = r.apply(base, tx, 1)
	}
	return tx
}

// change executes one random write and returns its result.
func (l *ledger) change(r conditions, base, db *gorm.DB) (string, error) {
	row := l.row(r, int64(1+r.IntN(30)))
	var tx *gorm.DB
	switch r.IntN(4) {
	case 0:
		tx = l.update(r, l.matching(r, base, db), row)
	case 1:
		tx = l.matching(r, base, db).Delete(&presetOrder{})
	case 2:
		tx = l.byModel(r, db, &row)
	default:
		return l.store(r, db, row)
	}
	return strconv.FormatInt(tx.RowsAffected, 10), tx.Error
}

func (l *ledger) update(r conditions, tx *gorm.DB, row presetOrder) *gorm.DB {
	switch r.IntN(4) {
	case 0:
		return tx.Update("note", row.Note)
	case 1:
		return tx.Updates(map[string]any{"note": row.Note, "user_id": row.UserID})
	case 2:
		return tx.Updates(presetOrder{Note: row.Note, UserID: row.UserID})
	}
	return tx.UpdateColumn("note", gorm.Expr("note || ?", row.Note))
}

func (l *ledger) byModel(r conditions, db *gorm.DB, row *presetOrder) *gorm.DB {
	switch r.IntN(4) {
	case 0:
		return db.Delete(row)
	case 1:
		return db.Model(row).Update("note", row.Note)
	case 2:
		return db.Model(row).Updates(presetOrder{Note: "u", UserID: int64(1 + r.IntN(7))})
	}
	return db.Save(row)
}

func (l *ledger) store(r conditions, db *gorm.DB, row presetOrder) (string, error) {
	switch r.IntN(5) {
	case 0:
		list := []presetOrder{row}
		for n := range int64(r.IntN(4)) {
			list = append(list, l.row(r, 31+7*n+int64(r.IntN(7))))
		}
		tx := db.Save(&list)
		return strconv.FormatInt(tx.RowsAffected, 10), tx.Error
	case 1:
		tx := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		return strconv.FormatInt(tx.RowsAffected, 10), tx.Error
	case 2:
		tx := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row)
		return strconv.FormatInt(tx.RowsAffected, 10), tx.Error
	case 3:
		noted := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})}
		return "", db.Clauses(noted).Create(&row).Error
	}
	var found presetOrder
	where := map[string]any{"id": row.ID, l.key: map[string]int64{"id": row.ID, "user_id": row.UserID}[l.key]}
	err := db.Where(where).Assign(presetOrder{Note: "found"}).FirstOrCreate(&found).Error
	return fmt.Sprint(found), err
}

// write executes one change, or several in a transaction.
func (l *ledger) write(seed uint64) func(db *gorm.DB) (string, error) {
	r := conditions{rand.New(rand.NewPCG(seed, l.seed))}
	return func(db *gorm.DB) (said string, err error) {
		if r.IntN(4) > 0 {
			return l.change(r, db, db)
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			for range 1 + r.IntN(3) {
				text, err := l.change(r, db, tx)
				if said += text + ";"; err != nil {
					return err
				}
			}
			return []error{nil, nil, errChangedMind}[r.IntN(3)]
		})
		if errors.Is(err, errChangedMind) {
			return said, nil
		}
		return said, err
	}
}

// compare writes to the shards, and to the table unless the shards refused it.
func (l *ledger) compare(t *testing.T, seed uint64, all *tally) {
	t.Helper()
	l.before = l.rows(t, l.whole)
	got, err := l.write(seed)(l.sharded)
	var route *sharding.RouteError
	if errors.As(err, &route) {
		all.count(route.Err)
	} else {
		all.count(nil)
		if want, failure := l.write(seed)(l.whole); !sameFailure(err, failure) || got != want {
			t.Fatalf("world %d, write %d (%s): said %s, %v, not %s, %v", l.seed, seed, l.layout, got, err, want, failure)
		}
	}
	if got, want := fmt.Sprint(l.rows(t, l.sharded)), fmt.Sprint(l.rows(t, l.whole)); got != want {
		t.Fatalf("world %d, write %d (%s), %v:\n\tgot  %s\n\twant %s\n\twas  %v", l.seed, seed, l.layout, err, got, want, l.before)
	}
}

// sameFailure reports whether both succeeded, or gorm refused both because they would change every
// row.
func sameFailure(a, b error) bool {
	return a == nil && b == nil || errors.Is(a, gorm.ErrMissingWhereClause) && errors.Is(b, gorm.ErrMissingWhereClause)
}

// found checks that each row is on the shard of its key.
func (l *ledger) found(t *testing.T) {
	t.Helper()
	for _, row := range l.rows(t, l.whole) {
		var there presetOrder
		err := l.sharded.Where(map[string]any{"id": row.ID, "user_id": row.UserID}).Take(&there).Error
		if err != nil || there != row {
			t.Errorf("world %d (%s): %+v is found as %+v, %v", l.seed, l.layout, row, there, err)
		}
	}
}

// TestRoutedWritesLeaveTheRowsOfOneTableOrAreRefused executes random writes on shards and on one
// table. A refused write, or a transaction with a refused write, must change nothing. The numbers
// of world and write in a failure repeat it together with the writes before it.
func TestRoutedWritesLeaveTheRowsOfOneTableOrAreRefused(t *testing.T) {
	const worlds = 30
	writes, enough := uint64(150), 4000
	if effort.Race {
		writes, enough = 20, 500
	}
	all := &tally{refused: map[error]int{}}
	t.Run("world", func(t *testing.T) {
		for seed := range uint64(worlds) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				l := &ledger{world: newWorld(t, seed)}
				for write := range writes {
					l.compare(t, write, all)
				}
				l.found(t)
			})
		}
	})
	t.Logf("%d writes, %.0f %% done, the others refused", all.asked, 100*all.share())
	if all.asked < enough || all.share() < 0.6 {
		t.Error("too few were done")
	}
}
