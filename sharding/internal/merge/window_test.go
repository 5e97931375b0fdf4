// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

func TestWindowsSeeTheRowsOfTheirPartitions(t *testing.T) {
	rows := [][]driver.Value{ // a partition, a value, and the columns of the windows
		{"b", int64(5), nil, nil, nil, nil, nil},
		{"a", int64(2), nil, nil, nil, nil, nil},
		{"a", nil, nil, nil, nil, nil, nil},
		{"b", int64(5), nil, nil, nil, nil, nil},
		{"b", int64(1), nil, nil, nil, nil, nil},
		{"b", int64(7), nil, nil, nil, nil, nil},
	}
	by, order := []Key{{Column: 0, Type: Type{Kind: Bytes}}}, []Key{{Column: 1, Type: Type{Kind: Integer}, NullsFirst: true}}
	windows := []Window{
		{Column: 2, Function: Sum, Of: 1, Kind: Integer, Partition: by},
		{Column: 3, Function: Sum, Of: 1, Kind: Integer, Order: order},
		{Column: 4, Function: Rank, Of: -1, Partition: by, Order: order},
		{Column: 5, Function: DenseRank, Of: -1, Order: order},
		{Column: 6, Function: Count, Of: 1, Partition: by, Order: order},
	}
	got := read(t, Windowed(Dialect{}, of(rows)[0], windows, NewMemory(1<<20)))
	want := [][]driver.Value{ // in the order of the rows
		{"b", int64(5), int64(18), int64(13), int64(2), int64(4), int64(3)},
		{"a", int64(2), int64(2), int64(3), int64(2), int64(3), int64(1)},
		{"a", nil, int64(2), nil, int64(1), int64(1), int64(0)},
		{"b", int64(5), int64(18), int64(13), int64(2), int64(4), int64(3)},
		{"b", int64(1), int64(18), int64(1), int64(1), int64(2), int64(1)},
		{"b", int64(7), int64(18), int64(20), int64(4), int64(5), int64(4)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestLagAndLeadStayInTheirPartition(t *testing.T) {
	rows := [][]driver.Value{
		{"b", int64(3), []byte("0.30"), nil, int64(0)},
		{"a", int64(1), []byte("0.10"), int64(0), nil},
		{"b", int64(1), nil, nil, nil},
		{"b", int64(2), []byte("0.20"), nil, nil},
	}
	by, order := []Key{{Column: 0, Type: Type{Kind: Bytes}}}, []Key{{Column: 1, Type: Type{Kind: Integer}}}
	got := read(t, Windowed(Dialect{}, of(rows)[0], []Window{
		{Column: 3, Function: Lag, Of: 2, Distance: 1, Partition: by, Order: order},
		{Column: 4, Function: Lead, Of: 2, Distance: 2, Order: slices.Concat(by, order)},
	}, NewMemory(1<<20)))
	want := [][]driver.Value{
		{"b", int64(3), []byte("0.30"), []byte("0.20"), nil},
		{"a", int64(1), []byte("0.10"), nil, []byte("0.20")},
		{"b", int64(1), nil, nil, []byte("0.30")},
		{"b", int64(2), []byte("0.20"), nil, nil},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// MySQL's LAG of an INT UNSIGNED is a BIGINT UNSIGNED, which is another type of Go.
func TestLagAndLeadHaveTheirFormAndNotThatOfTheirColumn(t *testing.T) {
	rows := [][]driver.Value{{int64(1), int64(7), uint64(7)}, {int64(2), int64(8), uint64(8)}, {int64(3), nil, nil}, {int64(4), int64(9), uint64(9)}}
	got := read(t, Windowed(mysql, of(rows)[0], []Window{{Column: 2, Function: Lag, Of: 1, Distance: 1, Kind: Integer, Order: []Key{{Type: Type{Kind: Integer}}}}}, NewMemory(1<<20)))
	want := [][]driver.Value{{int64(1), int64(7), nil}, {int64(2), int64(8), uint64(7)}, {int64(3), nil, uint64(8)}, {int64(4), int64(9), nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v\nwant %#v", got, want)
	}
}

// A column of SQLite may have both.
func TestARunningSumOfWholeNumbersAndFloatsAddsEachOnce(t *testing.T) {
	rows := [][]driver.Value{{int64(1), 0.5, 0.0}, {int64(2), int64(2), 0.0}, {int64(3), int64(4), 0.0}, {int64(3), 0.25, 0.0}}
	windows := []Window{{Column: 2, Function: Sum, Of: 1, Kind: Stored, Order: []Key{{Column: 0, Type: Type{Kind: Integer}}}}}
	got := read(t, Windowed(Dialect{Engine: SQLite}, of(rows)[0], windows, NewMemory(1<<20)))
	for i, want := range []float64{0.5, 2.5, 6.75, 6.75} {
		if got[i][2] != want {
			t.Errorf("row %d: %v, want %v", i, got[i][2], want)
		}
	}
}

// SQLite adds to 0.
func TestARunningSumOfSQLiteIsNeverMinusZero(t *testing.T) {
	rows := [][]driver.Value{{math.Copysign(0, -1), 0.0}, {math.Copysign(0, -1), 0.0}}
	got := read(t, Running(Dialect{Engine: SQLite}, of(rows)[0], []Window{{Column: 1, Function: Sum, Of: 0, Kind: Stored}}))
	for i, row := range got {
		if f, isFloat := row[1].(float64); !isFloat || f != 0 || math.Signbit(f) {
			t.Errorf("row %d: %v", i, row[1])
		}
	}
}

func TestRowsOfOneOrderAreNumbered(t *testing.T) {
	rows := [][]driver.Value{{int64(4), nil}, {int64(4), nil}, {int64(2), nil}}
	windows := []Window{{Column: 1, Function: RowNumber, Of: -1, Order: []Key{{Column: 0, Type: Type{Kind: Integer}, Desc: true}}}}
	got := read(t, Windowed(Dialect{}, of(rows)[0], windows, NewMemory(1<<20)))
	if want := [][]driver.Value{{int64(4), int64(1)}, {int64(4), int64(2)}, {int64(2), int64(3)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAWindowHoldsNoMoreThanItsMemory(t *testing.T) {
	rows := of([][]driver.Value{{int64(1), nil}, {int64(2), nil}})[0]
	var full *MemoryError
	if _, err := readTo(Windowed(Dialect{}, rows, []Window{{Column: 1, Function: RowNumber, Of: -1}}, NewMemory(100))); !errors.As(err, &full) {
		t.Error(err)
	}
}

func TestCountsOfAllRowsAreThoseOfAllSources(t *testing.T) {
	bytes := func(text string) []byte { return []byte(text) }
	sources := of(
		[][]driver.Value{{int64(1), bytes("2")}, {int64(4), bytes("2")}},
		nil,                                      // no row, and so none counted
		[][]driver.Value{{int64(2), bytes("3")}}, // LIMIT left out the others
	)
	got := read(t, Totalled(Dialect{}, sources, []Key{{Column: 0, Type: Type{Kind: Integer}}}, []int{1}))
	if want := [][]driver.Value{{int64(1), bytes("5")}, {int64(2), bytes("5")}, {int64(4), bytes("5")}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNoRowIsReturnedWithACountThatLacksASource(t *testing.T) {
	broken := errors.New("broken")
	sources := of([][]driver.Value{{int64(1), int64(1)}}, [][]driver.Value{})
	sources[1].(*source).fails = broken
	if rows, err := readTo(Totalled(Dialect{}, sources, nil, []int{1})); !errors.Is(err, broken) || len(rows) > 0 {
		t.Error(rows, err)
	}
}

func TestRowsAreNumberedAndAddedInTheirOrder(t *testing.T) {
	bytes := func(text string) []byte { return []byte(text) }
	order := []Key{{Column: 0, Type: Type{Kind: Integer}}}
	row := func(key driver.Value, n int64, also, sum driver.Value) []driver.Value {
		return []driver.Value{key, n, uint64(n), bytes(strconv.FormatInt(n, 10)), also, sum}
	}
	sources := of(
		[][]driver.Value{row(int64(1), 1, bytes("1.50"), bytes("1.50")), row(int64(4), 2, nil, bytes("1.50"))},
		[][]driver.Value{row(int64(1), 1, nil, nil), row(int64(2), 2, nil, nil), row(int64(4), 3, bytes("0.25"), bytes("0.25"))},
		[][]driver.Value{row(nil, 1, bytes("-3.00"), bytes("-3.00"))},
	)
	got := read(t, Running(Dialect{Engine: MySQL}, Ordered(sources, order), []Window{
		{Column: 1, Function: RowNumber, Of: -1}, {Column: 2, Function: Rank, Of: -1, Order: order}, {Column: 3, Function: DenseRank, Of: -1, Order: order},
		{Column: 5, Function: Sum, Of: 4, Kind: Decimal},
	}))
	want := [][]driver.Value{
		{int64(1), int64(1), uint64(1), bytes("1"), bytes("1.50"), bytes("1.50")},
		{int64(1), int64(2), uint64(1), bytes("1"), nil, bytes("1.50")},
		{int64(2), int64(3), uint64(3), bytes("2"), nil, bytes("1.50")},
		{int64(4), int64(4), uint64(4), bytes("3"), nil, bytes("1.50")},
		{int64(4), int64(5), uint64(4), bytes("3"), bytes("0.25"), bytes("1.75")},
		{nil, int64(6), uint64(6), bytes("4"), bytes("-3.00"), bytes("-1.25")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
