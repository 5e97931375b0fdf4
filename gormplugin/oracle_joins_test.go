// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
)

// bill and billLine are an order and its item whose ids the program sets.
type bill struct {
	ID     int64
	UserID int64
	Note   string
	Lines  []billLine `gorm:"foreignKey:OrderID"`
}

type billLine struct {
	ID      int64
	OrderID int64
	SKU     string
	Order   *bill `gorm:"foreignKey:OrderID"`
}

func (bill) TableName() string     { return "orders" }
func (billLine) TableName() string { return "items" }

// pairing is a group of two tables with random rule, layout and rows, and two
// tables with the same rows.
type pairing struct {
	seed           uint64
	sharded, whole *gorm.DB
	layout         string
}

func newPairing(t *testing.T, seed uint64) *pairing {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	dbs := sharding.DBs{"db0": memory(t), "db1": memory(t)}
	names, n := []string{"db0", "db1"}[:1+r.IntN(2)], 1<<(1+r.IntN(3))
	rule := []sharding.Rule{sharding.Low(3), sharding.Mod(8), sharding.OffsetStep(3, 8)}[r.IntN(3)]
	policy := []sharding.Policy{sharding.Refuse, sharding.FanOutReads}[r.IntN(2)]
	var tables []sharding.Option
	for name, key := range map[string]string{"orders": "id", "items": "order_id"} {
		m, err := sharding.Spread(names, n, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range m.Targets() {
			must(t, dbs[target.DB], fmt.Sprintf(map[string]string{"orders": createOrders, "items": createItems}[name], target.Table))
		}
		tables = append(tables, sharding.Table{Name: name, Key: key, Rule: rule, Map: m, Group: "shop", OnMissing: policy})
	}
	router, err := sharding.New(dbs, tables...)
	if err != nil {
		t.Fatal(err)
	}
	p := &pairing{
		seed: seed, sharded: openGORM(t, memory(t)), whole: openGORM(t, memory(t)),
		layout: fmt.Sprintf("%T, %d tables on %d databases, policy %v", rule, n, len(names), policy),
	}
	if err := p.sharded.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	p.fill(t, r)
	return p
}

// fill stores orders, some without an item, and items, some without an order.
func (p *pairing) fill(t *testing.T, r *rand.Rand) {
	t.Helper()
	if err := errors.Join(p.whole.Exec(fmt.Sprintf(createOrders, "orders")).Error, p.whole.Exec(fmt.Sprintf(createItems, "items")).Error); err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= 12; id++ {
		for _, db := range []*gorm.DB{p.sharded, p.whole} {
			if id%5 > 0 {
				p.store(t, db, &bill{ID: id, UserID: 1 + id%4, Note: []string{"x", "y", ""}[id%3]})
			}
		}
	}
	for id := int64(1); id <= 14; id++ {
		order := 1 + r.Int64N(12)
		for _, db := range []*gorm.DB{p.sharded, p.whole} {
			p.store(t, db, &billLine{ID: id, OrderID: order, SKU: string(rune('a' + id))})
		}
	}
}

func (p *pairing) store(t *testing.T, db *gorm.DB, row any) {
	t.Helper()
	if err := db.Create(row).Error; err != nil {
		t.Fatalf("%s: %v", p.layout, err)
	}
}

// joining generates random queries on orders and their items, with or without an alias.
type joining struct {
	*rand.Rand
	items string
}

func (r joining) key() int64 { return 1 + r.Int64N(12) }

// pick returns one of the texts, with the alias in it.
func (r joining) pick(texts ...string) string {
	return strings.ReplaceAll(texts[r.IntN(len(texts))], "items.", r.items+".")
}

func (r joining) join(tx *gorm.DB) *gorm.DB {
	kind := r.pick("JOIN", "JOIN", "LEFT JOIN", "INNER JOIN", "left outer join", "RIGHT JOIN", "FULL JOIN", "NATURAL JOIN", "CROSS JOIN")
	table := "items"
	if r.items != table {
		table += r.pick(" AS ", " ") + r.items
	}
	on := "items.order_id = orders.id"
	if r.IntN(2) == 0 {
		on = r.pick("orders.id = items.order_id AND items.sku <> 'c'", "(items.order_id = orders.id)",
			"items.order_id = orders.id AND (items.sku = 'd' OR orders.note = 'x')", "items.order_id = orders.id OR items.sku = 'd'",
			"items.order_id = orders.user_id", "items.id = orders.id", "items.order_id = 2", "1 = 1", "NOT items.order_id = orders.id",
			"items.order_id = orders.id AND items.order_id = 3", "items.order_id = orders.id + 0", "items.order_id = +orders.id",
			"items.order_id >= orders.id", "items.order_id = orders.id AND 1 = 1 OR 1 = 1", "orders.id = orders.id AND items.order_id = items.order_id")
	}
	on = strings.ReplaceAll(on, "items.", r.items+".")
	if strings.HasPrefix(kind, "NATURAL") || strings.HasPrefix(kind, "CROSS") && r.IntN(2) == 0 {
		return tx.Joins(kind + " " + table)
	}
	return tx.Joins(kind + " " + table + " ON " + on)
}

// where adds a condition that leads to a shard, or another one.
func (r joining) where(tx *gorm.DB) *gorm.DB {
	switch r.IntN(12) {
	case 0, 1, 2:
		return tx.Where("orders.id = ?", r.key())
	case 3, 4:
		return tx.Where("orders.id IN ?", []int64{r.key(), r.key(), r.key()})
	case 5:
		return tx.Where(r.pick("items.order_id = ?", "orders.id = ? AND items.sku <> 'e'", "orders.id = items.order_id AND orders.id = ?"), r.key())
	case 6:
		return tx.Where(r.pick("(orders.id = ? OR orders.id = ?)", "(orders.id = ? OR items.order_id = ?)", "(orders.id = ? OR items.id = ?)"), r.key(), r.key())
	case 7:
		return tx.Where(&bill{ID: r.key()})
	case 8:
		return tx.Where(r.pick("items.id > ?", "orders.user_id = ?", "NOT orders.id = ?"), r.key())
	case 9:
		return tx.Where("orders.id IN (SELECT order_id FROM items WHERE sku < ?)", "f")
	case 10:
		return tx.Where(r.pick("id = ?", "order_id = ?"), r.key()) // one of which is ambiguous
	}
	return tx
}

// answer reads the joined rows in one of several ways.
func (r joining) answer(tx *gorm.DB) (string, error) {
	var rows []map[string]any
	switch r.IntN(8) {
	case 0:
		var n int64
		err := tx.Count(&n).Error
		return strconv.FormatInt(n, 10), err
	case 1:
		tx = tx.Select(r.pick("COUNT(*) n, SUM(items.id) s, MIN(orders.id) lo, MAX(items.id) hi, AVG(orders.user_id) a"))
	case 2:
		tx = tx.Select("orders.id, COUNT(*) n").Group("orders.id").Order("orders.id")
	case 3:
		tx = tx.Select(r.pick("orders.user_id, SUM(items.id) s")).Group("orders.user_id").Order("orders.user_id DESC")
	case 4:
		tx = tx.Distinct("orders.note").Order("orders.note")
	case 5:
		tx = tx.Select(r.pick("orders.id, items.id item, items.sku")).Order(r.pick("orders.id DESC, items.id")).Limit(1 + r.IntN(4)).Offset(r.IntN(3))
	case 6:
		tx = tx.Select(r.pick("items.sku, orders.note")).Order(r.pick("items.sku DESC, orders.id"))
	default:
		tx = tx.Select(r.pick("orders.id, orders.note, items.id AS item, items.order_id")).Order(r.pick("orders.id, items.id"))
	}
	err := tx.Find(&rows).Error
	return fmt.Sprint(rows), err
}

// related reads with gorm's own relations.
func (r joining) related(db *gorm.DB) (string, error) {
	sorted := func(tx *gorm.DB) *gorm.DB { return tx.Order("items.id") }
	var bills []bill
	var lines []billLine
	var err error
	switch r.IntN(8) {
	case 0:
		err = r.where(db.Preload("Lines", sorted)).Order("orders.id").Find(&bills).Error
	case 1:
		err = db.Preload("Lines", func(tx *gorm.DB) *gorm.DB { return sorted(tx).Where("sku > ?", "e") }).Preload("Lines.Order").
			Where("id IN ?", []int64{r.key(), r.key()}).Order("id DESC").Find(&bills).Error
	case 2:
		err = db.Joins("Order").Where("items.order_id = ?", r.key()).Order("items.id").Find(&lines).Error
	case 3:
		err = db.InnerJoins("Order").Where("items.order_id IN ?", []int64{r.key(), r.key()}).Order("items.id").Find(&lines).Error
	case 4:
		err = db.Joins("Order", db.Where(&bill{Note: "x"})).Where("items.order_id = ? AND items.id > ?", r.key(), r.key()).Order("items.id").Find(&lines).Error
	case 5:
		err = db.Preload("Order").Where("order_id = ? OR order_id = ?", r.key(), r.key()).Order("id").Find(&lines).Error
	case 6:
		err = db.Model(&bill{ID: r.key()}).Order("id").Association("Lines").Find(&lines, "sku <> ?", "c")
	default:
		of := db.Model(&[]bill{{ID: r.key()}, {ID: r.key()}}).Association("Lines")
		n := of.Count()
		return strconv.FormatInt(n, 10), of.Error
	}
	text, failed := json.Marshal([]any{bills, lines})
	return string(text), errors.Join(err, failed)
}

// query is a random query.
func (p *pairing) query(seed uint64, db *gorm.DB) (string, error) {
	r := joining{rand.New(rand.NewPCG(seed, p.seed)), "items"}
	db = db.Session(&gorm.Session{})
	if r.IntN(4) == 0 {
		return r.related(db)
	}
	if r.IntN(3) == 0 {
		r.items = "i"
	}
	return r.answer(r.where(r.where(r.join(db.Model(&bill{})))))
}

func (p *pairing) compare(t *testing.T, seed uint64, all *tally) {
	t.Helper()
	want, failure := p.query(seed, p.whole)
	if failure != nil {
		return // no query that SQLite takes
	}
	got, err := p.query(seed, p.sharded)
	var route *sharding.RouteError
	switch {
	case errors.As(err, &route):
		all.count(route.Err)
	case err != nil:
		t.Fatalf("pairing %d, query %d (%s): %v", p.seed, seed, p.layout, err)
	case got != want:
		t.Fatalf("pairing %d, query %d (%s):\n\tgot  %s\n\twant %s", p.seed, seed, p.layout, got, want)
	default:
		all.count(nil)
	}
}

// TestJoinsAndRelationsEqualThoseOfWholeTablesOrAreRefused sends random queries on two tables of a
// group. The numbers of pairing and query in a failure repeat it.
func TestJoinsAndRelationsEqualThoseOfWholeTablesOrAreRefused(t *testing.T) {
	const pairings = 40
	queries, enough := uint64(250), 5000
	if effort.Race {
		queries, enough = 30, 600
	}
	all := &tally{refused: map[error]int{}}
	t.Run("pairing", func(t *testing.T) {
		for seed := range uint64(pairings) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				p := newPairing(t, seed)
				for query := range queries {
					p.compare(t, query, all)
				}
			})
		}
	})
	t.Logf("%d queries, %.0f %% answered; refused %v", all.asked, 100*all.share(), all.refused)
	if all.asked < enough || all.share() < 0.3 {
		t.Error("too few were answered")
	}
}
