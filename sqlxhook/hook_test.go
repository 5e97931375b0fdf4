// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/sqlxhook"
)

type order struct {
	ID     int64  `db:"id" keygen:"order"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

const ordersDDL = "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')"

const insertOrder = "INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)"

func open(t testing.TB, ddl ...string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, q := range ddl {
		db.MustExec(q)
	}
	return db
}

// counter is a generator that counts its calls and issues 10, 20, 30, ….
type counter struct {
	calls int
	next  int64
	err   error
}

func (c *counter) Next(ctx context.Context) (int64, error) {
	dst := make([]int64, 1)
	err := c.Fill(ctx, dst)
	return dst[0], err
}

func (c *counter) Fill(_ context.Context, dst []int64) error {
	c.calls++
	for i := range dst {
		c.next += 10
		dst[i] = c.next
	}
	return c.err
}

func newHook(t testing.TB, c sqlxhook.Config) (*sqlxhook.Hook, *counter) {
	t.Helper()
	gen := &counter{}
	c.Generators = keygen.Set{Default: gen, Named: map[string]keygen.Generator[int64]{"order": gen, "other": gen}}
	h, err := sqlxhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h, gen
}

// spy records the calls of a handle, and fails instead if fail is set.
type spy struct {
	sqlxhook.Execer
	queries []string
	args    [][]any
	fail    error
	failAt  int // statements that succeed before
}

func (s *spy) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.queries = append(s.queries, query)
	s.args = append(s.args, slices.Clone(args))
	if s.fail != nil && len(s.queries) > s.failAt {
		return nil, s.fail
	}
	return s.Execer.ExecContext(ctx, query, args...)
}

func stored(t testing.TB, q sqlx.Queryer) []order {
	t.Helper()
	var rows []order
	if err := sqlx.Select(q, &rows, "SELECT id, user_id, note FROM orders ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEveryFormOfArgumentIsFilledAndStored(t *testing.T) {
	one, two := &order{UserID: 1, Note: "a"}, &order{UserID: 2, Note: "b"}
	pointer := &order{UserID: 1, Note: "a"}
	slice := []order{{UserID: 1, Note: "a"}, {UserID: 2, Note: "b"}}
	array := [2]order{{UserID: 1, Note: "a"}, {UserID: 2, Note: "b"}}
	first, both := []int64{10}, []int64{10, 20}
	for name, c := range map[string]struct {
		arg any
		ids []int64
	}{
		"pointer":            {&order{UserID: 1, Note: "a"}, first},
		"pointer to pointer": {&pointer, first},
		"slice":              {[]order{{UserID: 1, Note: "a"}, {UserID: 2, Note: "b"}}, both},
		"pointer to slice":   {&slice, both},
		"slice of pointers":  {[]*order{one, two}, both},
		"slice of any":       {[]any{&order{UserID: 1, Note: "a"}, &order{UserID: 2, Note: "b"}}, both},
		"pointer to array":   {&array, both},
	} {
		for way, send := range map[string]func(*sqlxhook.Hook, sqlxhook.Execer, any) (sqlxhook.Result, error){
			"NamedExec": func(h *sqlxhook.Hook, e sqlxhook.Execer, arg any) (sqlxhook.Result, error) {
				return h.NamedExec(t.Context(), e, insertOrder, arg)
			},
			"Insert": func(h *sqlxhook.Hook, e sqlxhook.Execer, arg any) (sqlxhook.Result, error) {
				return h.Insert(t.Context(), e, "orders", arg)
			},
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				empty(t, c.arg)
				db := open(t, ordersDDL)
				h, gen := newHook(t, sqlxhook.Config{})
				res, err := send(h, db, c.arg)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(res.IDs, c.ids) || res.RowsAffected != int64(len(c.ids)) || gen.calls != 1 {
					t.Errorf("%+v after %d calls", res, gen.calls)
				}
				want := []order{{10, 1, "a"}, {20, 2, "b"}}[:len(c.ids)]
				if got := stored(t, db); !slices.Equal(got, want) {
					t.Errorf("table holds %v", got)
				}
				if got := flatten(c.arg); !slices.Equal(got, want) {
					t.Errorf("argument holds %v", got)
				}
			})
		}
	}
}

// flatten returns the orders in an argument.
func flatten(arg any) []order {
	v := reflect.ValueOf(arg)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		return []order{v.Interface().(order)}
	}
	var out []order
	for i := range v.Len() {
		out = append(out, flatten(v.Index(i).Interface())...)
	}
	return out
}

// empty sets the ids in an argument to zero again, because two subtests share it.
func empty(t *testing.T, arg any) {
	t.Helper()
	v := reflect.ValueOf(arg)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		v.FieldByName("ID").SetInt(0)
		return
	}
	for i := range v.Len() {
		e := v.Index(i)
		if e.Kind() == reflect.Struct {
			e = e.Addr()
		}
		empty(t, e.Interface())
	}
}

func TestMapsAreStoredAsTheyAre(t *testing.T) {
	type named map[string]any
	for name, arg := range map[string]any{
		"map":             map[string]any{"id": 1, "user_id": 2, "note": "a"},
		"pointer to map":  &map[string]any{"id": 1, "user_id": 2, "note": "a"},
		"named map":       named{"id": 1, "user_id": 2, "note": "a"},
		"map of integers": map[string]int{"id": 1, "user_id": 2, "note": 3},
		"slice of maps":   []map[string]any{{"id": 1, "user_id": 2, "note": "a"}, {"id": 2, "user_id": 2, "note": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, ordersDDL)
			h, gen := newHook(t, sqlxhook.Config{})
			res, err := h.NamedExec(t.Context(), db, insertOrder, arg)
			if err != nil {
				t.Fatal(err)
			}
			db.MustExec("DELETE FROM orders")
			again, err := h.Insert(t.Context(), db, "orders", arg)
			if err != nil {
				t.Fatal(err)
			}
			if res.IDs != nil || again.IDs != nil || gen.calls != 0 || again.RowsAffected != int64(len(stored(t, db))) {
				t.Errorf("%+v, %+v, %d calls", res, again, gen.calls)
			}
		})
	}
}

func TestPresetKeysAreNeverOverwritten(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	rows := []order{{UserID: 1}, {ID: 7, UserID: 2}, {UserID: 3}}
	res, err := h.Insert(t.Context(), db, "orders", rows)
	if err != nil || !slices.Equal(res.IDs, []int64{10, 7, 20}) || gen.calls != 1 {
		t.Fatalf("%+v, %v, %d calls", res, err, gen.calls)
	}
	if _, err := h.Insert(t.Context(), db, "orders", order{ID: 8}); err != nil {
		t.Errorf("a struct by value whose key is set: %v", err)
	}
	if got := stored(t, db); len(got) != 4 || got[0].UserID != 2 {
		t.Errorf("%v", got)
	}
}

type keyKinds struct {
	ID *uint64 `db:"id,keygen=order"`
	No struct {
		sql.NullInt64
	} `db:"no" keygen:""`
	Serial int32  `db:"serial,keygen"`
	Free   *int64 `db:"free" keygen:"-"`
}

func TestEveryTagAndKindOfFieldIsFilled(t *testing.T) {
	db := open(t, "CREATE TABLE k (id INTEGER, no INTEGER, serial INTEGER, free INTEGER)")
	h, gen := newHook(t, sqlxhook.Config{})
	rows := make([]keyKinds, 2)
	res, err := h.Insert(t.Context(), db, "k", rows)
	if err != nil {
		t.Fatal(err)
	}
	if *rows[1].ID != 20 || rows[1].No.Int64 != 40 || rows[1].Serial != 60 || rows[1].Free != nil || gen.calls != 3 {
		t.Errorf("%+v after %d calls", rows, gen.calls)
	}
	if !slices.Equal(res.IDs, []int64{10, 20}) {
		t.Errorf("%v", res.IDs)
	}
	var sum int64
	if err := db.Get(&sum, "SELECT SUM(id)*10000 + SUM(no)*100 + SUM(serial) FROM k WHERE free IS NULL"); err != nil || sum != 307110 {
		t.Errorf("%d, %v", sum, err)
	}
}

func TestIDsAreReadFromEveryKindOfField(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	for _, c := range []struct {
		arg  any
		want int64
	}{
		{&struct {
			ID sql.NullInt64 `db:"id" keygen:""`
		}{}, 10},
		{&struct {
			ID **uint32 `db:"id" keygen:""`
		}{}, 20},
		{struct {
			ID uint8 `db:"id" keygen:""`
		}{7}, 7},
	} {
		res, err := h.Insert(t.Context(), &speaks{driver: "mysql"}, "t", c.arg)
		if err != nil || !slices.Equal(res.IDs, []int64{c.want}) {
			t.Errorf("%T: %v, %v", c.arg, res.IDs, err)
		}
	}
}

type base struct {
	ID int64 `db:"id" keygen:"order"`
}

type embedding struct {
	*base
	UserID int64   `db:"user_id"`
	Items  []order // a relation, no column
	Parent *order  `db:"parent"`
	Secret string  `db:"-"`
}

type embeddingExported struct {
	*Base
	UserID int64 `db:"user_id"`
}

type Base struct {
	ID   int64  `db:"id" keygen:"order"`
	Note string `db:"note"`
}

func TestEmbeddedStructsAreFilledAndNilOnesRefused(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	res, err := h.Insert(t.Context(), db, "orders", []embedding{{base: &base{}, UserID: 1}})
	if err != nil || !slices.Equal(res.IDs, []int64{10}) {
		t.Fatalf("%+v, %v", res, err)
	}
	calls := gen.calls
	for _, arg := range []any{
		&embeddingExported{}, []*embeddingExported{{Base: &Base{}}, {}},
	} {
		res, err := h.Insert(t.Context(), db, "orders", arg)
		var row *sqlxhook.RowError
		if !errors.Is(err, sqlxhook.ErrNil) || !errors.As(err, &row) || row.Field != "embeddingExported.ID" || res.IDs != nil {
			t.Errorf("%v", err)
		}
	}
	nested := "INSERT INTO orders (id, user_id) VALUES (:id, :parent.user_id)"
	one := embedding{base: &base{}}
	if _, err = h.NamedExec(t.Context(), db, nested, &one); !errors.Is(err, sqlxhook.ErrNil) || one.ID != 0 {
		t.Errorf("nil struct behind a parameter: %v, id %d", err, one.ID)
	}
	one.Parent = &order{UserID: 5}
	if _, err = h.NamedExec(t.Context(), db, nested, &one); err != nil || gen.calls != calls+2 {
		t.Errorf("%v after %d calls", err, gen.calls)
	}
}

type (
	disagrees struct {
		ID int64 `db:"id,keygen=order" keygen:"other"`
	}
	unknownOption struct {
		ID int64 `db:"id" keygen:"order,later"`
	}
	unknownName struct {
		ID int64 `db:"id" keygen:"nobody"`
	}
	floatKey struct {
		ID float64 `db:"id" keygen:"order"`
	}
	structKey struct {
		ID struct{ A int64 } `db:"id" keygen:"order"`
	}
	narrow struct {
		ID   int8  `db:"id" keygen:"order"`
		User int64 `db:"user_id"`
	}
	badColumn struct {
		ID int64 `db:"id) --" keygen:"order"`
	}
	noColumns struct{ _ int }
)

func TestMistakesAreTypedErrorsAndNothingIsSentOrStored(t *testing.T) {
	var nobody *order
	var nothing *[]order
	const note = "INSERT INTO orders (note) VALUES (:note)"
	for name, c := range map[string]struct {
		query string
		arg   any
		want  error
		text  string
	}{
		"struct by value":       {"", order{}, sqlxhook.ErrNotAddressable, "row 0: order.ID: "},
		"array by value":        {"", [1]order{}, sqlxhook.ErrNotAddressable, "row 0: "},
		"any by value":          {"", []any{order{}}, sqlxhook.ErrNotAddressable, "row 0: "},
		"nil":                   {"", nil, sqlxhook.ErrNil, ""},
		"nil pointer":           {"", nobody, sqlxhook.ErrNil, "*sqlxhook_test.order"},
		"nil slice pointer":     {"", nothing, sqlxhook.ErrNil, ""},
		"nil element":           {"", []*order{{}, nil}, sqlxhook.ErrNil, "row 1: "},
		"nil any":               {"", []any{&order{}, nil}, sqlxhook.ErrNil, "row 1: "},
		"mixed types":           {"", []any{&order{}, &narrow{}}, sqlxhook.ErrArgument, "row 1: "},
		"empty slice":           {"", []order{}, sqlxhook.ErrArgument, "empty"},
		"number":                {"", 5, sqlxhook.ErrArgument, "int"},
		"slice of numbers":      {"", []int{5}, sqlxhook.ErrArgument, "int"},
		"map of numbers":        {"", map[int]int{5: 5}, sqlxhook.ErrArgument, ""},
		"disagreeing tags":      {"", &disagrees{}, sqlxhook.ErrTag, "disagrees.ID"},
		"unknown option":        {"", &unknownOption{}, sqlxhook.ErrTag, "later"},
		"unknown generator":     {"", &unknownName{}, keygen.ErrUnknownGenerator, `"nobody"`},
		"float key":             {"", &floatKey{}, sqlxhook.ErrType, "floatKey.ID"},
		"struct key":            {"", &structKey{}, sqlxhook.ErrType, "structKey.ID"},
		"overflow":              {"", make([]narrow, 20), sqlxhook.ErrOverflow, "row 12: narrow.ID"},
		"column name":           {"", &badColumn{}, nil, "not a plain SQL name"},
		"no columns":            {"", &noColumns{}, sqlxhook.ErrArgument, "no columns"},
		"different maps":        {"", []map[string]any{{"id": 1}, {"note": 1}}, sqlxhook.ErrArgument, "row 1: its keys [note] differ from row 0's [id]: argument holds no rows of one form"},
		"map key as column":     {"", map[string]any{"id) --": 1}, nil, "not a plain SQL name"},
		"unknown parameter":     {"INSERT INTO orders (id) VALUES (:idd)", &order{}, sqlxhook.ErrParameter, ":idd"},
		"map without parameter": {note, []map[string]any{{"note": 1}, {}}, sqlxhook.ErrParameter, "row 1: note"},
		"map without an id":     {"INSERT INTO orders (id) VALUES (:id)", map[string]any{"note": 1}, sqlxhook.ErrParameter, "row 0: id: no value for the parameter; set it in the map, or pass a struct with a keygen tag"},
		"mixed placeholders":    {"INSERT INTO orders (id, note) VALUES (:id, ?)", &order{}, sqlxhook.ErrStatement, "?"},
		"open string":           {"INSERT INTO orders (id, note) VALUES (:id, 'x)", &order{}, sqlxhook.ErrStatement, "not closed"},
		"no key column":         {note, &order{}, sqlxhook.ErrKeyColumnMissing, "column id, parameter :id"},
		"key column is NULL":    {"INSERT INTO orders (id, note) VALUES (NULL, :note)", &order{}, sqlxhook.ErrKeyColumnMissing, ""},
		"id in another column":  {"INSERT INTO orders (user_id, note) VALUES (:id, :note)", &order{}, sqlxhook.ErrKeyColumnMissing, ""},
		"no list and no id":     {"INSERT INTO orders VALUES (1, 2, :note)", &order{}, sqlxhook.ErrKeyColumnMissing, ""},
		"batch without VALUES":  {"UPDATE orders SET note = :note", make([]order, 2), sqlxhook.ErrStatement, "2 rows"},
		"batch of two groups":   {"INSERT INTO orders (id) VALUES (:id), (:user_id)", make([]order, 2), sqlxhook.ErrStatement, "it has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			db := &spy{Execer: open(t, ordersDDL)}
			h, _ := newHook(t, sqlxhook.Config{DriverName: "sqlite"})
			before := fmt.Sprintf("%+v", c.arg)
			var err error
			if c.query == "" {
				_, err = h.Insert(t.Context(), db, "orders", c.arg)
			} else {
				_, err = h.NamedExec(t.Context(), db, c.query, c.arg)
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if len(db.queries) > 0 {
				t.Errorf("sent %q", db.queries)
			}
			if after := fmt.Sprintf("%+v", c.arg); before != after && !strings.Contains(before, "0x") {
				t.Errorf("the argument became %s", after)
			}
		})
	}
}

func TestAKeyThatIsSetNeedsNoColumn(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	if _, err := h.NamedExec(t.Context(), db, "INSERT INTO orders (user_id, note) VALUES (:id, 'login')", &order{ID: 5}); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, db); got[0].UserID != 5 || gen.calls != 0 {
		t.Errorf("%v", got)
	}
}

func TestOtherStatementsAreSentWithoutFilling(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	db.MustExec("INSERT INTO orders (id, user_id) VALUES (1, 1)")
	res, err := h.NamedExec(t.Context(), db, "UPDATE orders SET note = :note WHERE user_id = :user_id", order{UserID: 1, Note: "x"})
	if err != nil || res.RowsAffected != 1 || res.IDs != nil || gen.calls != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := stored(t, db); got[0].Note != "x" {
		t.Errorf("%v", got)
	}
}

func TestAGeneratorsErrorSendsNothing(t *testing.T) {
	db := &spy{Execer: open(t, ordersDDL)}
	h, gen := newHook(t, sqlxhook.Config{})
	gen.err = keygen.ErrStarved
	rows := []order{{UserID: 1}, {UserID: 2}}
	_, err := h.NamedExec(t.Context(), db, insertOrder, rows)
	if !errors.Is(err, keygen.ErrStarved) || !strings.Contains(err.Error(), "order.ID") || len(db.queries) != 0 || rows[0].ID != 0 {
		t.Errorf("%v, %q, %v", err, db.queries, rows)
	}
}

func TestAGeneratorThatReturnsTheZeroKeyIsRefused(t *testing.T) {
	zero := keygen.Func[int64](func(context.Context) (int64, error) { return 0, nil })
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: zero, Named: map[string]keygen.Generator[int64]{"order": zero}}})
	if err != nil {
		t.Fatal(err)
	}
	db := &spy{Execer: open(t, ordersDDL)}
	_, err = h.NamedExec(t.Context(), db, insertOrder, []order{{UserID: 1}})
	if err == nil || !strings.Contains(err.Error(), "zero key") || len(db.queries) != 0 {
		t.Errorf("%v, %q", err, db.queries)
	}
}

func TestAnErrorOfTheDatabaseKeepsTheIDs(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{})
	db.MustExec("INSERT INTO orders (id, user_id) VALUES (10, 1)")
	o := order{UserID: 2}
	res, err := h.Insert(t.Context(), db, "orders", &o)
	if err == nil || !strings.Contains(err.Error(), "UNIQUE") || o.ID != 10 || !slices.Equal(res.IDs, []int64{10}) {
		t.Errorf("%+v, %v, %+v", o, err, res)
	}
}

func TestAClosedHandleSendsNothingAndTheIDsAreRemoved(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{})
	tx := db.MustBegin()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	rows := []keyKinds{{}, {ID: new(uint64)}}
	_, err := h.NamedExec(t.Context(), tx, "INSERT INTO k VALUES (:id, :no, :serial)", rows)
	if !errors.Is(err, sql.ErrTxDone) || rows[0].ID != nil || *rows[1].ID != 0 || rows[0].No.Valid || rows[1].Serial != 0 {
		t.Errorf("%v, %+v", err, rows)
	}
}

func TestANilHandleIsRefused(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	for _, e := range []sqlxhook.Execer{nil, (*sqlx.DB)(nil), (*sqlx.Tx)(nil), (*sqlx.Conn)(nil)} {
		if _, err := h.Insert(t.Context(), e, "orders", &order{}); !errors.Is(err, sqlxhook.ErrNil) || !strings.Contains(err.Error(), "handle is nil") {
			t.Errorf("%T: %v", e, err)
		}
	}
	var q *sqlx.DB
	if rows, err := h.NamedQuery(t.Context(), q, "SELECT 1", &order{}); !errors.Is(err, sqlxhook.ErrNil) || rows != nil {
		t.Errorf("NamedQuery: %v", err)
	}
}

func TestANilGeneratorIsRefusedAtOnce(t *testing.T) {
	for says, set := range map[string]keygen.Set{
		"Default is a nil *snowflake.Generator": {Default: (*snowflake.Generator)(nil)},
		`Text["text"] is nil`:                   {Text: map[string]keygen.Generator[string]{"text": nil}},
	} {
		if _, err := sqlxhook.New(sqlxhook.Config{Generators: set}); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestFillOnlyFills(t *testing.T) {
	h, gen := newHook(t, sqlxhook.Config{})
	rows := []*order{{}, {ID: 5}, {}}
	if err := h.Fill(t.Context(), rows); err != nil || rows[0].ID != 10 || rows[1].ID != 5 || rows[2].ID != 20 || gen.calls != 1 {
		t.Errorf("%v, %v", err, rows)
	}
	for arg, want := range map[any]error{
		&struct{ A int }{}: sqlxhook.ErrNoKey, &map[string]any{}: sqlxhook.ErrNoKey,
		order{}: sqlxhook.ErrNotAddressable, 5: sqlxhook.ErrArgument, &disagrees{}: sqlxhook.ErrTag,
	} {
		if err := h.Fill(t.Context(), arg); !errors.Is(err, want) {
			t.Errorf("%T: %v", arg, err)
		}
	}
}

func TestConfigurationMistakesNameTheField(t *testing.T) {
	for field, c := range map[string]sqlxhook.Config{
		"MaxParams":  {MaxParams: -1},
		"65535":      {MaxParams: 70000},
		"DriverName": {DriverName: "sqlmock"},
	} {
		if _, err := sqlxhook.New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
