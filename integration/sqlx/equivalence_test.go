// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sqlxhook"
)

var sqlxEquivalence = map[string]sqlxStory{
	"statements do with the hook what they do without":      statementsAlike,
	"queries return with the hook what they return without": queriesAlike,
	"the mapper of the handle is followed":                  mapperFollowed,
}

type (
	audit struct {
		Created time.Time      `db:"created"`
		By      sql.NullString `db:"made_by"`
	}
	person struct {
		First string         `db:"first_name" col:"FIRST"`
		Last  sql.NullString `db:"last_name" col:"last_name"`
		Age   *int           `db:"age"`
		Photo []byte         `db:"photo"`
		audit
		Home struct {
			City string `db:"city"`
		} `db:"home"`
	}
)

func people() []person {
	age := 41
	made := time.Date(2024, 1, 2, 12, 30, 0, 0, time.UTC)
	out := []person{
		{First: "Ada", Last: sql.NullString{String: "Love'lace", Valid: true}, Age: &age, Photo: []byte{0, 1, '\\'}},
		{First: "Bo:b?", audit: audit{By: sql.NullString{String: "", Valid: true}}},
		{First: ""},
	}
	for i := range out {
		out[i].Created = made.Add(time.Duration(i) * time.Hour)
		out[i].Home.City = fmt.Sprint("city ", i)
	}
	return out
}

// namer is sqlx itself, or the hook.
type namer struct {
	exec  func(ctx context.Context, query string, arg any) (rows int64, err error)
	query func(ctx context.Context, query string, arg any) (*sqlx.Rows, error)
}

func ofSqlx(db *sqlx.DB) namer {
	return namer{
		func(ctx context.Context, query string, arg any) (int64, error) {
			res, err := db.NamedExecContext(ctx, query, arg)
			if err != nil {
				return 0, err
			}
			return res.RowsAffected()
		},
		db.NamedQueryContext,
	}
}

func ofHook(db *sqlx.DB, h *sqlxhook.Hook) namer {
	return namer{
		func(ctx context.Context, query string, arg any) (int64, error) {
			res, err := h.NamedExec(ctx, db, query, arg)
			return res.RowsAffected, err
		},
		func(ctx context.Context, query string, arg any) (*sqlx.Rows, error) {
			return h.NamedQuery(ctx, db, query, arg)
		},
	}
}

const insertPerson = "INSERT INTO person (first_name, last_name, age, photo, created, made_by, city) VALUES (:first_name, :last_name, :age, :photo, :created, :made_by, :home.city)"

// sqlxForms are statements as users of sqlx write them, with nothing in them
// that a generator fills.
var sqlxForms = map[string]struct {
	query string
	arg   func() any
}{
	"struct":            {insertPerson, func() any { return people()[0] }},
	"pointer":           {insertPerson, func() any { return &people()[1] }},
	"slice":             {insertPerson, func() any { return people() }},
	"slice of pointers": {insertPerson, func() any { p := people(); return []*person{&p[0], &p[1], &p[2]} }},
	"lines and tabs":    {strings.NewReplacer(" VALUES ", "\n\tVALUES\n\t", ", ", ",\n\t").Replace(insertPerson), func() any { return people() }},
	"lower case":        {strings.NewReplacer("INSERT INTO", "insert into", "VALUES", "values").Replace(insertPerson), func() any { return people() }},
	"semicolon":         {insertPerson + ";", func() any { return people() }},
	"map":               {"INSERT INTO person (first_name, city) VALUES (:f, :city)", func() any { return map[string]any{"f": "Map", "city": "x", "unused": 1} }},
	"slice of maps": {"INSERT INTO person (first_name, city) VALUES (:f, :city)", func() any {
		return []map[string]any{{"f": "one", "city": "x"}, {"f": "two", "city": nil}}
	}},
	"constants beside parameters": {"INSERT INTO person (first_name, city) VALUES (:first_name, 'const')", func() any { return people() }},
	"functions of parameters":     {"INSERT INTO person (first_name, city) VALUES (upper(:first_name), lower(:home.city))", func() any { return people() }},
	"one parameter twice":         {"INSERT INTO person (first_name, city) VALUES (:first_name, :first_name)", func() any { return people()[0] }},
	"update":                      {"UPDATE person SET city = :city WHERE first_name = :first OR first_name = :other", func() any { return map[string]any{"city": "new", "first": "seed", "other": "none"} }},
	"delete":                      {"DELETE FROM person WHERE first_name = :first_name", func() any { return person{First: "seed"} }},
	"insert from a query":         {"INSERT INTO person (first_name, city) SELECT first_name, 'copy' FROM person WHERE first_name = :first_name", func() any { return &person{First: "seed"} }},
	"no parameters":               {"DELETE FROM person", func() any { return map[string]any{} }},
	"a field that is missing":     {"DELETE FROM person WHERE first_name = :nobody", func() any { return person{} }},
	"a map without the key":       {"DELETE FROM person WHERE first_name = :nobody", func() any { return map[string]any{"first_name": 1} }},
	"an empty slice":              {insertPerson, func() any { return []person{} }},
	"a table that is missing":     {"INSERT INTO nowhere (first_name) VALUES (:first_name)", func() any { return people() }},
}

