// SPDX-License-Identifier: Apache-2.0

package shardsuite

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

func inserts() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) {
			o := Order{Note: "filled"}
			s.affects(1, s.Create(&o))
			s.same(o.ID, 1000)
			s.holds(map[int64]string{1000: "filled"})
		}),
		None: usual(func(s *shop) {
			err := s.Create(&Item{SKU: "x"}).Error
			s.refuses(sharding.ErrMissingKey, err)
			s.refuses(sharding.ErrMissingKey, s.Table("orders").Create(map[string]any{"note": "x"}).Error)
		}),
		Broadcast: usual(func(s *shop) {
			s.affects(1, s.Create(&Region{Name: "new"}))
			s.same(s.regions("new"), "11")
		}),
		Raw: usual(func(s *shop) {
			s.affects(1, s.Exec("INSERT INTO orders (id, user_id, note) VALUES (20, 0, 'raw')"))
			s.affects(1, s.with(at(21)).Exec("INSERT INTO orders (id, user_id, note) VALUES (21, 0, 'raw')"))
			s.holds(map[int64]string{20: "raw", 21: "raw"})
			s.refuses(sharding.ErrMisplaced, s.with(at(21)).Exec("INSERT INTO orders (id, user_id, note) VALUES (?, 0, 'raw')", 22).Error)
			s.affects(1, s.Exec("INSERT INTO regions (id, name) VALUES (3, 'raw')"))
			s.same(s.regions("raw"), "11")
			s.affects(1, s.Exec("INSERT INTO regions (id, name) VALUES (4, SUBSTR(CAST(CURRENT_DATE AS CHAR(10)), 1, 1))"))
			s.same(s.regions("2"), "11")
			s.refuses(sharding.ErrCopies, s.Exec("INSERT INTO regions (id, name) VALUES (5, lower(random()))").Error)
		}),
	}
}

func batches() map[Column]test {
	orders := func(ids ...int64) *[]Order {
		list := make([]Order, len(ids))
		for i, id := range ids {
			list[i] = Order{ID: id, Note: "batch"}
		}
		return &list
	}
	return map[Column]test{
		One: usual(func(s *shop) {
			s.affects(2, s.Create(orders(21, 25)))
			s.holds(map[int64]string{21: "batch", 25: "batch"})
		}),
		Many: spanning(
			func(s *shop) {
				s.affects(3, s.Create(orders(21, 23, 25)))
				s.holds(map[int64]string{21: "batch", 23: "batch", 25: "batch"})
				s.refuses(sharding.ErrCrossDatabase, s.Create(orders(31, 32)).Error)
				s.holds(map[int64]string{31: "-", 32: "-"})
			},
			func(s *shop) {
				list := orders(0, 0, 0, 0, 0)
				s.affects(5, s.CreateInBatches(list, 3))
				for _, o := range *list {
					s.same(s.stored(o.ID), "batch")
				}
			}),
		None: usual(func(s *shop) {
			err := s.Create(&[]Item{{OrderID: 1}, {SKU: "x"}}).Error
			s.refuses(sharding.ErrMissingKey, err)
			var route *sharding.RouteError
			if errors.As(err, &route) && route.Hint != "row 1: set the field OrderID before Create; the zero value counts as none, unless the field is a pointer to it" {
				s.t.Errorf("the hint is %q", route.Hint)
			}
		}),
		Broadcast: usual(func(s *shop) {
			s.affects(2, s.Create(&[]Region{{Name: "new"}, {Name: "new"}}))
			s.same(s.regions("new"), "22")
		}),
		Raw: usual(func(s *shop) {
			s.affects(2, s.Exec("INSERT INTO orders (id, user_id, note) VALUES (29, 0, 'raw'), (31, 0, 'raw')"))
			s.same(errors.Is(s.Exec("INSERT INTO orders (id, user_id) VALUES (32, 0), (33, 0)").Error, sharding.ErrCrossDatabase), true)
			s.affects(2, s.with(at(21)).Exec("INSERT INTO orders (id, user_id, note) VALUES (21, 0, 'raw'), (25, 0, 'raw')"))
			s.holds(map[int64]string{21: "raw", 25: "raw"})
		}),
	}
}

