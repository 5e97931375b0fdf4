// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

var byFirst = []Key{{Type: Type{Kind: Integer}}}

// stages are all constructors of rows from two sources with at least three rows each.
var stages = map[string]func(sources []Rows) Rows{
	"concat":   Concat,
	"ordered":  func(s []Rows) Rows { return Ordered(s, byFirst) },
	"limited":  func(s []Rows) Rows { return Limited(Concat(s), 1, -1) },
	"cut":      func(s []Rows) Rows { return Cut(Concat(s), 1) },
	"totalled": func(s []Rows) Rows { return Totalled(Dialect{}, s, nil, []int{0}) },
	"running": func(s []Rows) Rows {
		return Running(Dialect{}, Concat(s), []Window{{Column: 1, Function: RowNumber, Of: -1}})
	},
	"windowed": func(s []Rows) Rows {
		return Windowed(Dialect{}, Concat(s), []Window{{Column: 1, Function: RowNumber, Of: -1}}, NewMemory(1<<20))
	},
	"sorted": func(s []Rows) Rows { return Sorted(Concat(s), byFirst, NewMemory(1<<20)) },
	"distinct": func(s []Rows) Rows {
		return Distinct(Concat(s), byFirst, NewMemory(1<<20))
	},
	"grouped": func(s []Rows) Rows {
		return Grouped(Concat(s), Grouping{Keys: byFirst, Names: columns(1), Aggregates: []Aggregate{{Function: First}}}, NewMemory(1<<20))
	},
	"filtered": func(s []Rows) Rows {
		return Filtered(Concat(s), Constant(int64(1), Integer), nil)
	},
	"computed": func(s []Rows) Rows {
		return Computed(Dialect{Engine: MySQL}, Concat(s), map[int]Expr{1: Column(0, Integer)}, nil)
	},
}

func numbers(from, n int) [][]driver.Value {
	var rows [][]driver.Value
	for i := range n {
		rows = append(rows, []driver.Value{int64(from + i), nil})
	}
	return rows
}

func TestEachSourceIsClosedOnce(t *testing.T) {
	for name, stage := range stages {
		for reads := range 8 {
			sources := of(numbers(1, 3), numbers(2, 3))
			rows := stage(slices.Clone(sources))
			dest := make([]driver.Value, len(rows.Columns()))
			for range reads {
				if err := rows.Next(dest); err != nil && !errors.Is(err, io.EOF) {
					t.Fatalf("%s: %v", name, err)
				}
			}
			for range 2 {
				if err := rows.Close(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			for i, s := range sources {
				if n := s.(*source).closed; n != 1 {
					t.Errorf("%s, %d rows read: source %d was closed %d times", name, reads, i, n)
				}
			}
			if err := rows.Next(dest); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s: Next after Close returned %v", name, err)
			}
		}
	}
}

func TestAnErrorOfASourceIsReturnedAgain(t *testing.T) {
	lost := errors.New("connection lost")
	for name, stage := range stages {
		for after := range 3 {
			sources := of(numbers(1, after), numbers(2, 3))
			sources[0].(*source).fails = lost
			sources[0].(*source).columns = columns(2)
			rows := stage(slices.Clone(sources))
			if _, err := readTo(rows); !errors.Is(err, lost) {
				t.Errorf("%s: %v after %d rows, want the source's error", name, err, after)
			}
			if err := rows.Next(make([]driver.Value, len(rows.Columns()))); !errors.Is(err, lost) {
				t.Errorf("%s: then %v, want the same error", name, err)
			}
			if err := rows.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for i, s := range sources {
				if n := s.(*source).closed; n != 1 {
					t.Errorf("%s: source %d was closed %d times", name, i, n)
				}
			}
		}
	}
}

// sticky is a source that cannot be closed.
type sticky struct{ Rows }

func (s sticky) Close() error { return errors.Join(s.Rows.Close(), errSticky) }

var errSticky = errors.New("cannot close")

func TestAnErrorOfClosingIsReturnedByClose(t *testing.T) {
	for name, stage := range stages {
		sources := of(numbers(1, 3), numbers(2, 3))
		sources[0] = sticky{sources[0]}
		rows := stage(sources)
		if _, err := readTo(rows); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := rows.Close(); !errors.Is(err, errSticky) {
			t.Errorf("%s: Close returned %v", name, err)
		}
	}
}

func TestColumnsAreKnownAfterTheLastRow(t *testing.T) {
	for name, stage := range stages {
		rows := stage(of(numbers(1, 3), numbers(2, 3)))
		before := slices.Clone(rows.Columns())
		if _, err := readTo(rows); err != nil {
			t.Fatal(err)
		}
		if got := rows.Columns(); len(got) == 0 || !slices.Equal(got, before) {
			t.Errorf("%s: %v, before %v", name, got, before)
		}
	}
}

func TestLimitAndOffsetCutWhatASliceWould(t *testing.T) {
	for offset := range 8 {
		for count := -1; count < 8; count++ {
			all := slices.Concat(numbers(0, 3), numbers(3, 3))
			want := all[min(offset, len(all)):]
			if count >= 0 {
				want = want[:min(count, len(want))]
			}
			got := read(t, Limited(Concat(of(numbers(0, 3), numbers(3, 3))), int64(offset), int64(count)))
			if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("LIMIT %d OFFSET %d: %v, want %v", count, offset, got, want)
			}
		}
	}
}

