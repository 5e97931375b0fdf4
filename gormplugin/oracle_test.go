// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
)

// conditions generates random conditions in every form that gorm accepts. gorm writes some raw
// texts without parentheses, so that an OR in them affects the conditions beside them, with shards
// as without.
type conditions struct{ *rand.Rand }

func (r conditions) key() any {
	id := r.IntN(12) - 1
	return []any{id, int64(id), strconv.Itoa(id), &id}[r.IntN(4)]
}

func (r conditions) keys() []any {
	list := make([]any, r.IntN(4))
	for i := range list {
		list[i] = r.key()
	}
	return list
}

// raw returns a text and its arguments.
func (r conditions) raw(depth int) (string, []any) {
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		return []string{"id = ?", "orders.id = ?", "`orders`.id=?", "id  =\t?", `"id" = ?`}[r.IntN(5)], []any{r.key()}
	case 4:
		return "id IN ?", []any{r.keys()}
	case 5:
		return "id IN (?)", []any{r.keys()}
	case 6:
		return "id IN (?, ?)", []any{r.key(), r.key()}
	case 7:
		return fmt.Sprintf("id = %d", r.IntN(12)), nil
	case 8:
		return "user_id = ?", []any{r.IntN(3)}
	case 9:
		return []string{"note = '?' || 'x'", "note <> 'a AND b'", "user_id BETWEEN 0 AND id", "NOT note IS NULL", "CASE WHEN 1 THEN 1 ELSE id END"}[r.IntN(5)], nil
	case 10:
		return "id > ?", []any{r.IntN(12)}
	}
	if depth == 0 {
		return "1 = 1", nil
	}
	left, a := r.raw(depth - 1)
	right, b := r.raw(depth - 1)
	joiner := []string{" AND ", " and ", "\nAND\t", " OR ", "\tOR\n", " AND NOT "}[r.IntN(6)]
	if r.IntN(4) == 0 {
		left = "(" + left + ")"
	}
	return left + joiner + right, append(a, b...)
}

func (r conditions) expr() clause.Expression {
	column := []any{"id", "orders.id", clause.Column{Name: "id"}, clause.PrimaryColumn, clause.Column{Table: clause.CurrentTable, Name: "ID"}}[r.IntN(5)]
	switch r.IntN(7) {
	case 5:
		n := r.IntN(12)
		return []clause.Expression{
			clause.Gt{Column: column, Value: n}, clause.Gte{Column: column, Value: n}, clause.Lt{Column: column, Value: n},
			clause.Lte{Column: column, Value: n}, clause.Like{Column: "note", Value: "%x"},
		}[r.IntN(5)]
	case 0:
		return clause.Eq{Column: column, Value: r.key()}
	case 1:
		return clause.Eq{Column: column, Value: r.keys()}
	case 2:
		return clause.IN{Column: column, Values: r.keys()}
	case 3:
		return clause.Neq{Column: column, Value: r.key()}
	case 4:
		return clause.Eq{Column: "user_id", Value: r.IntN(3)}
	}
	return clause.Eq{Column: column, Value: gorm.Expr("user_id OR note = 'x'")}
}

// apply adds a condition to tx; base creates groups.
func (r conditions) apply(base, tx *gorm.DB, depth int) *gorm.DB {
	add := []func(any, ...any) *gorm.DB{tx.Where, tx.Where, tx.Where, tx.Or, tx.Not}[r.IntN(5)]
	switch r.IntN(6) {
	case 0:
		return add(map[string]any{"id": r.key(), "user_id": r.IntN(3)})
	case 1:
		return add(r.expr())
	case 2:
		if depth > 0 {
			group := base.Session(&gorm.Session{NewDB: true})
			return add(r.apply(base, r.apply(base, group, depth-1), depth-1))
		}
		return add("id", r.key())
	case 3:
		return add(&Order{ID: int64(r.IntN(12)), UserID: int64(r.IntN(3))})
	}
	text, args := r.raw(depth)
	return add(text, args...)
}

// world is a sharded table with random rule, layout, key and rows, and one table
// with the same rows.
type world struct {
	seed           uint64
	sharded, whole *gorm.DB
	key            string
	layout         string
}

