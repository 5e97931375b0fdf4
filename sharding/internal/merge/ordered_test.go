// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A domain generates random values of a type, few enough that some are equal, and compares them in
// the simplest way.
type domain struct {
	name    string
	typ     Type
	make    func(r *rand.Rand) driver.Value
	compare func(a, b driver.Value) int
}

func rat(v driver.Value) *big.Rat {
	s := fmt.Sprint(v)
	if b, ok := v.([]byte); ok {
		s = string(b)
	}
	n, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("no number: " + s)
	}
	return n
}

func compareRats(a, b driver.Value) int { return rat(a).Cmp(rat(b)) }

func pick(r *rand.Rand, of ...driver.Value) driver.Value { return of[r.IntN(len(of))] }

var pads = [][]byte{{' '}, {0x02, 0x09}, {0, 0, ' '}}

// padded compares by the SQL standard: after padding the shorter one.
func padded(pad []byte) func(a, b driver.Value) int {
	return func(a, b driver.Value) int {
		x, y := bytes.Clone(a.([]byte)), bytes.Clone(b.([]byte))
		for len(x) < len(y) {
			x = append(x, pad...)
		}
		for len(y) < len(x) {
			y = append(y, pad...)
		}
		return bytes.Compare(x, y)
	}
}

// weights generates weights near that of the space.
func weights(pad []byte) func(r *rand.Rand) driver.Value {
	return func(r *rand.Rand) driver.Value {
		var b []byte
		for range r.IntN(24) {
			weight := bytes.Clone(pad)
			if r.IntN(6) == 0 {
				weight[len(weight)-1] += byte(r.IntN(3) - 1)
			}
			b = append(b, weight...)
		}
		return b
	}
}

func durations(r *rand.Rand) driver.Value {
	s := fmt.Sprintf("%02d:%02d:%02d.%06d", r.IntN(839), r.IntN(60), r.IntN(60), r.IntN(3)*500)
	if r.IntN(2) == 0 {
		s = "-" + s
	}
	return []byte(s)
}

func duration(v driver.Value) time.Duration {
	s := strings.Replace(strings.Replace(string(v.([]byte)), ":", "h", 1), ":", "m", 1) + "s"
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

func storedRank(v driver.Value) int {
	switch v.(type) {
	case string:
		return 2
	case []byte:
		return 3
	}
	return 1
}

func compareStored(fold func(string) string) func(a, b driver.Value) int {
	return func(a, b driver.Value) int {
		if c := cmp.Compare(storedRank(a), storedRank(b)); c != 0 {
			return c
		}
		switch a := a.(type) {
		case string:
			return strings.Compare(fold(a), fold(b.(string)))
		case []byte:
			return bytes.Compare(a, b.([]byte))
		}
		return exactFloat(a).Cmp(exactFloat(b))
	}
}

func exactFloat(v driver.Value) *big.Float {
	f := new(big.Float).SetPrec(200)
	switch v := v.(type) {
	case int64:
		return f.SetInt64(v)
	case float64:
		return f.SetFloat64(v)
	}
	panic(v)
}

func stored(r *rand.Rand) driver.Value {
	switch r.IntN(5) {
	case 0:
		return pick(r, int64(0), int64(1), int64(-1), int64(1<<53), int64(1<<53+1), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64-1))
	case 1:
		return pick(r, 0.0, math.Copysign(0, -1), 1.0, -1.5, 0x1p53, 0x1p63, -0x1p63, math.Inf(1), math.Inf(-1), 1e300, math.SmallestNonzeroFloat64)
	case 2:
		return pick(r, "", "a", "A", "a ", "b", "\x00", "a\x00", "2026-01-01 00:00:00+00:00", "Z", "z", "[")
	case 3:
		return pick(r, []byte{}, []byte{0}, []byte("a"), []byte("a\x00b"), []byte{0xFF})
	}
	return int64(r.IntN(5) - 2)
}

