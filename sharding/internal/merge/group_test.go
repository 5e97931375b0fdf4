// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// part aggregates rows of a group and a value in the simplest way, as a target does: group,
// COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v).
func part(rows [][]driver.Value, d domain, scale int) [][]driver.Value {
	var groups [][]driver.Value
	for _, row := range rows {
		i := slices.IndexFunc(groups, func(g []driver.Value) bool { return g[0] == row[0] })
		if i < 0 {
			i = len(groups)
			groups = append(groups, []driver.Value{row[0], int64(0), int64(0), nil, nil, nil})
		}
		g, v := groups[i], row[1]
		g[1] = g[1].(int64) + 1
		if v == nil {
			continue
		}
		g[2] = g[2].(int64) + 1
		total := new(big.Rat)
		if g[3] != nil {
			total = rat(g[3])
		}
		g[3] = total.Add(total, rat(v)).FloatString(scale)
		if g[4] == nil || d.compare(v, g[4]) < 0 {
			g[4] = v
		}
		if g[5] == nil || d.compare(v, g[5]) > 0 {
			g[5] = v
		}
	}
	return groups
}

func TestGroupsOfPartsAreGroupsOfTheWhole(t *testing.T) {
	r := random(4)
	const scale = 2
	value := domain{
		typ: Type{Kind: Decimal},
		make: func(r *rand.Rand) driver.Value {
			return new(big.Rat).Mul(big.NewRat(r.Int64()-1<<62, 100), big.NewRat(r.Int64N(1<<40), 1)).FloatString(scale)
		},
		compare: compareRats,
	}
	byGroup := []Key{{Type: Type{Kind: Integer}, NullsFirst: true}}
	by := Grouping{Keys: byGroup, Names: columns(6), Aggregates: []Aggregate{
		{Function: First},
		{Function: Count, Column: 1},
		{Function: Count, Column: 2},
		{Function: Sum, Column: 3, Kind: Decimal},
		{Function: Min, Column: 4, By: Key{Column: 4, Type: value.typ}},
		{Function: Max, Column: 5, By: Key{Column: 5, Type: value.typ, Desc: true}},
	}}
	for round := range 1000 {
		var rows [][]driver.Value
		for range r.IntN(60) {
			rows = append(rows, []driver.Value{orNull(r, int64(r.IntN(6)-2)), orNull(r, value.make(r))})
		}
		var parts [][][]driver.Value
		for _, rows := range split(r, rows, 1+r.IntN(9)) {
			parts = append(parts, part(rows, value, scale))
		}
		want := read(t, Sorted(of(part(rows, value, scale))[0], byGroup, NewMemory(1<<20)))
		got := read(t, Sorted(Grouped(Concat(of(parts...)), by, NewMemory(1<<20)), byGroup, NewMemory(1<<20)))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
}

func TestDistinctValuesAreCountedOnce(t *testing.T) {
	r := random(5)
	for range 500 {
		var rows [][]driver.Value
		seen, sum := map[string]bool{}, new(big.Rat)
		for range r.IntN(40) {
			v := pick(r, nil, "1.5", "1.50", "2.00", "-3.25", "7.00")
			rows = append(rows, []driver.Value{v})
			if v != nil && !seen[rat(v).String()] {
				seen[rat(v).String()] = true
				sum.Add(sum, rat(v))
			}
		}
		key := []Key{{Type: Type{Kind: Decimal}}}
		by := Grouping{Names: columns(2), Aggregates: []Aggregate{
			{Function: Count, Distinct: key},
			{Function: Sum, Kind: Decimal, Distinct: key},
		}}
		got := read(t, Grouped(Concat(of(split(r, rows, 3)...)), by, NewMemory(1<<20)))
		if len(got) != 1 || got[0][0] != int64(len(seen)) || len(seen) > 0 && rat(got[0][1]).Cmp(sum) != 0 || len(seen) == 0 && got[0][1] != nil {
			t.Fatalf("%v: %v, want %d and %v", rows, got, len(seen), sum)
		}
	}
}

func TestATupleWithANullIsNotCounted(t *testing.T) {
	rows := of([][]driver.Value{{int64(1), nil}, {int64(1), int64(2)}, {nil, int64(2)}, {int64(1), int64(2)}, {int64(2), int64(1)}})[0]
	integer := Type{Kind: Integer}
	by := Grouping{Names: columns(1), Aggregates: []Aggregate{{Function: Count, Distinct: []Key{{Column: 0, Type: integer}, {Column: 1, Type: integer}}}}}
	if got := read(t, Grouped(rows, by, NewMemory(1<<20))); !reflect.DeepEqual(got, [][]driver.Value{{int64(2)}}) {
		t.Fatalf("%v, want 2", got)
	}
}

// NULLIF(MAX(x), 'c') is NULL if the greatest x is 'c', although another shard has another value.
func TestTheValueBesideTheGreatestKeyCountsEvenIfItIsNull(t *testing.T) {
	integer := Type{Kind: Integer}
	for _, c := range []struct {
		function Function
		want     driver.Value
	}{{Max, nil}, {Min, "one"}} {
		rows := of([][]driver.Value{{"none", nil}, {nil, int64(3)}}, [][]driver.Value{{"one", int64(1)}, {"none", nil}})
		by := Grouping{Names: columns(1), Aggregates: []Aggregate{{Function: c.function, Column: 0, By: Key{Column: 1, Type: integer}}}}
		if got := read(t, Grouped(Concat(rows), by, NewMemory(1<<20))); !reflect.DeepEqual(got, [][]driver.Value{{c.want}}) {
			t.Errorf("%v: %v, want %v", c.function, got, c.want)
		}
	}
}

func TestAggregatesWithoutGroupsAreOneRow(t *testing.T) {
	aggregates := []Aggregate{
		{Function: Count, Column: 0},
		{Function: Sum, Column: 0, Kind: Integer},
		{Function: Min, Column: 0, By: byFirst[0]},
	}
	none := of(nil, nil)
	for _, s := range none {
		s.(*source).columns = columns(1)
	}
	got := read(t, Grouped(Concat(none), Grouping{Names: columns(3), Aggregates: aggregates}, NewMemory(1000)))
	if want := [][]driver.Value{{int64(0), nil, nil}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	none = of(nil)
	none[0].(*source).columns = columns(1)
	if got := read(t, Grouped(none[0], Grouping{Keys: byFirst, Names: columns(3), Aggregates: aggregates}, NewMemory(1000))); got != nil {
		t.Errorf("with GROUP BY: %v, want no row", got)
	}
}

func sumOf(kind Kind, values ...driver.Value) (driver.Value, error) {
	var rows [][]driver.Value
	for _, v := range values {
		rows = append(rows, []driver.Value{v})
	}
	all, err := readTo(Grouped(of(rows)[0], Grouping{Names: columns(1), Aggregates: []Aggregate{{Function: Sum, Kind: kind}}}, NewMemory(1<<20)))
	if err != nil {
		return nil, err
	}
	return all[0][0], nil
}

func TestSumsHaveTheTypeOfTheirColumn(t *testing.T) {
	const most = int64(math.MaxInt64)
	for _, test := range []struct {
		kind   Kind
		values []driver.Value
		want   driver.Value
		err    error
	}{
		{Integer, []driver.Value{most, int64(-1), int64(1)}, most, nil},
		{Integer, []driver.Value{most, int64(1), int64(-1)}, most, nil},
		{Integer, []driver.Value{most, int64(1)}, nil, ErrOverflow},
		{Integer, []driver.Value{int64(math.MinInt64), int64(-1)}, nil, ErrOverflow},
		{Integer, []driver.Value{int64(1), "1.5"}, nil, ErrValue},
		{Stored, []driver.Value{most, int64(1)}, nil, ErrOverflow},
		{Stored, []driver.Value{most, int64(1), 0.0}, 0x1p63, nil},
		{Stored, []driver.Value{int64(1), nil, int64(2)}, int64(3), nil},
		{Stored, []driver.Value{int64(1), 0.5}, 1.5, nil},
		{Stored, []driver.Value{math.Inf(1), math.Inf(-1)}, nil, nil},
		{Stored, []driver.Value{math.Inf(1), 1.0}, math.Inf(1), nil},
		{Stored, []driver.Value{"1"}, nil, ErrValue},
		{Decimal, []driver.Value{[]byte("9223372036854775807"), []byte("1")}, []byte("9223372036854775808"), nil},
		{Decimal, []driver.Value{most, most}, []byte("18446744073709551614"), nil},
		{Decimal, []driver.Value{uint64(math.MaxUint64), int64(1)}, []byte("18446744073709551616"), nil},
		{Decimal, []driver.Value{[]byte("1.50"), []byte("-1.50")}, []byte("0.00"), nil},
		{Decimal, []driver.Value{[]byte("-0.07"), []byte("0.02")}, []byte("-0.05"), nil},
		{Decimal, []driver.Value{"1.5", nil}, "1.5", nil},
		{Decimal, []driver.Value{nil, nil}, nil, nil},
		{Decimal, []driver.Value{0.5}, nil, ErrValue},
		{Float, []driver.Value{1e100, 1.0, -1e100}, 1.0, nil},
		{Float, []driver.Value{[]byte("0.5"), float32(0.25), int64(1)}, 1.75, nil},
		{Float, []driver.Value{"x"}, nil, ErrValue},
	} {
		name := fmt.Sprintf("%s %q", kinds[test.kind], test.values)
		got, err := sumOf(test.kind, test.values...)
		if !errors.Is(err, test.err) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v (%T), %v; want %v, %v", name, got, got, err, test.want, test.err)
		}
	}
}

// The averages are those of MariaDB 10.11 and MySQL 9.7.
func TestAnAverageHasTheDigitsThatMySQLGives(t *testing.T) {
	for _, test := range []struct {
		sum, want string
		count     int64
	}{
		{"2", "0.6667", 3},
		{"-2", "-0.6667", 3},
		{"1", "0.5000", 2},
		{"2.00", "0.666667", 3},
		{"0.00002", "0.000006666", 3}, // cut off, as nine digits are a word
		{"0.000002", "0.0000006667", 3},
		{"2.000000000", "0.6666666666667", 3},
		{"0.000000000000000000000000000002", "0.000000000000000000000000000001", 3},
		{"100", "100.0000", 1},
	} {
		got, err := computed(t, Arithmetic(Dialect{Engine: MySQL, Division: Division{More: 4, Most: 30}}, '/', decimalConstant(test.sum), integerConstant(test.count)))
		if err != nil || got != test.want {
			t.Errorf("%s / %d: %v, %v, want %s", test.sum, test.count, got, err, test.want)
		}
	}
}

func TestAGroupShowsTheFirstValueThatIsNotNull(t *testing.T) {
	rows := of([][]driver.Value{{"a", nil}, {"B", nil}}, [][]driver.Value{{"b", nil}, {"A", int64(1)}, {"A", int64(2)}})
	by := Grouping{Keys: []Key{{Type: Type{Kind: Stored, Collation: NoCase}}}, Names: columns(2), Aggregates: []Aggregate{{Function: First}, {Function: First, Column: 1}}}
	if got, want := read(t, Grouped(Concat(rows), by, NewMemory(10_000))), [][]driver.Value{{"a", int64(1)}, {"B", nil}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}