// memory opens a database that exists as long as its only connection.
func memory(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	w := &world{seed: seed, key: []string{"id", "user_id"}[r.IntN(2)]}
	dbs := sharding.DBs{"db0": memory(t), "db1": memory(t)}
	tables := 1 << (1 + r.IntN(3))
	m, err := sharding.Spread([]string{"db0", "db1"}[:1+r.IntN(2)], tables, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	table := sharding.Table{
		Name: "orders", Key: w.key, Map: m, OnMissing: []sharding.Policy{sharding.Refuse, sharding.FanOutReads, sharding.FanOutReads}[r.IntN(3)],
		Rule: []sharding.Rule{sharding.Low(3), sharding.Mod(8), sharding.OffsetStep(3, 8)}[r.IntN(3)],
	}
	gene := w.key == "user_id" && r.IntN(2) == 0
	if gene {
		table.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(3), From: 40}}
	}
	router, err := sharding.New(dbs, table)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range router.Targets("orders") {
		must(t, dbs[target.DB], fmt.Sprintf(createOrders, target.Table))
	}
	w.sharded, w.whole = openGORM(t, memory(t)), openGORM(t, memory(t))
	if err := w.sharded.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	w.layout = fmt.Sprintf("key %s, %T, %d tables, policy %v, gene %t", w.key, table.Rule, tables, table.OnMissing, gene)
	w.fill(t, r, table, gene)
	return w
}

func (w *world) fill(t *testing.T, r *rand.Rand, table sharding.Table, gene bool) {
	t.Helper()
	if err := w.whole.Exec(fmt.Sprintf(createOrders, "orders")).Error; err != nil {
		t.Fatal(err)
	}
	for id := range int64(r.IntN(25)) {
		o := Order{ID: id - 1, UserID: int64(r.IntN(9)) - 1, Note: []string{"", "x", "?x", "Y"}[r.IntN(4)]}
		if w.key == "user_id" && o.UserID == 0 {
			o.UserID = 3
		}
		if gene && id > 4 {
			slot, err := table.Rule.Slot(o.UserID)
			if err != nil {
				t.Fatal(err)
			}
			o.ID = 40 + 8*id + int64(slot)
		}
		if o.ID == 0 {
			continue // gorm leaves it to the database
		}
		for _, db := range []*gorm.DB{w.sharded, w.whole} {
			row := map[string]any{"id": o.ID, "user_id": o.UserID, "note": o.Note} // gorm adds to it
			if err := db.Table("orders").Create(row).Error; err != nil {
				t.Fatalf("%s: %v", w.layout, err)
			}
		}
	}
}

// query is a random query. keyed says that it has a key in a promised form.
func (w *world) query(seed uint64) (query func(db *gorm.DB) (string, error), keyed bool) {
	source := rand.NewPCG(seed, w.seed)
	keyed = conditions{rand.New(source)}.IntN(2) == 0
	return func(db *gorm.DB) (string, error) {
		again := *source // each database is asked the same
		r := conditions{rand.New(&again)}
		tx := db.Session(&gorm.Session{}).Model(&Order{})
		if keyed {
			tx = w.keyed(r, tx)
			if r.IntN(2) == 0 {
				tx = tx.Where(r.apply(db, db.Session(&gorm.Session{NewDB: true}), 1))
			}
		} else {
			for range 1 + r.IntN(2) {
				tx = r.apply(db, tx, 2)
			}
		}
		return answer(r, tx)
	}, keyed
}

// keyed adds a condition on the key in one of the forms that lead to a shard.
func (w *world) keyed(r conditions, tx *gorm.DB) *gorm.DB {
	switch r.IntN(8) {
	case 0:
		return tx.Where(w.key+" IN ?", r.keys())
	case 1:
		return tx.Where(w.key+" = ? OR (orders."+w.key+" = ? AND note <> 'x')", r.key(), r.key())
	case 2:
		return tx.Where(map[string]any{w.key: r.IntN(12)})
	case 3:
		return tx.Where(w.key+" = @k AND user_id BETWEEN -5 AND 50", map[string]any{"k": r.IntN(12)})
	case 4:
		return tx.Where(clause.IN{Column: clause.Column{Table: clause.CurrentTable, Name: w.key}, Values: r.keys()})
	case 5:
		return tx.Where("user_id NOT BETWEEN 90 AND 99 AND "+w.key+" IN (?)", []int{r.IntN(12), r.IntN(12)})
	case 6:
		return tx.Where(w.key, r.IntN(12))
	}
	return tx.Where(w.key+" = ?", r.key())
}