func domains() []domain {
	all := []domain{
		{"integer", Type{Kind: Integer}, func(r *rand.Rand) driver.Value {
			return pick(r, int64(0), int64(-1), int64(math.MinInt64), uint64(math.MaxUint64), []byte("18446744073709551615"), "-12", int64(r.IntN(40)-20), []byte("7"))
		}, compareRats},
		{"decimal", Type{Kind: Decimal}, func(r *rand.Rand) driver.Value {
			return pick(r, "0.00", "-0.0", []byte("100"), "100.00", "-1.5", "-1.50", "-1.49", "0.001", "0.0001", "0.05", "99999999999999999999.5", "-99999999999999999999.5", int64(100), int64(-7), uint64(math.MaxUint64), ".5", "0.5")
		}, compareRats},
		{"float", Type{Kind: Float}, func(r *rand.Rand) driver.Value {
			return pick(r, 0.0, math.Copysign(0, -1), -1.5, 1e300, -1e300, float32(0.5), []byte("0.5"), "1e20", math.Inf(1), math.Inf(-1), int64(3), r.Float64())
		}, func(a, b driver.Value) int {
			x, _ := floatOf(a)
			y, _ := floatOf(b)
			return cmp.Compare(x, y)
		}},
		{"bytes", Type{Kind: Bytes}, func(r *rand.Rand) driver.Value {
			return pick(r, []byte(""), []byte("a"), []byte("a "), []byte("\x00"), []byte("a\x00"), []byte("a\x00\x00"), []byte("a\x00\xFF"), []byte("a\xFF"), []byte("ab"))
		}, func(a, b driver.Value) int { return bytes.Compare(a.([]byte), b.([]byte)) }},
		{"bytes to a length", Type{Kind: Bytes, Prefix: 2}, func(r *rand.Rand) driver.Value {
			return pick(r, "", "a", "ab", "abc", "abd", "b")
		}, func(a, b driver.Value) int {
			x, y := a.(string), b.(string)
			return strings.Compare(x[:min(2, len(x))], y[:min(2, len(y))])
		}},
		{"instant", Type{Kind: Time}, func(r *rand.Rand) driver.Value {
			return time.Unix(int64(r.IntN(3)-1), int64(r.IntN(2))).In(time.FixedZone("", r.IntN(3)*3600))
		}, func(a, b driver.Value) int { return a.(time.Time).Compare(b.(time.Time)) }},
		{"time as text", Type{Kind: Time}, func(r *rand.Rand) driver.Value {
			return fmt.Sprintf("20%02d-01-01 00:00:%02d", r.IntN(3), r.IntN(3))
		}, func(a, b driver.Value) int { return strings.Compare(a.(string), b.(string)) }},
		{"TIME", Type{Kind: Duration}, durations, func(a, b driver.Value) int { return cmp.Compare(duration(a), duration(b)) }},
		{"stored", Type{Kind: Stored}, stored, compareStored(func(s string) string { return s })},
		{"stored NOCASE", Type{Kind: Stored, Collation: NoCase}, stored, compareStored(strings.ToLower)},
		{"stored RTRIM", Type{Kind: Stored, Collation: RTrim}, stored, compareStored(func(s string) string { return strings.TrimRight(s, " ") })},
	}
	for _, pad := range pads {
		all = append(all, domain{fmt.Sprintf("weights padded with %x", pad), Type{Kind: Bytes, Pad: string(pad)}, weights(pad), padded(pad)})
	}
	return all
}

func orNull(r *rand.Rand, v driver.Value) driver.Value {
	if r.IntN(6) == 0 {
		return nil
	}
	return v
}

// compareWithNulls compares in the order of a Key.
func compareWithNulls(k Key, a, b driver.Value, compare func(a, b driver.Value) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return map[bool]int{true: -1, false: 1}[k.NullsFirst]
	case b == nil:
		return map[bool]int{true: 1, false: -1}[k.NullsFirst]
	case k.Desc:
		return compare(b, a)
	}
	return compare(a, b)
}

func TestMergingOrderedStreamsIsSortingTheirUnion(t *testing.T) {
	r := random(1)
	all := domains()
	for round := range 3000 {
		first, second := all[r.IntN(len(all))], all[r.IntN(len(all))]
		keys := []Key{
			{0, first.typ, r.IntN(2) == 0, r.IntN(2) == 0},
			{1, second.typ, r.IntN(2) == 0, r.IntN(2) == 0},
		}
		order := func(a, b []driver.Value) int {
			return cmp.Or(compareWithNulls(keys[0], a[0], b[0], first.compare), compareWithNulls(keys[1], a[1], b[1], second.compare))
		}
		var rows [][]driver.Value
		for range r.IntN(40) {
			rows = append(rows, []driver.Value{orNull(r, first.make(r)), orNull(r, second.make(r)), nil})
		}
		parts := split(r, rows, 1+r.IntN(9))
		var want [][]driver.Value
		for i, part := range parts {
			slices.SortStableFunc(part, order)
			for j := range part {
				part[j][2] = fmt.Sprint(i, " ", j)
			}
			want = append(want, part...)
		}
		got := read(t, Sorted(Concat(of(parts...)), keys, NewMemory(1<<20)))
		slices.SortStableFunc(want, order)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, %s and %s: sorted\n%q, want\n%q", round, first.name, second.name, got, want)
		}
		if got := read(t, Ordered(of(parts...), keys)); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, %s and %s: merged\n%q, want\n%q", round, first.name, second.name, got, want)
		}
	}
}

