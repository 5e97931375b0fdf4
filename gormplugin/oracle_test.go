package gormplugin_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// conditions makes random conditions in every form that gorm takes. GORM leaves
// some raw texts without parentheses, so that they reach beyond themselves;
// enclosed gives them parentheses, as the plugin does.
type conditions struct {
	*rand.Rand
	enclosed bool
}

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
	if r.enclosed {
		return clause.Expr{SQL: "(id = user_id OR note = 'x')"}
	}
	return clause.Eq{Column: column, Value: gorm.Expr("user_id OR note = 'x'")}
}

// apply adds a condition to tx; base is what groups are made from.
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
	if r.enclosed {
		text = "(" + text + ")"
	}
	return add(text, args...)
}

func TestRoutedResultsEqualThoseOfOneTableOrAreRefused(t *testing.T) {
	c := newCluster(t)
	whole := openGORM(t, c.rec.open(t, "whole"))
	if err := whole.Exec(strings.ReplaceAll(createOrders, "%s", "orders")).Error; err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= 10; id++ {
		o := Order{ID: id, UserID: id % 3, Note: []string{"", "x", "?x"}[id%3]}
		if err := errors.Join(c.Create(&o).Error, whole.Create(&o).Error); err != nil {
			t.Fatal(err)
		}
	}
	answered, refused := 0, map[error]int{}
	for seed := range uint64(6000) {
		query := func(db *gorm.DB, enclosed bool) (ids []int64, err error) {
			r := conditions{rand.New(rand.NewPCG(seed, 1)), enclosed}
			tx := db.Session(&gorm.Session{}).Model(&Order{})
			for range 1 + r.IntN(3) {
				tx = r.apply(db, tx, 2)
			}
			err = tx.Order("id").Pluck("id", &ids).Error
			return ids, err
		}
		c.rec.take()
		got, err := query(c.DB, false)
		sent := c.rec.take()
		want, plain := query(whole, true)
		if plain != nil {
			continue // not a condition that SQLite takes
		}
		var route *sharding.RouteError
		switch {
		case errors.As(err, &route):
			refused[route.Err]++
			if len(sent) > 0 {
				t.Fatalf("seed %d: refused after sending %v", seed, sent)
			}
		case err != nil:
			t.Fatalf("seed %d: %v; sent %v", seed, err, sent)
		case !slices.Equal(got, want):
			t.Fatalf("seed %d: got %v, want %v; sent %v, unsharded %v", seed, got, want, sent, c.rec.take())
		default:
			answered++
		}
	}
	t.Logf("%d answered, refused: %v", answered, refused)
	if answered < 1000 {
		t.Errorf("only %d of the conditions were answered", answered)
	}
}
