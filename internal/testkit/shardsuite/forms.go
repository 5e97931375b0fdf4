// SPDX-License-Identifier: Apache-2.0

package shardsuite

import (
	"database/sql"
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// forms are run one after another, each on the rows that the ones before it have left.
func forms() []form {
	return slices.Concat(readForms(), createForms(), changeForms(), relationForms(), transactionForms())
}

// found returns rows, and the number of rows that gorm reports.
func found(tx *gorm.DB, rows any) (any, error) {
	return []any{tx.RowsAffected, rows}, tx.Error
}

// reading is a form that reads orders by their ids.
func reading(name string, chain func(*gorm.DB) *gorm.DB) form {
	return form{name: name, run: func(db *gorm.DB) (any, error) {
		var orders []Order
		return found(chain(db).Order("id").Find(&orders), &orders)
	}}
}

func readForms() []form {
	return []form{
		reading("not", func(db *gorm.DB) *gorm.DB {
			return db.Not([]int64{1, 2}).Not(map[string]any{"note": []string{"note 3"}})
		}),
		reading("groups", func(db *gorm.DB) *gorm.DB {
			return db.Where(db.Where("id = ?", 2).Where("note <> ''")).Or(db.Where("user_id = ?", 0).Where("id IN ?", []int{3, 4}))
		}),
		reading("struct and map", func(db *gorm.DB) *gorm.DB {
			return db.Where(&Order{UserID: 1}).Or(map[string]any{"id": []int{2, 3}, "user_id": 2})
		}),
		reading("named arguments", func(db *gorm.DB) *gorm.DB {
			return db.Where("id = @id OR note = @note", sql.Named("id", 3), sql.Named("note", "note 4"))
		}),
		reading("clauses", func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.Or(clause.Eq{Column: "id", Value: 2}, clause.Gt{Column: "id", Value: 7}))
		}),
		reading("scopes", func(db *gorm.DB) *gorm.DB {
			return db.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Where("user_id = 1").Limit(2) })
		}),
		reading("empty list", func(db *gorm.DB) *gorm.DB { return db.Where("id IN ?", []int{}) }),
		reading("omit and offset", func(db *gorm.DB) *gorm.DB { return db.Omit("note").Limit(3).Offset(2) }),
		{name: "subquery", run: func(db *gorm.DB) (any, error) {
			var orders []Order
			err := db.Where("id IN (?)", db.Model(&Item{}).Select("order_id")).Order("id").Find(&orders).Error
			return orders, err
		}},
		{name: "first, take and last", run: func(db *gorm.DB) (any, error) {
			var first, taken, last Order
			err := errors.Join(db.First(&first).Error, db.Take(&taken, "id = ?", 3).Error, db.Where("user_id = ?", 1).Last(&last).Error)
			return []Order{first, taken, last}, err
		}},
		{name: "no such row", run: func(db *gorm.DB) (any, error) { return nil, db.First(&Order{}, 999).Error }},
		{name: "maps and other structs", run: func(db *gorm.DB) (any, error) {
			one, all, less := map[string]any{}, []map[string]any{}, []struct{ Note string }{}
			err := errors.Join(db.Model(&Order{}).First(one).Error, db.Table("orders").Order("id").Limit(2).Find(&all).Error, db.Model(&Order{}).Order("id").Find(&less).Error)
			return []any{one, all, less}, err
		}},
		{name: "pluck, count and distinct", run: func(db *gorm.DB) (any, error) {
			var notes []string
			var n, users int64
			var list []int
			err := errors.Join(db.Model(&Order{}).Where("id > 5").Order("id").Pluck("note", &notes).Error, db.Model(&Order{}).Where("user_id > 0").Count(&n).Error,
				db.Model(&Order{}).Distinct().Order("user_id").Pluck("user_id", &list).Error, db.Table("orders").Select("sum(user_id)").Scan(&users).Error)
			return []any{notes, n, users, list}, err
		}},
		{name: "batches", run: func(db *gorm.DB) (any, error) {
			var batch []Order
			var seen []int64
			tx := db.Where("user_id < ?", 2).FindInBatches(&batch, 2, func(*gorm.DB, int) error {
				for _, o := range batch {
					seen = append(seen, o.ID)
				}
				return nil
			})
			return found(tx, seen)
		}},
	}
}

// writing is a form whose result is the value after gorm's call.
func writing(name string, value func() any, write func(*gorm.DB, any) *gorm.DB) form {
	return form{name: name, run: func(db *gorm.DB) (any, error) {
		v := value()
		return found(write(db, v), v)
	}}
}

