// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// open returns a database with the table whole, and its rows distributed over shard0 to shard4.
func open(t *testing.T, r *rand.Rand, declaration string, rows [][]driver.Value) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	names := []string{"whole"}
	for i := range shards {
		names = append(names, fmt.Sprint("shard", i))
	}
	for _, name := range names {
		run(t, db, "CREATE TABLE "+name+" ("+declaration+")")
	}
	for _, row := range rows {
		args := make([]any, len(row))
		for i, v := range row {
			args[i] = v
		}
		places := "(" + strings.TrimSuffix(strings.Repeat("?,", len(row)), ",") + ")"
		run(t, db, "INSERT INTO whole VALUES "+places, args...)
		run(t, db, fmt.Sprintf("INSERT INTO shard%d VALUES %s", r.IntN(shards), places), args...)
	}
	return db
}

const shards = 5

func run(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatal(err)
	}
}

func answer(t *testing.T, db *sql.DB, text string, args ...any) [][]driver.Value {
	t.Helper()
	found, err := db.Query(text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = found.Close() }()
	names, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]driver.Value
	for found.Next() {
		row, to := make([]driver.Value, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = (*any)(&row[i])
		}
		if err := found.Scan(to...); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// answers returns the shards' results of a text with their name for %s.
func answers(t *testing.T, db *sql.DB, text string, width int) []Rows {
	t.Helper()
	var parts [][][]driver.Value
	for i := range shards {
		parts = append(parts, answer(t, db, fmt.Sprintf(text, fmt.Sprint("shard", i))))
	}
	sources := of(parts...)
	for _, s := range sources {
		s.(*source).columns = columns(width)
	}
	return sources
}

// value returns a value that SUM treats as a number, without rounding errors.
func simple(r *rand.Rand) driver.Value {
	return pick(r, nil, int64(r.IntN(9)-4), float64(r.IntN(9))/4, int64(r.IntN(9)-4))
}

func TestMergedResultsEqualSQLitesResultsOfOneTable(t *testing.T) {
	collations := map[string]Collation{"BINARY": Binary, "NOCASE": NoCase, "RTRIM": RTrim}
	for name, collation := range collations {
		r := random(6)
		typ := Type{Kind: Stored, Collation: collation}
		plain := Type{Kind: Stored}
		var rows [][]driver.Value
		for i := range 400 {
			rows = append(rows, []driver.Value{int64(i), orNull(r, stored(r)), simple(r)})
		}
		db := open(t, r, "id INTEGER PRIMARY KEY, g COLLATE "+name+", x", rows)

		t.Run(name+" order", func(t *testing.T) {
			for _, order := range []struct {
				text string
				key  Key
			}{
				{"g", Key{Column: 1, Type: typ, NullsFirst: true}},
				{"g DESC", Key{Column: 1, Type: typ, Desc: true}},
				{"g NULLS LAST", Key{Column: 1, Type: typ}},
			} {
				text := "SELECT id, g FROM %s ORDER BY " + order.text + ", id"
				keys := []Key{order.key, {Column: 0, Type: plain}}
				same(t, read(t, Ordered(answers(t, db, text, 2), keys)), answer(t, db, fmt.Sprintf(text, "whole")))
			}
		})
		t.Run(name+" groups", func(t *testing.T) {
			by := Grouping{Keys: []Key{{Column: 0, Type: typ}}, Names: columns(8), Aggregates: []Aggregate{
				{Function: Count, Column: 1},
				{Function: Count, Column: 2},
				{Function: Sum, Column: 3, Kind: Stored},
				{Function: Min, Column: 4, By: Key{Column: 4, Type: plain}},
				{Function: Max, Column: 5, By: Key{Column: 5, Type: plain}},
				{Function: First, Column: 7},
				{Function: First, Column: 0},
				{Function: Min, Column: 6, By: Key{Column: 6, Type: plain}},
			}}
			parts := answers(t, db, "SELECT g, COUNT(*), COUNT(x), SUM(x), MIN(x), MAX(x), MIN(id), AVG(x) FROM %s GROUP BY g", 8)
			average := map[int]Expr{5: Arithmetic(lite, '/', Arithmetic(lite, '*', Column(2, Stored), Constant(1.0, Float)), Column(1, Integer))}
			grouped := Sorted(Computed(Dialect{Engine: SQLite}, Grouped(Concat(parts), by, NewMemory(1<<20)), average, nil), []Key{{Column: 7, Type: plain}}, NewMemory(1<<20))
			got := read(t, grouped)
			want := answer(t, db, "SELECT COUNT(*), COUNT(x), SUM(x), MIN(x), MAX(x), AVG(x), g, MIN(id) FROM whole GROUP BY g ORDER BY MIN(id)")
			for _, rows := range [][][]driver.Value{got, want} {
				for _, row := range rows {
					// 1 and 1.0 are equal, so either may be shown.
					for _, i := range []int{3, 4, 6} {
						key, _ := appendKeys(nil, []Key{{Type: typ}}, row[i:])
						row[i] = string(key)
					}
				}
			}
			same(t, got, want)
		})
		t.Run(name+" distinct", func(t *testing.T) {
			got := read(t, Distinct(Concat(answers(t, db, "SELECT DISTINCT g FROM %s", 1)), []Key{{Type: typ}}, NewMemory(1<<20)))
			if want := answer(t, db, "SELECT DISTINCT g FROM whole"); len(got) != len(want) {
				t.Errorf("%d distinct values, want %d", len(got), len(want))
			}
			by := Grouping{Names: columns(1), Aggregates: []Aggregate{{Function: Count, Distinct: []Key{{Type: typ}}}}}
			got = read(t, Grouped(Concat(answers(t, db, "SELECT DISTINCT g FROM %s", 1)), by, NewMemory(1<<20)))
			same(t, got, answer(t, db, "SELECT COUNT(DISTINCT g) FROM whole"))
		})
	}
}

func same(t *testing.T, got, want [][]driver.Value) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// written is an expression with its text.
type written struct {
	Expr

	text string
}

var lite = Dialect{Engine: SQLite}

// expression returns a random expression of numbers.
func expression(r *rand.Rand, depth int) written {
	if depth == 0 {
		if i := r.IntN(6); i < 4 {
			return written{Column(i, Stored), columns(4)[i]}
		}
		v := pick(r, int64(0), int64(1), int64(-3), 0.5, 2.0, nil, int64(math.MaxInt64))
		text := fmt.Sprint(v)
		if f, ok := v.(float64); ok {
			text = fmt.Sprintf("%.1f", f)
		}
		if v == nil {
			text = "NULL"
		}
		return written{Constant(v, Stored), "(" + text + ")"}
	}
	a, b, c := expression(r, depth-1), expression(r, depth-1), expression(r, depth-1)
	switch r.IntN(9) {
	case 0, 1, 2:
		op := "+-*/"[r.IntN(4)]
		return written{Arithmetic(lite, op, a.Expr, b.Expr), "(" + a.text + string(op) + b.text + ")"}
	case 3, 4:
		op := []string{"=", "<>", "<", "<=", ">", ">="}[r.IntN(6)]
		return written{Comparison(lite, op, a.Expr, b.Expr), "(" + a.text + op + b.text + ")"}
	case 5:
		return written{And(a.Expr, Not(b.Expr)), "(" + a.text + " AND NOT " + b.text + ")"}
	case 6:
		return written{Or(a.Expr, IsNull(b.Expr)), "(" + a.text + " OR " + b.text + " IS NULL)"}
	case 7:
		return written{Coalesce(a.Expr, NullIf(lite, b.Expr, c.Expr)), "COALESCE(" + a.text + ", NULLIF(" + b.text + "," + c.text + "))"}
	}
	digits := r.IntN(4)
	return written{Round(lite, a.Expr, digits), fmt.Sprintf("ROUND(%s, %d)", a.text, digits)}
}

func TestSQLiteComputesWhatAnExpressionComputes(t *testing.T) {
	r := random(7)
	db := open(t, r, "a, b, c, d", nil)
	for range 3000 {
		row := []driver.Value{simple(r), simple(r), pick(r, int64(math.MaxInt64), int64(math.MinInt64), 0x1p63, int64(1<<53+1), 0x1p53), nil}
		e := expression(r, 1+r.IntN(3))
		got := read(t, Computed(Dialect{Engine: SQLite}, of([][]driver.Value{append(row, nil)})[0], map[int]Expr{4: e.Expr}, nil))[0][4]
		args := make([]any, len(row))
		for i, v := range row {
			args[i] = v
		}
		want := answer(t, db, "SELECT "+e.text+" FROM (SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d)", args...)[0][0]
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s of %v is %v (%T), want %v (%T)", e.text, row, got, got, want, want)
		}
	}
}

func TestSQLiteRoundsANegativeNumberToMinusZeroBehindAPoint(t *testing.T) {
	db := open(t, random(1), "a", nil)
	for _, f := range []float64{-0.001, -0.004, 0.001, math.Copysign(0, -1), 0, -0.4, -7.001} {
		for digits := range 3 {
			rows := of([][]driver.Value{{f, nil}})[0]
			got := read(t, Computed(lite, rows, map[int]Expr{1: Round(lite, Column(0, Stored), digits)}, nil))[0][1].(float64)
			want := answer(t, db, fmt.Sprintf("SELECT ROUND(?, %d)", digits), f)[0][0].(float64)
			if got != want || math.Signbit(got) != math.Signbit(want) {
				t.Errorf("ROUND(%v, %d) is %v, want %v", f, digits, got, want)
			}
		}
	}
}
