// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sqlxhook"
)

// speaks is a handle for a database that does not exist: it records the statements.
type speaks struct {
	driver  string
	queries []string
	args    [][]any
}

func (s *speaks) DriverName() string         { return s.driver }
func (s *speaks) Rebind(query string) string { return sqlx.Rebind(sqlx.BindType(s.driver), query) }
func (s *speaks) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	s.queries = append(s.queries, query)
	s.args = append(s.args, args)
	return noResult{}, nil
}

type noResult struct{}

func (noResult) LastInsertId() (int64, error) { return 0, nil }
func (noResult) RowsAffected() (int64, error) { return 0, nil }

func TestStatementsThatSqlxBreaksAreSentUnchanged(t *testing.T) {
	two := []order{{ID: 1, UserID: 5, Note: "n"}, {ID: 2, UserID: 6, Note: "n"}}
	one := &two[0]
	for name, c := range map[string]struct {
		driver, query string
		arg           any
		want          string
		args          []any
	}{
		"batch without a column list": {
			"mysql", "INSERT INTO orders VALUES (:id, :user_id)", two,
			"INSERT INTO orders VALUES (?, ?),(?, ?)", []any{int64(1), int64(5), int64(2), int64(6)}},
		"parameter behind ON CONFLICT in a batch": {
			"sqlite", "INSERT INTO orders (id) VALUES (:id) ON CONFLICT (id) DO UPDATE SET note = :note", two,
			"INSERT INTO orders (id) VALUES (?),(?) ON CONFLICT (id) DO UPDATE SET note = ?", []any{int64(1), int64(2), "n"}},
		"parameter behind ON DUPLICATE KEY in a batch": {
			"mysql", "INSERT INTO orders (id) VALUES (:id) ON DUPLICATE KEY UPDATE id = VALUES(id), note = :note", two,
			"INSERT INTO orders (id) VALUES (?),(?) ON DUPLICATE KEY UPDATE id = VALUES(id), note = ?", []any{int64(1), int64(2), "n"}},
		"parenthesis in a literal": {
			"sqlite", "INSERT INTO orders (id, note) VALUES (:id, 'a)b')", two,
			"INSERT INTO orders (id, note) VALUES (?, 'a)b'),(?, 'a)b')", []any{int64(1), int64(2)}},
		"nested parentheses and functions": {
			"sqlite", "INSERT INTO orders (id, note) VALUES ((:id), coalesce(lower(:note), ')'))", two,
			"INSERT INTO orders (id, note) VALUES ((?), coalesce(lower(?), ')')),((?), coalesce(lower(?), ')'))", []any{int64(1), "n", int64(2), "n"}},
		"cast": {
			"postgres", "INSERT INTO orders (id, note) VALUES (:id::bigint, :note::text)", two,
			"INSERT INTO orders (id, note) VALUES ($1::bigint, $2::text),($3::bigint, $4::text)", []any{int64(1), "n", int64(2), "n"}},
		"time literal": {
			"mysql", "INSERT INTO orders (id, note) VALUES (:id, '12:30:00')", one,
			"INSERT INTO orders (id, note) VALUES (?, '12:30:00')", []any{int64(1)}},
		"question mark in a literal": {
			"postgres", "INSERT INTO orders (id, note) VALUES (:id, 'what?')", one,
			"INSERT INTO orders (id, note) VALUES ($1, 'what?')", []any{int64(1)}},
		"question mark operator": {
			"postgres", "UPDATE orders SET note = :note WHERE tags ? 'a'", one,
			"UPDATE orders SET note = $1 WHERE tags ? 'a'", []any{"n"}},
		"comment and assignment": {
			"mysql", "/* :no */ INSERT INTO orders (id, note) VALUES (:id, @x := 1) -- :no", one,
			"/* :no */ INSERT INTO orders (id, note) VALUES (?, @x := 1) -- :no", []any{int64(1)}},
		"names beyond ASCII and the last byte": {
			"sqlite", "UPDATE orders SET note=:größe", map[string]any{"größe": 1},
			"UPDATE orders SET note=?", []any{1}},
		"dollar quotes": {
			"postgres", "INSERT INTO orders (id, note) VALUES (:id, $q$:no)$q$)", two,
			"INSERT INTO orders (id, note) VALUES ($1, $q$:no)$q$),($2, $q$:no)$q$)", []any{int64(1), int64(2)}},
		"WITH before and a parameter in it": {
			"sqlite", "WITH n AS (SELECT :note AS v) INSERT INTO orders (id, note) VALUES (:id, (SELECT v FROM n))", two,
			"WITH n AS (SELECT ? AS v) INSERT INTO orders (id, note) VALUES (?, (SELECT v FROM n)),(?, (SELECT v FROM n))", []any{"n", int64(1), int64(2)}},
		"VALUE, partitions, modifiers, qualified columns": {
			"mysql", "INSERT LOW_PRIORITY IGNORE INTO shop.`orders` PARTITION (p0) (orders.id) VALUE (:id)", two,
			"INSERT LOW_PRIORITY IGNORE INTO shop.`orders` PARTITION (p0) (orders.id) VALUE (?),(?)", []any{int64(1), int64(2)}},
		"VALUES ROW": {
			"mysql", "REPLACE orders VALUES ROW(:id, :note)", two,
			"REPLACE orders VALUES ROW(?, ?),ROW(?, ?)", []any{int64(1), "n", int64(2), "n"}},
		"OVERRIDING SYSTEM VALUE": {
			"pgx", "INSERT INTO orders (id) OVERRIDING SYSTEM VALUE VALUES (:id) RETURNING id", two,
			"INSERT INTO orders (id) OVERRIDING SYSTEM VALUE VALUES ($1),($2) RETURNING id", []any{int64(1), int64(2)}},
		"INSERT SET": {
			"mysql", "INSERT INTO orders SET id = :id, note = :note", one,
			"INSERT INTO orders SET id = ?, note = ?", []any{int64(1), "n"}},
		"INSERT SELECT": {
			"sqlite", "INSERT OR IGNORE INTO orders (id, note) SELECT :id, note FROM old", one,
			"INSERT OR IGNORE INTO orders (id, note) SELECT ?, note FROM old", []any{int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			h, gen := newHook(t, sqlxhook.Config{})
			db := &speaks{driver: c.driver}
			for range 2 { // compiled, and from the cache
				if _, err := h.NamedExec(t.Context(), db, c.query, c.arg); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 2 {
				if db.queries[i] != c.want || !slices.Equal(db.args[i], c.args) {
					t.Errorf("\ngot  %s %v\nwant %s %v", db.queries[i], db.args[i], c.want, c.args)
				}
			}
			if gen.calls != 0 {
				t.Error("preset keys were generated")
			}
		})
	}
}

func TestAKeyIsFilledWhateverTheInsertLooksLike(t *testing.T) {
	for _, query := range []string{
		"INSERT INTO orders VALUES (:id, :note)",
		"INSERT INTO orders (`ID`) VALUES (:id)",
		"INSERT INTO orders (note, id) VALUES (:note, CAST(:id AS SIGNED))",
		"INSERT INTO orders SET id = :id",
		"INSERT INTO orders (id) SELECT :id",
		"REPLACE INTO orders (id) VALUES (:id)",
		"WITH x AS (SELECT 1) INSERT INTO orders (id) VALUES (:id)",
	} {
		h, _ := newHook(t, sqlxhook.Config{})
		o := order{}
		if _, err := h.NamedExec(t.Context(), &speaks{driver: "mysql"}, query, &o); err != nil || o.ID != 10 {
			t.Errorf("%s: id %d, %v", query, o.ID, err)
		}
	}
}

func TestNamedAndNumberedParametersDoNotMix(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "postgres"}
	if _, err := h.NamedExec(t.Context(), db, "UPDATE orders SET note = :note WHERE id = $1", &order{}); !errors.Is(err, sqlxhook.ErrStatement) {
		t.Error(err)
	}
}