func order(id int64, note string) func() any {
	return func() any { return &Order{ID: id, UserID: 7, Note: note} }
}

func createForms() []form {
	create := func(db *gorm.DB, v any) *gorm.DB { return db.Create(v) }
	save := func(db *gorm.DB, v any) *gorm.DB { return db.Save(v) }
	return []form{
		writing("create", order(0, "created"), create),
		writing("create pointers", func() any { return []*Order{{Note: "p1"}, {ID: 31, Note: "p2"}, {Note: "p3"}} }, create),
		writing("create in batches", func() any { return &[]Order{{Note: "b1"}, {Note: "b2"}, {Note: "b3"}} }, func(db *gorm.DB, v any) *gorm.DB { return db.CreateInBatches(v, 2) }),
		writing("create a map", func() any { return map[string]any{"id": 32, "note": "map"} }, func(db *gorm.DB, v any) *gorm.DB { return db.Model(&Order{}).Create(v) }),
		writing("create with rows beside it", func() any { return &Order{ID: 33, Items: []Item{{SKU: "i1"}, {SKU: "i2"}}} }, create),
		writing("create without some columns", order(34, "no"), func(db *gorm.DB, v any) *gorm.DB { return db.Omit("Note", "Items").Create(v) }),
		writing("create it twice", order(34, "twice"), create),
		writing("save a new row", order(0, "saved"), save),
		writing("save a row with an id", order(35, "saved"), save),
		writing("save a row that is there", order(3, "saved"), save),
		writing("save a list", func() any { return &[]Order{{ID: 4, Note: "list"}, {Note: "list"}} }, save),
		writing("update on conflict", func() any { return &[]Order{{ID: 5, Note: "up"}, {ID: 36, Note: "up"}} }, func(db *gorm.DB, v any) *gorm.DB {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})}).Create(v)
		}),
		{name: "find or create", run: func(db *gorm.DB) (any, error) {
			var there, fresh, assigned, initial Order
			err := errors.Join(db.Where(Order{ID: 6}).FirstOrCreate(&there).Error, db.Where("id = ?", 37).Attrs(Order{ID: 37, Note: "attr"}).FirstOrCreate(&fresh).Error,
				db.Where("id = ?", 6).Assign(Order{Note: "assigned"}).FirstOrCreate(&assigned).Error, db.Where("id = ?", 38).Attrs(Order{Note: "init"}).FirstOrInit(&initial).Error)
			return []Order{there, fresh, assigned, initial}, err
		}},
	}
}

func changeForms() []form {
	update := func(name string, write func(*gorm.DB) *gorm.DB) form {
		return form{name: name, run: func(db *gorm.DB) (any, error) { return found(write(db), nil) }}
	}
	return []form{
		update("update by model", func(db *gorm.DB) *gorm.DB { return db.Model(&Order{ID: 1}).Update("Note", "u1") }),
		update("update by condition", func(db *gorm.DB) *gorm.DB {
			return db.Model(&Order{}).Where("user_id = ?", 2).Updates(Order{Note: "u2"})
		}),
		update("update by list", func(db *gorm.DB) *gorm.DB {
			return db.Model(&[]Order{{ID: 1}, {ID: 2}}).Updates(map[string]any{"user_id": 8})
		}),
		update("update with an expression", func(db *gorm.DB) *gorm.DB {
			return db.Model(&Order{}).Where("id IN ?", []int{1, 2, 3}).UpdateColumn("user_id", gorm.Expr("user_id + ?", 1))
		}),
		update("update zero values", func(db *gorm.DB) *gorm.DB { return db.Model(&Order{ID: 2}).Select("note", "user_id").Updates(Order{}) }),
		update("update to the same key", func(db *gorm.DB) *gorm.DB {
			return db.Model(&Order{ID: 2}).Updates(map[string]any{"id": 2, "note": "same"})
		}),
		{name: "update to another key", refused: true, run: func(db *gorm.DB) (any, error) { return nil, db.Model(&Order{ID: 2}).Update("id", 9).Error }},
		{name: "update by subquery", refused: true, run: func(db *gorm.DB) (any, error) {
			return nil, db.Model(&Order{ID: 2}).Update("note", db.Model(&Item{}).Select("max(sku)")).Error
		}},
		update("update without a condition", func(db *gorm.DB) *gorm.DB { return db.Model(&Order{}).Update("note", "all") }),
		update("update all", func(db *gorm.DB) *gorm.DB {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Item{}).Update("sku", gorm.Expr("sku"))
		}),
		update("delete by id", func(db *gorm.DB) *gorm.DB { return db.Delete(&Order{}, []int{31, 32}) }),
		update("delete by model", func(db *gorm.DB) *gorm.DB { return db.Delete(&[]Order{{ID: 33}, {ID: 34}}) }),
		update("delete by condition", func(db *gorm.DB) *gorm.DB { return db.Where("note = ?", "saved").Delete(&Order{}) }),
		update("delete without a condition", func(db *gorm.DB) *gorm.DB { return db.Delete(&Order{}) }),
	}
}

