// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"database/sql"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

type (
	shade  uint8
	single struct{ P *int }
	inner  struct {
		Deep  string `db:"deep"`
		Share int32  `db:"share"`
	}
	// everything has a field of each kind that an interface stores differently.
	everything struct {
		Bool   bool            `db:"c_bool"`
		Tiny   int8            `db:"c_tiny"`
		Int    int             `db:"c_int"`
		ID     keygen.ID       `db:"c_id"`
		Shade  shade           `db:"c_shade"`
		Float  float32         `db:"c_float"`
		Cplx   complex128      `db:"c_cplx"`
		Text   string          `db:"c_text"`
		Bytes  []byte          `db:"c_bytes"`
		Raw    sql.RawBytes    `db:"c_raw"`
		At     time.Time       `db:"c_at"`
		Null   sql.NullString  `db:"c_null"`
		UUID   [16]byte        `db:"c_uuid"`
		Single single          `db:"c_single"`
		Word   struct{ N int } `db:"c_word"`
		None   struct{}        `db:"c_none"`
		One    [1]*int         `db:"c_one"`
		Ptr    *int64          `db:"c_ptr"`
		PtrPtr **string        `db:"c_ptrptr"`
		Any    any             `db:"c_any"`
		Err    error           `db:"c_err"`
		Map    map[string]int  `db:"c_map"`
		inner
		*order
		Nested inner `db:"nested"`
	}
)

func sample(i int) everything {
	n, s := int64(i), fmt.Sprint("s", i)
	ps := &s
	return everything{
		Bool: i%2 == 0, Tiny: int8(i), Int: -i, ID: keygen.ID(i), Shade: shade(i), Float: 1.5, Cplx: 1i, Text: s,
		Bytes: []byte(s), Raw: sql.RawBytes(s), At: time.Unix(n, 0), Null: sql.NullString{String: s, Valid: true},
		UUID: [16]byte{byte(i)}, Single: single{new(int)}, Word: struct{ N int }{i}, One: [1]*int{new(int)},
		Ptr: &n, PtrPtr: &ps, Any: i, Map: map[string]int{s: i},
		inner: inner{s, int32(i)}, order: &order{n, n, s}, Nested: inner{s, 7},
	}
}

const allFields = "INSERT INTO t (x) VALUES (:c_bool, :c_tiny, :c_int, :c_id, :c_shade, :c_float, :c_cplx, :c_text, :c_bytes, :c_raw, :c_at, :c_null, :c_uuid," +
	" :c_single, :c_word, :c_none, :c_one, :c_ptr, :c_ptrptr, :c_any, :c_err, :c_map, :deep, :share, :id, :note, :nested.deep, :nested.share)"

// fieldsOnly are those that lie in the row itself, which take another way.
const fieldsOnly = "INSERT INTO t (x) VALUES (:c_bool, :c_tiny, :c_int, :c_id, :c_shade, :c_float, :c_text, :c_bytes, :c_at, :c_null, :c_uuid, :deep, :nested.share)"

func TestArgumentsAreWhatSqlxWouldSendWhateverTheKindOfField(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{Generators: keygen.Set{}})
	db := sqlx.NewDb(nil, "mysql")
	one, two, three := sample(1), sample(2), sample(3)
	slice := []everything{one, two, three}
	for _, query := range []string{allFields, fieldsOnly} {
		for name, arg := range map[string]any{
			"struct": one, "pointer": &one, "slice": slice, "pointer to slice": &slice, "slice of pointers": []*everything{&one, &two},
			"array": [2]everything{one, two}, "pointer to array": &[2]*everything{&one, &two}, "slice of any": []any{&one, two},
		} {
			sent, args, err := sqlxhook.Bind(h, db, query, arg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plain := arg
			if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer && v.Elem().Kind() != reflect.Struct {
				plain = v.Elem().Interface() // sqlx panics on it
			}
			want, wantArgs, err := sqlx.Named(query, plain)
			if err != nil || sent != want {
				t.Errorf("%s: %v\n%s\n%s", name, err, sent, want)
			}
			for i := range wantArgs {
				if reflect.TypeOf(args[i]) != reflect.TypeOf(wantArgs[i]) || !reflect.DeepEqual(args[i], wantArgs[i]) {
					t.Errorf("%s: argument %d is %T %v, sqlx sends %T %v", name, i, args[i], args[i], wantArgs[i], wantArgs[i])
				}
			}
		}
	}
}

