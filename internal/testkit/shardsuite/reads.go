// SPDX-License-Identifier: Apache-2.0

package shardsuite

import (
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

func selects() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) {
			s.same(s.ids(s.Where("id = ? AND note <> ''", 5)), "[5]")
			s.same(s.ids(s.Where("id = ?", 99)), "[]")
			var o Order
			s.ok(s.First(&o, 5))
			s.same(o.Note, "note 5")
		}),
		Many: usual(func(s *shop) {
			s.same(s.ids(s.Where("id IN ?", []int{7, 2, 99, 4}).Order("id DESC")), "[7 4 2]")
			s.same(s.ids(s.Where("id = 3").Or("id = ?", 6).Order("user_id, id").Limit(1).Offset(1)), "[6]")
		}),
		None: allowing(
			func(s *shop) { s.refuses(sharding.ErrMissingKey, s.Where("user_id = 1").Find(&[]Order{}).Error) },
			func(s *shop) { s.same(s.ids(s.Where("user_id = 1").Order("id").Limit(2).Offset(1)), "[4 7]") }),
		Broadcast: usual(func(s *shop) {
			var r []Region
			s.affects(2, s.Find(&r))
			s.ok(s.First(&Region{}, 2))
		}),
		Raw: usual(func(s *shop) {
			var n int
			s.refuses(sharding.ErrMissingKey, s.DB.Raw("SELECT count(*) FROM orders").Scan(&n).Error)
			s.ok(s.DB.Raw("SELECT count(*) FROM orders WHERE id IN (1, 2, 5)").Scan(&n))
			s.same(n, 3)
			s.ok(s.with(at(5)).Raw("SELECT count(*) FROM orders WHERE orders.note LIKE 'note%'").Scan(&n))
			s.same(n, 2)
		}),
	}
}

const everyAggregate = "COUNT(*) n, SUM(user_id) s, MIN(id) lo, MAX(id) hi, AVG(user_id) a"

// totals returns the aggregates of orders as text.
func (s *shop) totals(tx *gorm.DB) string {
	s.t.Helper()
	var n, lo, hi int64
	var sum, average float64
	row := tx.Model(&Order{}).Select(everyAggregate).Row()
	if err := row.Scan(&n, &sum, &lo, &hi, &average); err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("%d %g %d %d %.3f", n, sum, lo, hi, average)
}

func aggregates() map[Column]test {
	return map[Column]test{
		One:  usual(func(s *shop) { s.same(s.totals(s.Where("id = 5")), "1 2 5 5 2.000") }),
		Many: usual(func(s *shop) { s.same(s.totals(s.Where("id IN ?", []int{1, 2, 4, 5})), "4 6 1 5 1.500") }),
		None: allowing(
			func(s *shop) {
				var n int64
				s.refuses(sharding.ErrMissingKey, s.Model(&Order{}).Count(&n).Error)
			},
			func(s *shop) {
				s.same(s.totals(s.DB), "8 9 1 8 1.125")
				var n int64
				s.ok(s.Model(&Order{}).Distinct("user_id").Count(&n))
				s.same(n, 3)
				s.refuses(sharding.ErrUnmergeable, s.Model(&Order{}).Select("AVG(DISTINCT user_id)").Find(&[]map[string]any{}).Error)
			}),
		Broadcast: usual(func(s *shop) {
			var n int64
			s.ok(s.Model(&Region{}).Count(&n))
			s.same(n, 2)
		}),
	}
}

// grouped returns groups of orders by user.
func (s *shop) grouped(tx *gorm.DB) string {
	s.t.Helper()
	var list []struct {
		UserID, N int64
		A         float64
	}
	s.ok(tx.Model(&Order{}).Select("user_id, count(*) AS n, avg(id) AS a").Group("user_id").Order("user_id").Find(&list))
	return fmt.Sprint(list)
}

func groups() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) { s.same(s.grouped(s.Where("id = 5")), "[{2 1 5}]") }),
		Many: usual(func(s *shop) {
			s.same(s.grouped(s.Where("id IN ?", []int{1, 2, 4, 8})), "[{1 2 2.5} {2 2 5}]")
			var users []int64
			s.ok(s.Model(&Order{}).Where("id IN ?", []int{1, 2, 4, 8}).Distinct("user_id").Order("user_id DESC").Pluck("user_id", &users))
			s.same(users, "[2 1]")
		}),
		None: allowing(
			func(s *shop) {
				s.refuses(sharding.ErrMissingKey, s.Model(&Order{}).Select("user_id").Group("user_id").Find(&[]map[string]any{}).Error)
			},
			func(s *shop) {
				s.same(s.grouped(s.DB), "[{0 2 4.5} {1 3 4} {2 3 5}]")
				var n []int64
				s.ok(s.Model(&Order{}).Select("user_id").Group("user_id").Having("count(*) > 2").Order("user_id").Find(&n))
				s.same(n, "[1 2]")
				s.ok(s.Model(&Item{}).Select("order_id").Group("order_id").Having("count(*) = 1").Order("order_id").Limit(2).Find(&n))
				s.same(n, "[1 2]")
			}),
		Broadcast: usual(func(s *shop) {
			var names []string
			s.ok(s.Model(&Region{}).Distinct("name").Order("name").Pluck("name", &names))
			s.same(names, "[region 1 region 2]")
		}),
	}
}

