// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// Receipt belongs to an order and is on its shard.
type Receipt struct {
	ID      int64
	OrderID int64
	SKU     string
	Order   Order
}

func (Receipt) TableName() string { return "items" }

func TestTablesOfOneGroupAreJoinedInTheirShard(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads, sharding.Broadcast("regions"))
	for _, name := range c.router.Databases() {
		must(t, c.router.DB(name), "CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
	}
	whole := c.beside(t)
	for name, query := range map[string]func(db *gorm.DB) (any, error){
		"relation": func(db *gorm.DB) (any, error) {
			var r []Receipt
			return &r, db.Joins("Order").Order("items.order_id").Find(&r, "items.order_id = ?", 5).Error
		},
		"inner relation on many shards": func(db *gorm.DB) (any, error) {
			var r []Receipt
			return &r, db.InnerJoins("Order").Order("items.order_id").Find(&r, "items.order_id IN ?", []int{1, 2, 7}).Error
		},
		"by hand": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Joins("JOIN items ON items.order_id = orders.id AND items.sku <> ?", "x").Select("orders.id, items.sku").Order("orders.id DESC").Limit(5))
		},
		"as gorm.io/gen writes it": func(db *gorm.DB) (any, error) {
			keys := clause.Expr{SQL: "? = ?", Vars: []any{clause.Column{Table: "items", Name: "order_id"}, clause.Column{Table: "orders", Name: "id"}}}
			more := clause.Expr{SQL: "? <> ? OR 1", Vars: []any{clause.Column{Table: "items", Name: "sku"}, "x"}}
			join := clause.Join{Type: clause.LeftJoin, Table: clause.Table{Name: "items"}, ON: clause.Where{Exprs: []clause.Expression{more, keys}}}
			return asMaps(db.Model(&Order{}).Clauses(clause.From{Joins: []clause.Join{join}}).Select("orders.id, items.sku").Order("orders.id DESC").Limit(5))
		},
		"right join": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Joins("RIGHT JOIN items ON items.order_id = orders.id").Select("orders.id, items.sku").Where("orders.id = ?", 5).Order("items.sku"))
		},
		"with a subquery": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Joins("JOIN (SELECT * FROM items) x ON x.order_id = orders.id").Select("orders.id, x.sku").Where("orders.id = ?", 5).Order("x.sku"))
		},
		"by the other one's key": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Joins("JOIN items ON items.order_id = orders.id").Select("orders.id, items.sku").Where("items.order_id = 5").Order("items.sku"))
		},
		"with an alias": func(db *gorm.DB) (any, error) {
			return count(db.Model(&Order{}).Joins("LEFT JOIN items AS i ON `orders`.`id` = i.order_id").Where("i.sku = 's3'"))
		},
	} {
		likeOneTable(t, c, whole, name, query)
	}
	c.rec.take()
	if err := c.Joins("JOIN regions r ON r.id = orders.user_id").Find(&[]Order{}, "orders.id = ?", 5).Error; err != nil {
		t.Error(err)
	}
	sameEvents(t, c.rec.take(), "db1: SELECT `orders`.`id`,`orders`.`user_id`,`orders`.`note` FROM `orders_1` AS `orders` JOIN regions r ON r.id = orders.user_id WHERE orders.id = ?")
}

func TestAnORInAConditionOfARelationDoesNotUndoTheComparisonOfTheKeys(t *testing.T) {
	c := newCluster(t)
	c.beside(t)
	read := func(text string) (r []Receipt, err error) {
		return r, c.InnerJoins("Order", c.Where(text)).Order("items.order_id").Find(&r, "items.order_id IN ?", []int{1, 2, 5}).Error
	}
	r, err := read("`Order`.`note` = 'x' OR 1")
	if err != nil || len(r) != 3 || r[0].Order.ID != 1 || r[1].Order.ID != 2 || r[2].Order.ID != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	// gorm does not put parentheses around an OR that it does not see.
	if r, err = read("`Order`.`note` = 'x'\nOR\t1"); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Car and Leg have a relation with the name of its table.
type Car struct{ ID int64 }

func (Car) TableName() string { return "orders" }

type Leg struct {
	ID      int64
	OrderID int64
	Orders  Car `gorm:"foreignKey:OrderID"`
}

func (Leg) TableName() string { return "items" }

func TestARelationMayHaveTheNameOfItsTable(t *testing.T) {
	c := newCluster(t)
	c.beside(t)
	var legs []Leg
	if err := c.Joins("Orders").Find(&legs, "items.order_id = ?", 5).Error; err != nil || len(legs) != 1 || legs[0].Orders.ID != 5 {
		t.Errorf("%+v, %v", legs, err)
	}
}

func TestJoinsThatMayLeaveTheShardAreRefused(t *testing.T) {
	c := newCluster(t)
	orders := func() *gorm.DB { return c.Model(&Order{}).Where("orders.id = ?", 5) }
	for name, tx := range map[string]*gorm.DB{
		"other columns":    orders().Joins("JOIN items ON items.id = orders.id").Find(&[]Order{}),
		"OR":               orders().Joins("JOIN items ON items.order_id = orders.id OR 1").Find(&[]Order{}),
		"no condition":     orders().Joins("JOIN items").Find(&[]Order{}),
		"comma":            orders().Joins(", items").Find(&[]Order{}),
		"table at home":    orders().Joins("JOIN users ON users.id = orders.user_id").Find(&[]Order{}),
		"two joins in one": orders().Joins("JOIN items ON items.order_id = orders.id JOIN users u ON u.id = 1").Find(&[]Order{}),
		"subquery":         orders().Joins("JOIN (?) x ON x.id = orders.id", c.Model(&User{})).Find(&[]Order{}),
		"many to a parent": c.Model(&Order{}).Joins("Items").Where("orders.id = 5").Clauses(clause.From{Tables: []clause.Table{{Name: "users"}}}).Find(&[]Order{}),
	} {
		want := sharding.ErrMissingKey // items of any order
		if slices.Contains([]string{"table at home", "two joins in one", "subquery"}, name) {
			want = sharding.ErrCrossShard
		}
		if !errors.Is(tx.Error, want) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	sameEvents(t, c.rec.take())
}