func upserts() map[Column]test {
	all := clause.OnConflict{UpdateAll: true}
	skip := clause.OnConflict{DoNothing: true}
	return map[Column]test{
		One: usual(func(s *shop) {
			s.ok(s.Clauses(all).Create(&Order{ID: 5, Note: "upserted"}))
			s.holds(map[int64]string{5: "upserted"})
			s.ok(s.Clauses(skip).Create(&Order{ID: 5, Note: "skipped"}))
			s.ok(s.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoNothing: true}).Create(&Order{ID: 5, Note: "skipped"}))
			if word := s.ignore(); word != "" {
				s.ok(s.Clauses(clause.Insert{Modifier: word}).Create(&Order{ID: 5, Note: "skipped"}))
			}
			s.ok(s.Clauses(skip).Create(&Item{ID: 105, OrderID: 5, SKU: "skipped"}))
			s.refuses(sharding.ErrKeyChange, s.Clauses(skip).Create(&Item{ID: 105, OrderID: 6}).Error)
			s.holds(map[int64]string{5: "upserted"})
			moved := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"order_id": 6})}
			s.refuses(sharding.ErrKeyChange, s.Clauses(moved).Create(&Item{ID: 105, OrderID: 5}).Error)
		}),
		Many: spanning(
			func(s *shop) {
				s.ok(s.Clauses(all).Create(&[]Order{{ID: 5, Note: "up"}, {ID: 7, Note: "up"}, {ID: 21, Note: "up"}}))
				s.holds(map[int64]string{5: "up", 7: "up", 21: "up"})
				s.ok(s.Clauses(skip).CreateInBatches(&[]Order{{ID: 5}, {ID: 21}, {ID: 23, Note: "new"}, {ID: 7}}, 2))
				s.holds(map[int64]string{5: "up", 7: "up", 21: "up", 23: "new"})
				s.refuses(sharding.ErrCrossDatabase, s.Clauses(all).Create(&[]Order{{ID: 5}, {ID: 6}}).Error)
			},
			func(s *shop) {
				s.ok(s.Clauses(all).Create(&[]Order{{ID: 5, Note: "up"}, {ID: 6, Note: "up"}}))
				s.holds(map[int64]string{5: "up", 6: "up"})
			}),
		None: usual(func(s *shop) { s.refuses(sharding.ErrMissingKey, s.Clauses(all).Create(&Item{ID: 5}).Error) }),
		Broadcast: usual(func(s *shop) {
			s.ok(s.Clauses(all).Create(&Region{ID: 1, Name: "up"}))
			s.same(s.regions("up"), "11")
		}),
		Raw: usual(func(s *shop) {
			replace := "REPLACE INTO orders (id, user_id, note) VALUES (5, 0, '%s')"
			if s.Name() == "postgres" {
				replace = "INSERT INTO orders (id, user_id, note) VALUES (5, 0, '%s') ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, note = excluded.note"
			}
			s.ok(s.with(at(5)).Exec(fmt.Sprintf(replace, "raw")))
			s.holds(map[int64]string{5: "raw"})
			s.ok(s.Exec(fmt.Sprintf(replace, "again")))
			s.holds(map[int64]string{5: "again"})
		}),
	}
}

func changes() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) {
			s.affects(1, s.Model(&Order{ID: 5}).Update("note", "new"))
			s.affects(1, s.Where("orders.note = ?", "note 6").Delete(&Order{}, 6))
			s.affects(1, s.Table("orders AS o").Where("o.id = ?", 7).Update("note", "o"))
			s.affects(1, s.Table("orders").Where("id = ?", 8).Delete(nil)) // MariaDB knows no alias here before 11.6
			s.holds(map[int64]string{5: "new", 6: "-", 7: "o", 8: "-"})
		}),
		Many: spanning(
			func(s *shop) {
				s.affects(2, s.Model(&Order{}).Where("id IN ?", []int{1, 3}).Update("note", "new"))
				s.affects(2, s.Delete(&Order{}, []int{5, 7}))
				s.holds(map[int64]string{1: "new", 3: "new", 5: "-", 7: "-"})
				s.refuses(sharding.ErrCrossDatabase, s.Delete(&Order{}, []int{1, 2}).Error)
			},
			func(s *shop) {
				s.affects(3, s.Model(&Order{}).Where("id IN ?", []int{1, 2, 4, 99}).Update("note", "new"))
				s.affects(2, s.Delete(&[]Order{{ID: 5}, {ID: 6}}))
				s.holds(map[int64]string{1: "new", 2: "new", 4: "new", 5: "-", 6: "-"})
			}),
		None: usual(func(s *shop) {
			s.refuses(sharding.ErrMissingKey, s.Model(&Order{}).Where("user_id = 1").Update("note", "x").Error)
			s.refuses(sharding.ErrMissingKey, s.Where("user_id = 1").Delete(&Order{}).Error)
		}),
		Broadcast: usual(func(s *shop) {
			s.affects(1, s.Model(&Region{ID: 1}).Update("name", "new"))
			s.affects(1, s.Delete(&Region{ID: 2}))
			s.same(s.regions("new")+s.regions("region 2"), "1100")
		}),
		Raw: usual(func(s *shop) {
			s.refuses(sharding.ErrMissingKey, s.Exec("UPDATE orders SET note = 'raw'").Error)
			s.affects(1, s.with(at(5)).Exec("UPDATE orders SET note = 'raw' WHERE orders.id = 5"))
			s.affects(1, s.with(at(6)).Exec("DELETE FROM orders WHERE id = 6"))
			s.holds(map[int64]string{5: "raw", 6: "-"})
			s.affects(1, s.Exec("UPDATE regions SET name = 'two' WHERE id = 2"))
			s.same(s.regions("two"), "11")
			s.refuses(sharding.ErrCrossShard, s.with(at(5)).Exec("DELETE FROM regions WHERE id IN (SELECT user_id FROM orders)").Error)
			s.refuses(sharding.ErrCrossShard, s.with(sharding.AllShards).Exec("DELETE FROM regions WHERE id IN (SELECT user_id FROM orders)").Error)
			s.same(s.regions("region 1"), "11")
			s.affects(1, s.with(sharding.AllShards).Exec("UPDATE regions SET name = 'raw' WHERE id = 1"))
			s.same(s.regions("raw"), "11")
		}),
	}
}