func joins() map[Column]test {
	skus := func(s *shop, tx *gorm.DB) string {
		var items []Item
		s.ok(tx.InnerJoins("Order").Order("items.order_id").Find(&items))
		var text strings.Builder
		for _, i := range items {
			text.WriteString(i.SKU + " of " + i.Order.Note + "; ")
		}
		return text.String()
	}
	return map[Column]test{
		One: usual(func(s *shop) {
			s.same(skus(s, s.Where("items.order_id = ?", 5)), "sku 5 of note 5; ")
			var o Order
			s.ok(s.Preload("Items").First(&o, 5))
			s.same(o.Items[0].SKU, "sku 5")
		}),
		Many: usual(func(s *shop) {
			s.same(skus(s, s.Where("items.order_id IN ?", []int{2, 5})), "sku 2 of note 2; sku 5 of note 5; ")
			var orders []Order
			s.ok(s.Preload("Items").Order("id").Find(&orders, []int{1, 2, 3}))
			s.same(orders[1].Items[0].SKU, "sku 2")
			var names []string
			s.ok(s.Table("orders AS o").Joins("JOIN items i ON i.order_id = o.id").Where("o.id IN ?", []int{5, 2}).Order("o.id").Pluck("i.sku", &names))
			s.same(names, "[sku 2 sku 5]")
			s.refuses(sharding.ErrMissingKey, s.Joins("JOIN items ON items.id = orders.id").Find(&[]Order{}, "orders.id IN ?", []int{1, 2}).Error)
		}),
		None: usual(func(s *shop) { s.refuses(sharding.ErrMissingKey, s.InnerJoins("Order").Find(&[]Item{}).Error) }),
		Broadcast: usual(func(s *shop) {
			var names []string
			s.ok(s.Model(&Order{}).Joins("JOIN regions r ON r.id = orders.user_id").Where("orders.id = ?", 5).Pluck("r.name", &names))
			s.same(names, "[region 2]")
		}),
		Raw: usual(func(s *shop) {
			s.refuses(sharding.ErrMissingKey, s.DB.Raw("SELECT 1 FROM regions JOIN orders ON 1 = 1").Scan(&[]int{}).Error)
			var n int
			s.ok(s.with(at(5)).Raw("SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id JOIN regions r ON r.id = o.user_id").Scan(&n))
			s.same(n, 2)
		}),
	}
}

func rows() map[Column]test {
	return map[Column]test{
		One: usual(func(s *shop) {
			var note string
			s.same(s.Model(&Order{}).Select("note").Where("id = 5").Row().Scan(&note), "<nil>")
			s.same(note, "note 5")
		}),
		Many: usual(func(s *shop) {
			rows, err := s.Model(&Order{}).Select("id").Where("id IN ?", []int{4, 1}).Order("id").Rows()
			if err != nil {
				s.t.Fatal(err)
			}
			defer func() { s.same(rows.Close(), "<nil>") }()
			var ids []int64
			for rows.Next() {
				var id int64
				s.same(rows.Scan(&id), "<nil>")
				ids = append(ids, id)
			}
			s.same(rows.Err(), "<nil>")
			s.same(ids, "[1 4]")
		}),
		None: usual(func(s *shop) {
			s.refuses(sharding.ErrMissingKey, s.Model(&Order{}).Select("id").Row().Err())
			_, err := s.Model(&Order{}).Rows() //nolint:rowserrcheck,sqlclosecheck // there are none
			s.refuses(sharding.ErrMissingKey, err)
		}),
		Broadcast: usual(func(s *shop) {
			var n int
			s.same(s.Model(&Region{}).Select("max(id)").Row().Scan(&n), "<nil>")
			s.same(n, 2)
		}),
	}
}

func locks() map[Column]test {
	locking := func(s *shop, where string) error {
		return s.Transaction(func(tx *gorm.DB) error {
			if tx.Dialector.Name() == "sqlite" { // SQLite has no such clause, and needs none
				return tx.Where(where).Find(&[]Order{}).Error
			}
			return tx.Clauses(clause.Locking{Strength: "UPDATE"}).Where(where).Find(&[]Order{}).Error
		})
	}
	refused := func(s *shop, where string) error {
		return s.Clauses(clause.Locking{Strength: "UPDATE"}).Where(where).Find(&[]Order{}).Error
	}
	return map[Column]test{
		One: usual(func(s *shop) { s.same(locking(s, "id = 5"), "<nil>") }),
		Many: spanning(
			func(s *shop) { s.same(errors.Is(locking(s, "id IN (1, 2)"), sharding.ErrCrossDatabase), true) },
			func(s *shop) { s.same(locking(s, "id IN (1, 2)"), "<nil>") }),
		None:      usual(func(s *shop) { s.refuses(sharding.ErrMissingKey, refused(s, "user_id = 1")) }),
		Broadcast: usual(func(s *shop) { s.ok(s.Find(&[]Region{}, 1)) }),
	}
}
