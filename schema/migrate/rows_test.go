package migrate

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rawOf are values as a driver gives them.
func rawOf(values ...string) []sql.RawBytes {
	raw := make([]sql.RawBytes, len(values))
	for i, v := range values {
		if v != "NULL" {
			raw[i] = sql.RawBytes(v)
		}
	}
	return raw
}

// recordOf is a row of these values, as it was read.
func recordOf(t *testing.T, on *table, values ...string) record {
	t.Helper()
	var r record
	r.text, r.ends = new(shelf).keep(rawOf(values...))
	if err := r.digAll(on); err != nil {
		t.Fatal(err)
	}
	return r
}

func valuesOf(r record) (all []string) {
	for i := range r.ends {
		v, ok := r.value(i)
		if !ok {
			v = "NULL"
		}
		all = append(all, v)
	}
	return all
}

func TestARecordHasTheValuesThatWereRead(t *testing.T) {
	for _, values := range [][]string{
		{"1", "text", ""}, {"NULL", "NULL", "NULL"}, {"", "NULL", ""}, {"NULL", "after NULL", "NULL"}, {"before NULL", "NULL", "NULL", "a", "NULL", "b"},
	} {
		if got := valuesOf(recordOf(t, &table{}, values...)); !slices.Equal(got, values) {
			t.Errorf("%q became %q", values, got)
		}
	}
}

func TestIdsOfTheOtherSideTakeThePlaceOfThoseThatWereRead(t *testing.T) {
	ids := &renumbering{IDs: Affine(10, 3)}
	on := &table{rewrites: []*renumbering{ids, nil, ids, ids, nil}}
	r := recordOf(t, on, "7", "a", "NULL", "12", "NULL")
	if err := r.fill(dictionary{way: toShards}); err != nil {
		t.Fatal(err)
	}
	if got, want := valuesOf(r), []string{"73", "a", "NULL", "123", "NULL"}; !slices.Equal(got, want) || len(r.holes) > 0 {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestABatchHasANumberOfRowsForWhichThereIsAStatement(t *testing.T) {
	narrow, wide := recordOf(t, &table{}, "1", "b"), recordOf(t, &table{}, "1", strings.Repeat("b", 100_000))
	many := recordOf(t, &table{}, slices.Repeat([]string{"1"}, 500)...)
	for name, is := range map[string]struct {
		row        record
		rows, want int
	}{
		"one": {narrow, 1, 1}, "three": {narrow, 3, 2}, "some": {narrow, 255, 128}, "all": {narrow, 256, 256}, "more": {narrow, 4000, 256},
		"of many bytes": {wide, 100, 2}, "of many values": {many, 100, 4},
	} {
		if got := (mysqlSeam{}).batch(slices.Repeat([]record{is.row}, is.rows)); got != is.want {
			t.Errorf("%s: a batch of %d rows, not %d", name, got, is.want)
		}
	}
}

func TestRowsStayAsTheyWereReadWhileOthersComeBesideThem(t *testing.T) {
	var s shelf
	var rows []record
	var want [][]string
	for i := range 3000 {
		values := []string{strconv.Itoa(i), strings.Repeat("x", i*i%997), "NULL", "end"}
		raw := rawOf(values...)
		var r record
		r.text, r.ends = s.keep(raw)
		for _, v := range raw { // the driver writes other values there
			clear(v)
		}
		rows, want = append(rows, r), append(want, values)
	}
	for i, r := range rows {
		if got := valuesOf(r); !slices.Equal(got, want[i]) {
			t.Fatalf("row %d became %q", i, got)
		}
	}
}