func keyChanges() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) {
			s.ok(s.Save(&Item{ID: 105, OrderID: 5, SKU: "saved"}))
			item := Item{ID: 105, OrderID: 5}
			s.refuses(sharding.ErrKeyChange, s.Model(&item).Update("order_id", 9).Error)
			s.same(item.OrderID, 5)
			s.refuses(sharding.ErrKeyChange, s.Save(&Item{ID: 105, OrderID: 6}).Error)
		}),
		Many: usual(func(s *shop) {
			s.refuses(sharding.ErrKeyChange, s.Model(&Item{}).Where("order_id IN ?", []int{1, 3}).Update("order_id", 3).Error)
		}),
		None: usual(func(s *shop) {
			s.refuses(sharding.ErrMissingKey, s.Model(&Item{}).Where("sku = 'x'").Update("order_id", 3).Error)
		}),
		Raw: usual(func(s *shop) {
			s.refuses(sharding.ErrKeyChange, s.with(at(5)).Exec("UPDATE items SET order_id = 5 WHERE id = 105").Error)
			s.refuses(sharding.ErrKeyChange, s.with(sharding.AllShards).Exec("UPDATE items SET order_id = 6").Error)
		}),
	}
}

func drops() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) { s.refuses(sharding.ErrRawTable, s.Migrator().DropTable(&Order{})) }),
		Raw: usual(func(s *shop) {
			s.refuses(sharding.ErrRawTable, s.Exec("TRUNCATE TABLE orders").Error)
			s.refuses(sharding.ErrRawTable, s.with(at(5)).Exec("DROP TABLE orders").Error)
			s.refuses(sharding.ErrRawTable, s.Exec("DROP TABLE regions").Error)
			s.holds(map[int64]string{5: "note 5"})
		}),
	}
}

func ddl() map[Column]test {
	again := usual(func(s *shop) {
		s.same(gormplugin.Migrate(context.Background(), s.DB, &Order{}, &Item{}, &Region{}), "<nil>")
		s.holds(map[int64]string{5: "note 5"})
	})
	return map[Column]test{
		One:       again,
		Broadcast: again,
		Raw: usual(func(s *shop) {
			s.refuses(sharding.ErrRawTable, s.Exec("ALTER TABLE orders ADD COLUMN x INT").Error)
			s.refuses(sharding.ErrRawTable, s.Exec("ALTER TABLE regions ADD COLUMN x INT").Error)
			s.refuses(sharding.ErrRawTable, s.with(at(5)).Exec("CREATE INDEX i ON orders (note)").Error)
		}),
	}
}

func transactions() map[Column]test {
	fail := errors.New("give up")
	return map[Column]test{
		One: usual(func(s *shop) {
			err := s.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Model(&Order{ID: 5}).Update("note", "x").Error, tx.Create(&Item{OrderID: 5}).Error, fail)
			})
			s.same(errors.Is(err, fail), true)
			s.holds(map[int64]string{5: "note 5"})
		}),
		Many: spanning(
			func(s *shop) {
				err := s.Transaction(func(tx *gorm.DB) error {
					return errors.Join(tx.Model(&Order{ID: 5}).Update("note", "x").Error, tx.Model(&Order{ID: 6}).Update("note", "x").Error)
				})
				s.refuses(sharding.ErrCrossDatabase, err)
				s.holds(map[int64]string{5: "note 5", 6: "note 6"})
			},
			func(s *shop) {
				err := s.Transaction(func(tx *gorm.DB) error {
					return errors.Join(tx.Model(&Order{ID: 5}).Update("note", "x").Error, tx.Model(&Order{ID: 6}).Update("note", "x").Error)
				})
				s.same(err, "<nil>")
				s.holds(map[int64]string{5: "x", 6: "x"})
			}),
		Raw: usual(func(s *shop) {
			err := s.Transaction(func(tx *gorm.DB) error {
				bound := tx.WithContext(at(5)(s.t.Context()))
				return errors.Join(bound.Exec("UPDATE orders SET note = 'x' WHERE id = 5").Error, bound.First(&Order{}, 5).Error)
			})
			s.same(err, "<nil>")
			s.holds(map[int64]string{5: "x"})
		}),
	}
}