func relationForms() []form {
	items := func(db *gorm.DB) *gorm.Association { return db.Model(&Order{ID: 7}).Association("Items") }
	return []form{
		{name: "preload", run: func(db *gorm.DB) (any, error) {
			var orders []Order
			return found(db.Preload("Items", func(tx *gorm.DB) *gorm.DB { return tx.Where("sku <> ?", "sku 2").Order("items.id") }).Order("id").Find(&orders), &orders)
		}},
		{name: "join", run: func(db *gorm.DB) (any, error) {
			var list []Item
			return found(db.InnerJoins("Order").Where("items.order_id IN ?", []int{2, 5}).Order("items.id").Find(&list), &list)
		}},
		{name: "append, find and count", run: func(db *gorm.DB) (any, error) {
			var list []Item
			err := errors.Join(items(db).Append(&Item{ID: 201, SKU: "a"}, &Item{ID: 202, SKU: "b"}), items(db).Find(&list, "sku <> ?", "none"))
			slices.SortFunc(list, func(a, b Item) int { return int(a.ID - b.ID) })
			return []any{list, items(db).Count()}, err
		}},
		{name: "take out", refused: true, run: func(db *gorm.DB) (any, error) { return nil, items(db).Delete(&Item{ID: 201}) }},
		{name: "remove", run: func(db *gorm.DB) (any, error) {
			return nil, errors.Join(items(db).Unscoped().Delete(&Item{ID: 201}), items(db).Unscoped().Replace(&Item{ID: 203, SKU: "c"}))
		}},
		{name: "clear", run: func(db *gorm.DB) (any, error) { return nil, items(db).Unscoped().Clear() }},
		{name: "delete with the rows beside it", run: func(db *gorm.DB) (any, error) { return found(db.Select("Items").Delete(&Order{ID: 8}), nil) }},
		{name: "save with the rows beside it", run: func(db *gorm.DB) (any, error) {
			o := Order{ID: 6, Note: "full", Items: []Item{{ID: 106, SKU: "renamed"}, {SKU: "added"}}}
			return found(db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&o), &o)
		}},
	}
}

func transactionForms() []form {
	undo := errors.New("undo")
	return []form{
		{name: "nested transactions", run: func(db *gorm.DB) (any, error) {
			return nil, db.Transaction(func(tx *gorm.DB) error {
				kept := tx.Create(&Order{ID: 41, Note: "kept"}).Error
				undone := tx.Transaction(func(nested *gorm.DB) error { return errors.Join(nested.Create(&Order{ID: 45}).Error, undo) })
				if !errors.Is(undone, undo) {
					return undone
				}
				return errors.Join(kept, tx.Model(&Order{ID: 41}).Update("user_id", 3).Error)
			})
		}},
		{name: "a transaction that is rolled back", run: func(db *gorm.DB) (any, error) {
			return nil, db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Delete(&Order{}, 1).Error, tx.Create(&Order{ID: 42}).Error, undo)
			})
		}},
		{name: "savepoints", run: func(db *gorm.DB) (any, error) {
			tx := db.Begin()
			return nil, errors.Join(tx.SavePoint("a").Error, tx.Create(&Order{ID: 43}).Error, tx.RollbackTo("a").Error, tx.Create(&Order{ID: 47}).Error, tx.Commit().Error)
		}},
		{name: "a transaction that has ended", run: func(db *gorm.DB) (any, error) {
			tx := db.Begin()
			return nil, errors.Join(tx.Rollback().Error, tx.Create(&Order{ID: 44}).Error)
		}},
		{name: "generics", run: func(db *gorm.DB) (any, error) {
			ctx := db.Statement.Context
			o := Order{Note: "generic"}
			created := gorm.G[Order](db).Create(ctx, &o)
			n, updated := gorm.G[Order](db).Where("id IN ?", []int64{o.ID, 1}).Update(ctx, "user_id", 5)
			list, read := gorm.G[Order](db).Where("user_id = ?", 5).Order("id").Find(ctx)
			gone, deleted := gorm.G[Order](db).Where("id = ?", o.ID).Delete(ctx)
			return []any{o, n, list, gone}, errors.Join(created, updated, read, deleted)
		}},
	}
}
