// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
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
func recordOf(t *testing.T, on *openjob.Table, values ...string) backend.Row {
	t.Helper()
	var r backend.Row
	r.Text, r.Ends = new(rowArena).keep(rawOf(values...))
	if err := findSlots(on, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func valuesOf(r backend.Row) (all []string) {
	for i := range r.Ends {
		v, ok := r.Value(i)
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
		if got := valuesOf(recordOf(t, &openjob.Table{}, values...)); !slices.Equal(got, values) {
			t.Errorf("%q became %q", values, got)
		}
	}
}

func TestConvertReplacesIDsByThoseOfTheOtherSide(t *testing.T) {
	ids := &idmap.Renumbering{By: idmap.Affine{Factor: 10, Offset: 3}}
	on := &openjob.Table{Rewrites: []*idmap.Renumbering{ids, nil, ids, ids, nil}}
	r := recordOf(t, on, "7", "a", "NULL", "12", "NULL")
	if err := fillSlots(on, &r, idmap.Dictionary{Way: idmap.ToShards}); err != nil {
		t.Fatal(err)
	}
	if got, want := valuesOf(r), []string{"73", "a", "NULL", "123", "NULL"}; !slices.Equal(got, want) || len(r.Slots) > 0 {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestRowsInTheArenaStayUnchangedWhileOthersAreAdded(t *testing.T) {
	var s rowArena
	var rows []backend.Row
	var want [][]string
	for i := range 3000 {
		values := []string{strconv.Itoa(i), strings.Repeat("x", i*i%997), "NULL", "end"}
		raw := rawOf(values...)
		var r backend.Row
		r.Text, r.Ends = s.keep(raw)
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