// answer runs one of several kinds of queries and returns the result as text.
func answer(r conditions, tx *gorm.DB) (string, error) {
	var rows []map[string]any
	switch r.IntN(10) {
	case 0:
		var n int64
		err := tx.Count(&n).Error
		return strconv.FormatInt(n, 10), err
	case 1:
		tx = tx.Select("COUNT(*) n, SUM(user_id) s, MIN(id) lo, MAX(note) hi, AVG(user_id) a, COALESCE(SUM(id), 0) z, IFNULL(sum(user_id + 0.5), 0)")
	case 2:
		tx = tx.Select("note, COUNT(*) AS n, AVG(id) a").Group("note").Order("note DESC")
	case 3:
		tx = tx.Select("user_id, MAX(id) AS hi").Group("user_id").Order("hi, user_id")
	case 4:
		tx = tx.Distinct("note").Order("note")
	case 5:
		tx = tx.Order("note DESC").Order("user_id, orders.id DESC").Limit(1 + r.IntN(4)).Offset(r.IntN(3))
	case 6:
		tx = tx.Select("note").Order("id DESC").Limit(r.IntN(5))
	default:
		tx = tx.Order("id")
	}
	err := tx.Find(&rows).Error
	return fmt.Sprint(rows), err
}

// tally counts the outcomes of queries. It is safe for concurrent use.
type tally struct {
	mu              sync.Mutex
	answered, asked int
	refused         map[error]int
}

func (y *tally) count(refusal error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked++
	if refusal == nil {
		y.answered++
		return
	}
	y.refused[refusal]++
}

func (y *tally) share() float64 { return float64(y.answered) / float64(max(y.asked, 1)) }

// compare queries both sides and counts the outcome.
func (w *world) compare(t *testing.T, seed uint64, all, promised *tally) {
	t.Helper()
	query, keyed := w.query(seed)
	want, failure := query(w.whole)
	if failure != nil {
		return // no query that SQLite takes
	}
	got, err := query(w.sharded)
	var refusal error
	if route := (*sharding.RouteError)(nil); errors.As(err, &route) {
		refusal = route.Err
	} else if err != nil {
		t.Fatalf("world %d, query %d (%s): %v", w.seed, seed, w.layout, err)
	}
	if err == nil && got != want {
		t.Fatalf("world %d, query %d (%s):\n\tgot  %s\n\twant %s", w.seed, seed, w.layout, got, want)
	}
	all.count(refusal)
	if keyed {
		promised.count(refusal)
	}
}

// TestRoutedResultsEqualThoseOfOneTableOrAreRefused sends more than 25,000 random queries, more than 100,000 in
// the long run, and some thousand under the race detector. The numbers of world and query in a failure repeat
// it.
func TestRoutedResultsEqualThoseOfOneTableOrAreRefused(t *testing.T) {
	const worlds = 60
	queries := effort.Cases[uint64](450, 1800)
	enough := int(queries) * worlds * 9 / 10 // SQLite refuses some
	all, promised := &tally{refused: map[error]int{}}, &tally{refused: map[error]int{}}
	t.Run("world", func(t *testing.T) {
		for seed := range uint64(worlds) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed)
				for query := range queries {
					w.compare(t, query, all, promised)
				}
			})
		}
	})
	t.Logf("%d queries, %.0f %% answered, of %d with a key in a promised form %.0f %%; refused %v",
		all.asked, 100*all.share(), promised.asked, 100*promised.share(), all.refused)
	if all.asked < enough || all.share() < 0.6 || promised.share() < 0.8 {
		t.Error("too few were answered")
	}
}