func TestAParameterOutsideVALUESMustAgreeInABatch(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "sqlite"}
	rows := []order{{Note: "a"}, {Note: "a"}, {Note: "b"}}
	_, err := h.NamedExec(t.Context(), db, "INSERT INTO orders (id) VALUES (:id) ON CONFLICT (id) DO UPDATE SET note = :note", rows)
	var row *sqlxhook.RowError
	if !errors.Is(err, sqlxhook.ErrStatement) || !errors.As(err, &row) || row.Row != 2 || row.Field != "note" {
		t.Errorf("%v", err)
	}
	if len(db.queries) != 0 || rows[0].ID != 0 {
		t.Error("something was sent or stored")
	}
}

func TestAnUnknownDatabaseIsRefusedOnlyWhereItMatters(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "sqlmock"}
	if _, err := h.NamedExec(t.Context(), db, insertOrder, &order{}); err != nil {
		t.Errorf("plain SQL: %v", err)
	}
	for _, query := range []string{`UPDATE orders SET note = 'it\' , id = :id`, "UPDATE orders SET note = `a` # :id"} {
		if _, err := h.NamedExec(t.Context(), db, query, &order{}); !errors.Is(err, sqlxhook.ErrDriver) && !errors.Is(err, sqlxhook.ErrStatement) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := h.Insert(t.Context(), db, "orders", &order{}); err == nil || err.Error() != "sqlxhook: "+sqlxhook.ErrDriver.Error() {
		t.Errorf("quoting: %v", err)
	}
	for driver, want := range map[string]string{
		"mysql":    "INSERT INTO `orders` (`id`,`user_id`,`note`) VALUES (?,?,?)",
		"mariadb":  "INSERT INTO `orders` (`id`,`user_id`,`note`) VALUES (?,?,?)",
		"sqlite3":  `INSERT INTO "orders" ("id","user_id","note") VALUES (?,?,?)`,
		"postgres": `INSERT INTO "orders" ("id","user_id","note") VALUES (?,?,?)`,
	} {
		h, _ := newHook(t, sqlxhook.Config{DriverName: driver})
		db := &speaks{driver: "sqlmock"}
		if _, err := h.Insert(t.Context(), db, "orders", &order{}); err != nil || db.queries[0] != want {
			t.Errorf("%s: %q, %v", driver, db.queries, err)
		}
	}
}