func TestALimitReadsNoMoreThanItNeeds(t *testing.T) {
	sources := of(numbers(0, 5))
	rows := Limited(sources[0], 1, 2)
	read(t, rows)
	if n := sources[0].(*source).reads; n != 3 {
		t.Fatalf("%d rows were read for LIMIT 2 OFFSET 1", n)
	}
}

func TestHiddenColumnsAreCut(t *testing.T) {
	rows := Cut(of([][]driver.Value{{"a", "weight"}})[0], 1)
	if got := rows.Columns(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("columns %v", got)
	}
	if got := read(t, rows); !reflect.DeepEqual(got, [][]driver.Value{{"a"}}) {
		t.Errorf("rows %v", got)
	}
}

func TestDistinctKeepsTheFirstOfEqualRows(t *testing.T) {
	r := random(3)
	for range 500 {
		all := domains()
		d := all[r.IntN(len(all))]
		keys := []Key{{Column: 0, Type: d.typ}}
		var rows [][]driver.Value
		for i := range r.IntN(40) {
			rows = append(rows, []driver.Value{orNull(r, d.make(r)), strconv.Itoa(i)})
		}
		equal := func(a, b driver.Value) bool { return compareWithNulls(keys[0], a, b, d.compare) == 0 }
		var want [][]driver.Value
		for _, row := range rows {
			if !slices.ContainsFunc(want, func(w []driver.Value) bool { return equal(w[0], row[0]) }) {
				want = append(want, row)
			}
		}
		got := read(t, Distinct(Concat(of(rows)), keys, NewMemory(1<<20)))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %q, want %q", d.name, got, want)
		}
	}
}

func TestTheMemoryErrorNamesTheLimit(t *testing.T) {
	const n = 10_000
	bounded := func(bytes int64) map[string]Rows {
		m := func() *Memory { return NewMemory(bytes) }
		wide := func() Rows {
			rows := numbers(0, n)
			for _, row := range rows {
				row[1] = make([]byte, 100)
			}
			return of(rows)[0]
		}
		return map[string]Rows{
			"sorted":   Sorted(wide(), byFirst, m()),
			"distinct": Distinct(wide(), byFirst, m()),
			"grouped": Grouped(wide(), Grouping{Keys: byFirst, Names: columns(2), Aggregates: []Aggregate{
				{Function: First, Column: 0}, {Function: Max, Column: 1, By: Key{Column: 1, Type: Type{Kind: Bytes}}},
			}}, m()),
			"count distinct": Grouped(wide(), Grouping{Names: columns(1), Aggregates: []Aggregate{{Function: Count, Distinct: byFirst}}}, m()),
		}
	}
	for name, rows := range bounded(50 * n) {
		var tooLarge *MemoryError
		if _, err := readTo(rows); !errors.As(err, &tooLarge) || tooLarge.Limit != 50*n {
			t.Errorf("%s: %v, want a MemoryError", name, err)
		}
	}
	for name, rows := range bounded(1000 * n) {
		if _, err := readTo(rows); err != nil {
			t.Errorf("%s within the bound: %v", name, err)
		}
	}
}

func TestGroupsReleaseTheirMemoryForTheSort(t *testing.T) {
	by := Grouping{Keys: byFirst, Names: columns(1), Aggregates: []Aggregate{{Function: First}}}
	groups := func(m *Memory) Rows { return Grouped(of(numbers(0, 1000))[0], by, m) }
	memory := NewMemory(1 << 20)
	if got := read(t, groups(memory)); len(got) != 1000 || memory.used.Load() != 0 {
		t.Fatalf("%d groups, %d bytes are held", len(got), memory.used.Load())
	}
}

func TestASourceIsClosedBeforeTheNextOneIsRead(t *testing.T) {
	sources := of(numbers(0, 1), numbers(1, 1))
	rows := Concat(sources)
	dest := make([]driver.Value, 2)
	for range 2 {
		if err := rows.Next(dest); err != nil {
			t.Fatal(err)
		}
	}
	if first := sources[0].(*source); first.closed != 1 {
		t.Errorf("the first source was closed %d times", first.closed)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCountedRowsAreOneRow(t *testing.T) {
	rows := Counted(of([][]driver.Value{{"a", int64(1)}, {"b", int64(2)}, {"b", int64(3)}})[0], "n")
	if got := rows.Columns(); !slices.Equal(got, []string{"n"}) {
		t.Error(got)
	}
	if got, want := read(t, rows), [][]driver.Value{{int64(3)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := read(t, Counted(of(nil)[0], "n")), [][]driver.Value{{int64(0)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