func TestAKeyIsNoPrefixOfAnother(t *testing.T) {
	r := random(2)
	for _, d := range domains() {
		for range 2000 {
			a, okA := d.typ.append(nil, d.make(r))
			b, okB := d.typ.append(nil, d.make(r))
			if !okA || !okB {
				t.Fatalf("%s: a value was not taken", d.name)
			}
			if !bytes.Equal(a, b) && (bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a)) {
				t.Fatalf("%s: %x and %x", d.name, a, b)
			}
		}
	}
}

func TestNaNAndInfinityOfPostgreSQLSortBelowAndAboveAllNumbers(t *testing.T) {
	typ := Type{Kind: Decimal}
	var last []byte
	for _, text := range []string{"-Infinity", "-99999999999999999999.5", "0", "99999999999999999999", "Infinity", "NaN"} {
		next, ok := typ.append(nil, text)
		if !ok || bytes.Compare(last, next) >= 0 && last != nil {
			t.Errorf("%s: %x behind %x", text, next, last)
		}
		last = next
	}
}

// Drivers of PostgreSQL return an infinite time as a text, and other times as a time.Time or as a text.
func TestInfiniteTimesOfPostgreSQLSortBelowAndAboveAllTimes(t *testing.T) {
	typ := Type{Kind: Time}
	for _, finite := range [][]driver.Value{{time.Time{}, time.Unix(1<<40, 0)}, {"0001-01-01 00:00:00", "99999-12-31 23:59:59"}} {
		var last []byte
		for _, v := range slices.Concat([]driver.Value{"-infinity"}, finite, []driver.Value{[]byte("infinity")}) {
			next, ok := typ.append(nil, v)
			if !ok || bytes.Compare(last, next) >= 0 && last != nil {
				t.Errorf("%v: %x behind %x", v, next, last)
			}
			last = next
		}
	}
}

func TestAValueOfAnotherTypeIsAnError(t *testing.T) {
	for _, test := range []struct {
		kind  Kind
		value driver.Value
	}{
		{Integer, "1.5"}, {Integer, 1.0}, {Integer, ""}, {Integer, time.Time{}},
		{Decimal, "1e5"}, {Decimal, ""}, {Decimal, "-"}, {Decimal, "1.2.3"}, {Decimal, "nan"}, {Decimal, 0.5},
		{Float, "a"}, {Float, true}, {Bytes, int64(1)}, {Bytes, nilTime}, {Time, int64(1)}, {Time, ""}, {Time, "infinite"},
		{Duration, "12:00"}, {Duration, "1::2"}, {Duration, int64(5)}, {Duration, "1:2:3:4"}, {Duration, "-"},
		{Stored, time.Time{}}, {0, int64(1)},
	} {
		rows := Ordered(of([][]driver.Value{{test.value}}), []Key{{Type: Type{Kind: test.kind}}})
		if _, err := readTo(rows); !errors.Is(err, ErrValue) {
			t.Errorf("%T %v as %s: %v, want ErrValue", test.value, test.value, kinds[test.kind], err)
		}
	}
}

var nilTime = time.Time{}

func TestWeightsThatArePartOfASpaceAreAnError(t *testing.T) {
	keys := []Key{{Type: Type{Kind: Bytes, Pad: "\x02\x09"}}}
	if _, err := readTo(Distinct(of([][]driver.Value{{[]byte{2, 9, 2}}})[0], keys, NewMemory(1000))); !errors.Is(err, ErrValue) {
		t.Fatalf("%v, want ErrValue", err)
	}
}

func TestASourceInAnotherOrderIsAnError(t *testing.T) {
	sources := of([][]driver.Value{{"a"}, {"B"}, {"c"}}, [][]driver.Value{{"a"}})
	if _, err := readTo(Ordered(sources, []Key{{Type: Type{Kind: Bytes}}})); !errors.Is(err, ErrOrder) {
		t.Fatalf("%v, want ErrOrder", err)
	}
}

func TestNamesThatDatabasesMakeOfExpressionsAreNotCompared(t *testing.T) {
	const of = "EXISTS (SELECT id FROM orders_%d)"
	rows := Concat([]Rows{&named{columns: []string{"id", fmt.Sprintf(of, 0)}}, &named{columns: []string{"ID", fmt.Sprintf(of, 1)}}})
	if _, err := readTo(rows); err != nil {
		t.Error(err)
	}
}

