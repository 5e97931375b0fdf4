// SPDX-License-Identifier: Apache-2.0

package writehint_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/shardid/shardid/internal/writehint"
)

func TestAHintIsAboutStatementsOnItsTable(t *testing.T) {
	h := writehint.Hint{Table: "Orders", Fresh: []int{0, 2}, Keyed: true, Single: true}
	ctx := writehint.With(t.Context(), h)
	if got := writehint.Of(ctx, "orders"); !reflect.DeepEqual(got, h) {
		t.Errorf("%+v", got)
	}
	if got := writehint.Of(ctx, "items"); !reflect.DeepEqual(got, writehint.Hint{}) {
		t.Errorf("another table: %+v", got)
	}
	if got := writehint.Of(t.Context(), ""); !reflect.DeepEqual(got, writehint.Hint{}) {
		t.Errorf("no hint: %+v", got)
	}
}

func TestALaterHintReplacesTheFirst(t *testing.T) {
	ctx := writehint.With(t.Context(), writehint.Hint{Table: "orders", Keyed: true})
	ctx = writehint.With(ctx, writehint.Hint{Table: "orders", Fresh: []int{1}})
	if got := writehint.Of(ctx, "orders"); got.Keyed || !got.IsFresh(1) {
		t.Errorf("%+v", got)
	}
}

func TestOnlyTheNamedRowsAreFresh(t *testing.T) {
	h := writehint.Hint{Fresh: []int{1, 4, 9}}
	for row := range 12 {
		if want := row == 1 || row == 4 || row == 9; h.IsFresh(row) != want {
			t.Errorf("row %d: %v", row, !want)
		}
	}
}

func TestAHintThatHasEndedIsOnNoContextThatWasMadeWithIt(t *testing.T) {
	outer := writehint.With(t.Context(), writehint.Hint{Table: "orders", Keyed: true})
	inner := writehint.With(outer, writehint.Hint{Table: "items", Model: true})
	made, cancel := context.WithCancel(inner)
	defer cancel()
	writehint.End(inner)
	writehint.End(t.Context()) // it has no hint
	if writehint.Of(made, "items").Model || !writehint.Of(made, "orders").Keyed {
		t.Errorf("%+v, %+v", writehint.Of(made, "items"), writehint.Of(made, "orders"))
	}
}