func TestInsertTakesAStructThatWritesATextForAValueAndAnotherOneForARow(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	row := struct {
		ID     int64          `db:"id" keygen:""`
		Addr   netip.Addr     `db:"addr"`
		Nets   []netip.Prefix `db:"nets"`
		Total  big.Int        `db:"total"`
		Limit  *big.Int       `db:"max"`
		At     *time.Time     `db:"at"`
		Parent order          `db:"parent"`
		Items  []*order       `db:"items"`
	}{}
	db := &speaks{driver: "postgres"}
	const want = `INSERT INTO "hosts" ("id","addr","nets","total","max","at") VALUES ($1,$2,$3,$4,$5,$6)`
	if _, err := h.Insert(t.Context(), db, "hosts", &row); err != nil || db.queries[0] != want {
		t.Errorf("%v\n%s\n%s", err, db.queries, want)
	}
}

func TestArgumentsDoNotChangeWithTheRow(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "mysql"}
	rows := []order{{ID: 1000, UserID: 2000, Note: "before"}}
	if _, err := h.NamedExec(t.Context(), db, insertOrder, rows); err != nil {
		t.Fatal(err)
	}
	rows[0] = order{ID: 9, UserID: 9, Note: "after"} // while a tracer or a mock still has them
	if got := db.args[0]; !reflect.DeepEqual(got, []any{int64(1000), int64(2000), "before"}) {
		t.Errorf("%v", got)
	}
}

func TestArgumentsOutliveTheirRows(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{Generators: keygen.Set{}})
	for _, n := range []int{1, 100} {
		rows, want := make([]everything, n), make([]everything, n)
		for i := range rows {
			rows[i], want[i] = sample(i+1), sample(i+1)
		}
		_, args, err := sqlxhook.Bind(h, sqlx.NewDb(nil, "mysql"), fieldsOnly, rows)
		if err != nil {
			t.Fatal(err)
		}
		clear(rows) // nothing but the arguments leads to the texts now
		for range 3 {
			runtime.GC()
		}
		_, wanted, err := sqlx.Named(fieldsOnly, want)
		if err != nil || !reflect.DeepEqual(args, wanted) {
			t.Errorf("%d rows: %v\n%v\n%v", n, err, args, wanted)
		}
	}
}

func TestTheArgumentsOfARowShareOneCopyOfIt(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	for n, most := range map[int]float64{1: 2, 1000: 1 + 2*(1000/64) + 1000%64} {
		rows := presetRows(n)
		var arg any = rows
		plan, err := sqlxhook.Plan(h, sqlx.NewDb(nil, "mysql"), insertOrder, arg)
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(50, func() { plan(arg) }); got > most {
			t.Errorf("%d rows: %v allocations, want %v at most", n, got, most)
		}
	}
}

func TestOneHookServesManyGoroutinesAndStatements(t *testing.T) {
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := sync.Map{}
	var work sync.WaitGroup
	for g := range 8 {
		work.Go(func() {
			db := &speaks{driver: []string{"mysql", "sqlite", "postgres"}[g%3]}
			for i := range 100 {
				rows := make([]order, i%7+1)
				res, err := h.NamedExec(t.Context(), db, insertOrder, rows)
				if err != nil {
					t.Error(err)
					return
				}
				for j, id := range res.IDs {
					if _, twice := seen.LoadOrStore(id, true); twice || rows[j].ID != id {
						t.Errorf("id %d of row %d", id, j)
					}
				}
			}
		})
	}
	work.Wait()
}