func TestSourcesOfDifferentColumnsAreAnError(t *testing.T) {
	for name, columns := range map[string][]string{"fewer": {"a"}, "exchanged": {"b", "a"}} {
		sources := func() []Rows { return []Rows{&named{columns: []string{"a", "b"}}, &named{columns: columns}} }
		for by, rows := range map[string]Rows{"ordered": Ordered(sources(), nil), "concat": Concat(sources())} {
			if _, err := readTo(rows); !errors.Is(err, ErrColumns) {
				t.Errorf("%s, %s: %v, want ErrColumns", name, by, err)
			}
		}
	}
}

// named is a source without rows.
type named struct{ columns []string }

func (n *named) Columns() []string         { return n.columns }
func (n *named) Next([]driver.Value) error { return io.EOF }
func (n *named) Close() error              { return nil }

func TestARowIsValidUntilTheNextIsRead(t *testing.T) {
	sources := of([][]driver.Value{{[]byte("a")}, {[]byte("c")}}, [][]driver.Value{{[]byte("b")}})
	rows := Ordered(sources, []Key{{Type: Type{Kind: Bytes}}})
	row := make([]driver.Value, 1)
	for _, want := range []string{"a", "b", "c"} {
		if err := rows.Next(row); err != nil || string(row[0].([]byte)) != want {
			t.Fatalf("%s and %v, want %s", row[0], err, want)
		}
	}
}

// counting is a source of n ordered numbers, whose rows share their memory.
type counting struct {
	values []driver.Value
	from   int
	by     int
	most   int // rows that were read and not yet returned by the merge
	live   *int
}

func (c *counting) Columns() []string { return columns(2) }
func (c *counting) Close() error      { return nil }

func (c *counting) Next(dest []driver.Value) error {
	if c.from >= len(c.values) {
		return io.EOF
	}
	dest[0], dest[1] = c.values[c.from], c.values[c.from]
	c.from += c.by
	*c.live++
	c.most = max(c.most, *c.live)
	return nil
}

func boxed(n int) []driver.Value {
	values := make([]driver.Value, n)
	for i := range values {
		values[i] = int64(i)
	}
	return values
}

func counted(values []driver.Value, k int, live *int) []Rows {
	sources := make([]Rows, k)
	for i := range sources {
		sources[i] = &counting{values: values, from: i, by: k, live: live}
	}
	return sources
}

func TestAMillionOrderedRowsAreMergedInConstantMemory(t *testing.T) {
	const million, k = 1_000_000, 8
	values := boxed(million)
	dest := make([]driver.Value, 2)
	run := func() {
		live := 0
		sources := counted(values, k, &live)
		rows := Cut(Limited(Ordered(sources, []Key{{Column: 1, Type: Type{Kind: Integer}}}), 0, million), 1)
		for i := range million {
			if err := rows.Next(dest); err != nil || dest[0] != values[i] {
				t.Fatalf("row %d: %v, %v", i, dest[0], err)
			}
			live--
		}
		if err := rows.Next(dest); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last row: %v", err)
		}
		for i, s := range sources {
			if most := s.(*counting).most; most > k {
				t.Fatalf("source %d was read while %d rows were held", i, most)
			}
		}
	}
	if allocations := testing.AllocsPerRun(1, run); allocations > 100 {
		t.Fatalf("%v allocations", allocations)
	}
}

func BenchmarkAMillionOrderedRows(b *testing.B) {
	const million, k = 1_000_000, 8
	values := boxed(million)
	dest := make([]driver.Value, 2)
	drain := func(rows Rows) {
		for rows.Next(dest) == nil {
			continue
		}
	}
	b.Run("merged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			drain(Ordered(counted(values, k, new(int)), []Key{{Column: 0, Type: Type{Kind: Integer}}}))
		}
	})
	b.Run("plain loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, rows := range counted(values, k, new(int)) {
				drain(rows)
			}
		}
	})
}

// If a text is longer than its weighed part, its weights suffice for comparisons within that part.
func TestATruncatedTextIsAnErrorIfItsRestMatters(t *testing.T) {
	for prefix, fine := range map[int]bool{0: false, 4: true, 6: false} {
		sources := of([][]driver.Value{{[]byte("\x00a0")}, {[]byte("\x00a\x00b1")}})
		rows, err := readTo(Ordered(sources, []Key{{Type: Type{Kind: Bytes, Most: 4, Prefix: prefix}}}))
		if fine != (err == nil && len(rows) == 2) || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("prefix %d: %v, %v", prefix, rows, err)
		}
	}
}
