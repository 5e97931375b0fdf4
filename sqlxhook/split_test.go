// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sqlxhook"
)

// rowsIn returns how many rows of width arguments each statement had.
func rowsIn(db *speaks, width int) []int {
	var n []int
	for _, args := range db.args {
		n = append(n, len(args)/width)
	}
	return n
}

func TestBatchesAreSplitAtTheLimitOfBytes(t *testing.T) {
	text := func(n int) order { return order{Note: strings.Repeat("x", n)} }
	for name, c := range map[string]struct {
		driver string
		max    int
		rows   []order
		want   []int
	}{
		"one statement is enough":         {"mysql", 10000, []order{text(1000), text(1000)}, []int{2}},
		"texts count double":              {"mysql", 10000, []order{text(2000), text(2000), text(2000)}, []int{2, 1}},
		"a row too large goes alone":      {"mysql", 1000, []order{text(1), text(9000), text(1), text(1)}, []int{1, 1, 2}},
		"every row too large":             {"mysql", 10, []order{text(1), text(1)}, []int{1, 1}},
		"4 MiB unless told otherwise":     {"mysql", 0, []order{text(1 << 20), text(1 << 19), text(1 << 19)}, []int{2, 1}},
		"SQLite counts the text only":     {"sqlite", 1000, []order{text(5000), text(5000)}, []int{2}},
		"PostgreSQL takes a gigabyte":     {"postgres", 0, []order{text(5 << 20), text(5 << 20)}, []int{2}},
		"PostgreSQL when told otherwise":  {"postgres", 10000, []order{text(4000), text(4000)}, []int{1, 1}},
		"the statement's own text counts": {"sqlite", 125, make([]order, 5), []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHook(t, sqlxhook.Config{MaxBytes: c.max})
			db := &speaks{driver: c.driver}
			if _, err := h.NamedExec(t.Context(), db, insertOrder, c.rows); err != nil {
				t.Fatal(err)
			}
			if got := rowsIn(db, 3); !slices.Equal(got, c.want) {
				t.Errorf("statements of %v rows, want %v", got, c.want)
			}
		})
	}
}

// costly is a document that counts the calls of Value.
type costly struct {
	text  string
	asked *int
	err   error
}

func (c costly) Value() (driver.Value, error) {
	*c.asked++
	return c.text, c.err
}

func TestValueIsCalledOnceAndItsResultIsMeasured(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{MaxBytes: 5000})
	db := &speaks{driver: "mysql"}
	asked := 0
	type doc struct {
		Body costly           `db:"body"`
		Null *costly          `db:"none"`
		Blob any              `db:"blob"`
		Name sql.Null[string] `db:"name"`
	}
	rows := make([]doc, 4)
	for i := range rows {
		rows[i].Body = costly{text: strings.Repeat("x", 900), asked: &asked}
		rows[i].Blob = [3]byte{}
	}
	if _, err := h.Insert(t.Context(), db, "docs", rows); err != nil {
		t.Fatal(err)
	}
	if got := rowsIn(db, 4); !slices.Equal(got, []int{2, 2}) || asked != 4 || db.args[0][0] != rows[0].Body.text || db.args[0][1] != nil {
		t.Errorf("statements of %v rows, %d asked", got, asked)
	}
	for i := range rows {
		rows[i].Body.err = errors.New("no value")
	}
	if _, err := h.Insert(t.Context(), db, "docs", rows); err != nil {
		t.Fatal(err)
	}
	if _, left := db.args[len(db.args)-1][0].(costly); !left {
		t.Error("a value that cannot be had is the driver's to report")
	}
}

func TestMapsAreSplitToo(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{MaxBytes: 1000, MaxParams: 4})
	db := &speaks{driver: "mysql"}
	rows := []map[string]any{{"id": 1, "note": ""}, {"id": 2, "note": strings.Repeat("x", 300)}, {"id": 3, "note": []byte("x")}, {"id": uint8(4), "note": nil}, {"id": 5, "note": "x"}}
	if _, err := h.Insert(t.Context(), db, "orders", rows); err != nil {
		t.Fatal(err)
	}
	if got := rowsIn(db, 2); !slices.Equal(got, []int{2, 2, 1}) {
		t.Errorf("statements of %v rows", got)
	}
	if n, _ := sqlxhook.TextsOf(h); n != 0 {
		t.Errorf("%d texts of maps are kept, whose plans are not", n)
	}
}

func TestTheTextsOfBatchesAreKeptWithinABound(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "mysql"}
	long := "INSERT INTO orders (id, note) VALUES (:id, '" + strings.Repeat("x", 10000) + "')"
	most := 0
	for n := 2; n < 80; n++ {
		for range 2 {
			if _, err := h.NamedExec(t.Context(), db, long, make([]order, n)); err != nil {
				t.Fatal(err)
			}
			kept, bytes := sqlxhook.TextsOf(h)
			most = max(most, kept)
			if bytes > sqlxhook.MaxTexts {
				t.Fatalf("%d bytes are kept", bytes)
			}
		}
	}
	if kept, _ := sqlxhook.TextsOf(h); most < 40 || kept >= most {
		t.Errorf("%d texts at most, %d at last", most, kept)
	}
	for _, q := range db.queries {
		if n := strings.Count(q, "?"); n*10004 > len(q) || n < 2 {
			t.Fatalf("%d rows in %d bytes", n, len(q))
		}
	}
}

func TestSQLiteAcceptsTheLongestTextThatIsSent(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{})
	query := "INSERT INTO orders (id, user_id, note) VALUES (:id, 1, '" + strings.Repeat("x", 200) + "')"
	rows := make([]order, 20000) // 4 MB of text, and only 20,000 parameters
	res, err := h.NamedExec(t.Context(), db, query, rows)
	if err != nil || res.RowsAffected != 20000 || res.IDs[19999] != 200000 {
		t.Fatalf("%d rows, %v", res.RowsAffected, err)
	}
	var n int
	if err := db.Get(&n, "SELECT COUNT(*) FROM orders"); err != nil || n != 20000 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestNegativeMaxBytesIsRefused(t *testing.T) {
	if _, err := sqlxhook.New(sqlxhook.Config{MaxBytes: -1}); err == nil || !strings.Contains(fmt.Sprint(err), "MaxBytes -1") {
		t.Error(err)
	}
}