func statementsAlike(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	bytes := map[string]string{"pgx": "BYTEA"}[db.DriverName()]
	if bytes == "" {
		bytes = "BLOB"
	}
	db.MustExec(fmt.Sprintf("CREATE TABLE person (first_name VARCHAR(40), last_name VARCHAR(40), age INTEGER, photo %s, created %s, made_by VARCHAR(40), city VARCHAR(40))", bytes, db.time))
	hook := ofHook(db.DB, h)
	for name, form := range sqlxForms {
		t.Run(name, func(t *testing.T) {
			wantRows, want, wantErr := outcome(t, db, ofSqlx(db.DB), form.query, form.arg())
			gotRows, got, err := outcome(t, db, hook, form.query, form.arg())
			if (err == nil) != (wantErr == nil) || gotRows != wantRows || !reflect.DeepEqual(got, want) {
				t.Errorf("%d rows, %v, %v\nsqlx: %d rows, %v, %v", gotRows, got, err, wantRows, want, wantErr)
			}
		})
	}
}

// outcome executes a statement on a table that holds one row, and returns what
// the table holds then.
func outcome(t *testing.T, db sqlxDatabase, n namer, query string, arg any) (affected int64, table []map[string]any, err error) {
	t.Helper()
	db.MustExec("DELETE FROM person")
	db.MustExec("INSERT INTO person (first_name, city) VALUES ('seed', 'earth')")
	affected, err = n.exec(t.Context(), query, arg)
	rows, queryErr := db.QueryxContext(t.Context(), "SELECT * FROM person ORDER BY first_name, city, created")
	if queryErr != nil {
		t.Fatal(queryErr)
	}
	return affected, mapsOf(t, rows), err
}

func mapsOf(t *testing.T, rows *sqlx.Rows) []map[string]any {
	t.Helper()
	defer func() { _ = rows.Close() }()
	var out []map[string]any
	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func queriesAlike(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	db.MustExec("CREATE TABLE person (first_name VARCHAR(40), city VARCHAR(40))")
	db.MustExec("INSERT INTO person VALUES ('Ada', 'x'), ('Bob', 'y'), ('Eve', NULL)")
	plain, hook := ofSqlx(db.DB), ofHook(db.DB, h)
	for query, arg := range map[string]any{
		"SELECT * FROM person WHERE first_name = :first_name":                         people()[0],
		"SELECT * FROM person WHERE first_name = :first_name OR city=:home.city":      &person{First: "Bob"},
		"SELECT * FROM person WHERE city = :c OR first_name IN (:a, :b) ORDER BY 1":   map[string]any{"c": "y", "a": "Ada", "b": "Eve"},
		"SELECT first_name FROM person WHERE first_name <> :a ORDER BY first_name":    map[string]any{"a": "Ada"},
		"SELECT COUNT(*) AS n FROM person":                                            struct{}{},
		"SELECT * FROM person WHERE first_name = :nobody":                             map[string]any{},
		"SELECT * FROM nowhere WHERE first_name = :first_name":                        people()[0],
		"UPDATE person SET city = city WHERE first_name = :first_name":                people()[0],
		"SELECT first_name FROM person WHERE city = :city GROUP BY first_name -- end": map[string]any{"city": "x"},
	} {
		want, wantErr := plain.query(t.Context(), query, arg)
		var wantRows []map[string]any
		if wantErr == nil {
			wantRows = mapsOf(t, want)
		}
		got, err := hook.query(t.Context(), query, arg)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, sqlx: %v", query, err, wantErr)
			continue
		}
		if err == nil {
			if gotRows := mapsOf(t, got); !reflect.DeepEqual(gotRows, wantRows) {
				t.Errorf("%s: %v, sqlx: %v", query, gotRows, wantRows)
			}
		}
	}
}

func mapperFollowed(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	db.MustExec("CREATE TABLE person (first_name VARCHAR(40), last_name VARCHAR(40))")
	own := sqlx.NewDb(db.DB.DB, db.DriverName())
	own.Mapper = reflectx.NewMapperFunc("col", strings.ToUpper)
	const insert = "INSERT INTO person (first_name, last_name) VALUES (:FIRST, :last_name)"
	for _, n := range []namer{ofSqlx(own), ofHook(own, h)} {
		if _, err := n.exec(t.Context(), insert, people()[:2]); err != nil {
			t.Error(err)
		}
	}
	var names []string
	if err := db.Select(&names, "SELECT first_name FROM person ORDER BY 1"); err != nil || fmt.Sprint(names) != "[Ada Ada Bo:b? Bo:b?]" {
		t.Errorf("%v, %v", names, err)
	}
}