func TestAMapperOfYourOwnNamesTheColumns(t *testing.T) {
	type event struct {
		ID        int64 `keygen:"order"`
		CreatedAt time.Time
	}
	h, _ := newHook(t, sqlxhook.Config{Mapper: reflectx.NewMapperFunc("json", func(s string) string { return "c_" + strings.ToLower(s) })})
	db := &speaks{driver: "mysql"}
	if _, err := h.Insert(t.Context(), db, "events", []event{{}, {}}); err != nil {
		t.Fatal(err)
	}
	if want := "INSERT INTO `events` (`c_id`,`c_createdat`) VALUES (?,?),(?,?)"; db.queries[0] != want {
		t.Errorf("%s", db.queries[0])
	}
}

func TestThePlanCacheIsBounded(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := &speaks{driver: "mysql"}
	for i := range 3000 {
		query := "UPDATE orders SET note = :note WHERE id = " + strings.Repeat("1", i%1500+1)
		if _, err := h.NamedExec(t.Context(), db, query, &order{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := sqlxhook.PlansOf(h); n != sqlxhook.MaxPlans {
		t.Errorf("%d plans are kept", n)
	}
}

func FuzzNamedExecChangesNothingButParameters(f *testing.F) {
	for _, query := range []string{
		insertOrder, "INSERT INTO orders VALUES (:id, 'a)b'), (:id, :note) ON DUPLICATE KEY UPDATE note = VALUES(note)", "WITH x AS (SELECT 1",
		"INSERT", "INSERT INTO", "INSERT INTO a.", "INSERT OR", "INSERT INTO t VALUES (", "INSERT INTO t (a VALUES (:id)", "INSERT INTO t VALUES ROW",
		"INSERT INTO t VALUES (),(", "REPLACE t VALUES ROW(:id),", ")", "WITH (", ";:id", "INSERT INTO t VALUES (,:id,,)",
	} {
		f.Add(query)
	}
	h, err := sqlxhook.New(sqlxhook.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, driver := range []string{"mysql", "sqlite", "postgres", "other"} {
			db := &speaks{driver: driver}
			row := map[string]string{"id": "1", "note": "2"}
			if _, err := h.NamedExec(t.Context(), db, query, []map[string]string{row}); err != nil {
				continue
			}
			sent := db.queries[0]
			for i := range db.args[0] {
				mark := "?"
				if driver == "postgres" {
					mark = "$" + strconv.Itoa(i+1)
				}
				name := ":id"
				if db.args[0][i] == "2" {
					name = ":note"
				}
				// Whatever stands between parameters is copied, so putting the
				// names back from the left restores the query.
				at := matchUpTo(query, sent)
				if !strings.HasPrefix(sent[at:], mark) || !strings.HasPrefix(query[at:], name) {
					t.Fatalf("%s: %q became %q", driver, query, db.queries[0])
				}
				sent = sent[:at] + name + sent[at+len(mark):]
			}
			if sent != query {
				t.Fatalf("%s: %q became %q", driver, query, db.queries[0])
			}
			_, _ = h.NamedExec(t.Context(), db, query, []map[string]string{row, row})
		}
	})
}

// matchUpTo returns the length of the common prefix.
func matchUpTo(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
