// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sqlxhook"
)

// plainOrder is an order that nothing fills.
type plainOrder struct {
	ID     int64  `db:"id"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
	Place  struct {
		City string `db:"city"`
	} `db:"place"`
}

func TestWithoutManagedFieldsTheTextAndArgumentsAreThoseOfSqlx(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	one := plainOrder{ID: 1, UserID: 2, Note: "n"}
	one.Place.City = "Brno"
	two := []plainOrder{one, {ID: 2}}
	maps := []map[string]any{{"id": 1, "note": nil}, {"id": 2, "note": "x"}}
	for _, c := range []struct {
		query string
		arg   any
	}{
		{"SELECT * FROM orders WHERE id = :id AND user_id=:user_id", one},
		{"SELECT * FROM orders WHERE id = :id OR id = :id", &one},
		{"SELECT * FROM orders WHERE city = :place.city", one},
		{"SELECT * FROM orders WHERE id IN (:id, :user_id)", one},
		{"SELECT 1", one},
		{"UPDATE orders SET note = :note WHERE id = :id", map[string]any{"id": 1, "note": "x"}},
		{"UPDATE orders SET note = :note WHERE id = :id", &one},
		{"DELETE FROM orders WHERE id=:id", one},
		{"INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)", one},
		{"INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)", two},
		{"INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note);", two},
		{"insert into orders (id, user_id) values (:id, :user_id)", two},
		{"INSERT INTO orders (id,\n\tnote)\nVALUES (\n\t:id,\n\tupper(:note)\n)", two},
		{"INSERT INTO orders (id, note) VALUES (:id, :note)", maps},
		{"INSERT INTO orders (id, note) VALUES (:id, :note) ON CONFLICT (id) DO NOTHING", maps},
		{"INSERT INTO orders (id, note) VALUES (:id, :note) ON DUPLICATE KEY UPDATE note = VALUES(note)", []*plainOrder{&one, &two[1]}},
		{"INSERT INTO orders (id, note) VALUES (:id, :note) RETURNING id, note", two},
		{"INSERT INTO orders (id, note) VALUES (:id, 'constant')", two},
		{"REPLACE INTO orders (id, note) VALUES (:id, :note)", two},
		{"INSERT INTO größe (id) VALUES (:id)", one},
	} {
		for _, driver := range []string{"mysql", "sqlite3", "postgres", "sqlserver"} {
			db := sqlx.NewDb(nil, driver)
			sent, args, err := sqlxhook.Bind(h, db, c.query, c.arg)
			want, wantArgs, wantErr := db.BindNamed(c.query, c.arg)
			if err != nil || wantErr != nil || sent != want || !reflect.DeepEqual(args, wantArgs) && len(args)+len(wantArgs) > 0 {
				t.Errorf("%s, %s: %v, %v\n%s %v\n%s %v", driver, c.query, err, wantErr, sent, args, want, wantArgs)
			}
		}
	}
}

func TestStatementsThatSqlxRefusesAreRefused(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	db := sqlx.NewDb(nil, "mysql")
	for _, c := range []struct {
		query string
		arg   any
	}{
		{"SELECT :missing", plainOrder{}},
		{"SELECT :missing", map[string]any{"id": 1}},
		{"INSERT INTO orders (id) VALUES (:id)", []plainOrder{}},
		{"INSERT INTO orders (id) VALUES (:id)", []map[string]any{{"id": 1}, {}}},
	} {
		_, _, err := sqlxhook.Bind(h, db, c.query, c.arg)
		if _, _, theirs := db.BindNamed(c.query, c.arg); err == nil || theirs == nil {
			t.Errorf("%s %v: %v, sqlx: %v", c.query, c.arg, err, theirs)
		}
	}
}

func TestTheMapperOfTheHandleIsUsedUnlessOneIsConfigured(t *testing.T) {
	type person struct {
		First string `col:"FIRST" db:"first"`
	}
	db := open(t, "CREATE TABLE person (FIRST TEXT)")
	db.Mapper = reflectx.NewMapperFunc("col", strings.ToUpper)
	h, _ := newHook(t, sqlxhook.Config{DriverName: "sqlite"})
	tx := db.MustBegin()
	if _, err := h.NamedExec(t.Context(), tx, "INSERT INTO person VALUES (:FIRST)", person{"tx"}); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(t.Context(), conn, "person", person{"conn"}); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	// A handle of another type cannot be asked, and has the default.
	if _, err := h.NamedExec(t.Context(), &spy{Execer: db}, "INSERT INTO person VALUES (:first)", person{"spy"}); err != nil {
		t.Error(err)
	}
	own, _ := newHook(t, sqlxhook.Config{DriverName: "sqlite", Mapper: reflectx.NewMapperFunc("db", strings.ToLower)})
	if _, err := own.NamedExec(t.Context(), db, "INSERT INTO person VALUES (:first)", person{"own"}); err != nil {
		t.Error(err)
	}
	var names []string
	if err := db.Select(&names, "SELECT first FROM person"); err != nil || fmt.Sprint(names) != "[tx conn spy own]" {
		t.Errorf("%v, %v", names, err)
	}
}
