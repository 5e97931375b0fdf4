// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

func kindsOfGenerators() keygen.Set {
	var n atomic.Int64
	return keygen.Set{
		Named: map[string]keygen.Generator[int64]{"bill": keygen.Counting(1, 1)},
		Text: map[string]keygen.Generator[string]{"bill": keygen.Func[string](func(context.Context) (string, error) {
			return fmt.Sprintf("bill_%d", n.Add(1)), nil
		})},
		Binary: map[string]keygen.Generator[[16]byte]{"bill": keygen.Func[[16]byte](func(context.Context) ([16]byte, error) {
			return uuid.NewV7()
		})},
	}
}

var sqlxKeys = map[string]sqlxStory{
	"keys of every kind are stored and read back":               keysOfEveryKind,
	"NamedQuery returns the rows it inserted":                   namedQueryReturns,
	"LastInsertId is the key":                                   lastInsertIDIsTheKey,
	"inserts need no second connection":                         noSecondConnection,
	"a split batch is all or nothing, or tells how far it came": splitAllOrNothing,
}

// kindKeys has a key of each kind.
type kindKeys struct {
	Number  uint64         `db:"number" keygen:"bill"`
	Pointer *int64         `db:"pointer" keygen:"bill"`
	Null    sql.NullInt64  `db:"nulled" keygen:"bill"`
	ID      keygen.ID      `db:"id" keygen:"bill"`
	Digits  string         `db:"digits" keygen:"bill,base36,pad=8"`
	Text    string         `db:"text" keygen:"bill"`
	NullStr sql.NullString `db:"nulltext" keygen:"bill"`
	UUID    uuid.UUID      `db:"uuid" keygen:"bill"`
	NullID  uuid.NullUUID  `db:"nulluuid" keygen:"bill"`
}

func keysOfEveryKind(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	id := "CHAR(36)"
	if db.DriverName() == "pgx" {
		id = "UUID"
	}
	db.MustExec("CREATE TABLE kinds (number BIGINT, pointer BIGINT, nulled BIGINT, id BIGINT, digits VARCHAR(40), text VARCHAR(40), nulltext VARCHAR(40), uuid " + id + ", nulluuid " + id + ")")
	rows := make([]kindKeys, 2)
	if _, err := h.Insert(t.Context(), db.DB, "kinds", rows); err != nil {
		t.Fatal(err)
	}
	var stored []kindKeys
	if err := db.Select(&stored, "SELECT * FROM kinds ORDER BY number"); err != nil || len(stored) != 2 {
		t.Fatalf("%d rows, %v", len(stored), err)
	}
	for i, row := range rows {
		if row.Number == 0 || row.Pointer == nil || !row.Null.Valid || len(row.Digits) != 8 || !strings.HasPrefix(row.Text, "bill_") || row.UUID == uuid.Nil || !row.NullID.Valid {
			t.Errorf("not filled: %+v", row)
		}
		if *stored[i].Pointer != *row.Pointer {
			t.Errorf("%d became %d", *row.Pointer, *stored[i].Pointer)
		}
		if stored[i].Pointer = row.Pointer; stored[i] != row {
			t.Errorf("\n%+v became\n%+v", row, stored[i])
		}
	}
}

func namedQueryReturns(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	tx := db.MustBeginTx(t.Context(), nil)
	rows := []bill{{Note: "a"}, {ID: 1000, Note: "b"}, {Note: "c"}}
	found, err := h.NamedQuery(t.Context(), tx, "INSERT INTO bills (id, user_id, note) VALUES (:id, :user_id, :note) RETURNING id, user_id, note", rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []bill
	if err := sqlx.StructScan(found, &got); err != nil || !slices.Equal(got, rows) || rows[2].ID != 2 {
		t.Errorf("%v, %v, rows %v", got, err, rows)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b bill) int { return int(a.ID - b.ID) })
	wantBills(t, db, rows)
}

func lastInsertIDIsTheKey(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
	t.Helper()
	res, err := h.Insert(t.Context(), db.DB, "bills", []bill{{}, {ID: 1000}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id != 2 || res.RowsAffected != 3 {
		t.Errorf("%d, %v, %d rows", id, err, res.RowsAffected)
	}
}

// The pool has one connection, which is in a transaction, so no connection can become
// free.
func noSecondConnection(t *testing.T, db sqlxDatabase, _ *sqlxhook.Hook) {
	t.Helper()
	db.SetMaxOpenConns(1)
	defer db.SetMaxOpenConns(0)
	ctx := testwait.Context(t)
	h := sqlxHook(t, sqlxhook.Config{MaxParams: 6, DriverName: db.DriverName()})
	rows := make([]bill, 5)
	if _, err := h.Insert(ctx, db.DB, "bills", rows[:3]); err != nil {
		t.Error(err)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(ctx, tx, "bills", rows[3:]); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	wantBills(t, db, rows)
}

func splitAllOrNothing(t *testing.T, db sqlxDatabase, _ *sqlxhook.Hook) {
	t.Helper()
	h := sqlxHook(t, sqlxhook.Config{MaxParams: 6, DriverName: db.DriverName()})
	db.MustExec("INSERT INTO bills (id) VALUES (4)")
	rows := make([]bill, 5)
	if _, err := h.Insert(t.Context(), db.DB, "bills", rows); err == nil {
		t.Error("a duplicate key was stored")
	}
	wantBills(t, db, []bill{{ID: 4}})

	db.MustExec("INSERT INTO bills (id) VALUES (9)")
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Insert(t.Context(), conn, "bills", make([]bill, 5)) // 6, 7, 8, 9, 10
	var partial *sqlxhook.PartialError
	if !errors.As(err, &partial) || partial.Done != 2 {
		t.Errorf("%v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	wantBills(t, db, []bill{{ID: 6}, {ID: 7}, {ID: 9}})
}

func TestSqlxBatchesStayBelowMaxAllowedPacket(t *testing.T) {
	mariadb := server.RunMariaDB(t, "--max-allowed-packet=1M")
	for name, parameters := range map[string]string{"prepared": "", "written into the text": "interpolateParams=true"} {
		t.Run(name, func(t *testing.T) {
			mariadb.Open(t, "shop")
			dsn := mariadb.DSN("shop")
			if parameters != "" {
				dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + parameters
			}
			db, err := sqlx.Open("mysql", dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			db.MustExec("DROP TABLE IF EXISTS bills")
			db.MustExec("CREATE TABLE bills (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(20000) NOT NULL)")

			rows := make([]bill, 300) // 3 MB, and twice that when each quote is escaped
			for i := range rows {
				rows[i].Note = strings.Repeat("'", 10000)
			}
			if _, err := sqlxHook(t, sqlxhook.Config{MaxBytes: 64 << 20}).Insert(t.Context(), db, "bills", slices.Clone(rows)); err == nil {
				t.Fatal("the server took a packet above its limit, so this test shows nothing")
			}
			db.SetMaxIdleConns(0) // the server ends that connection, sooner or later
			res, err := sqlxHook(t, sqlxhook.Config{MaxBytes: 1 << 20}).Insert(t.Context(), db, "bills", rows)
			if err != nil || res.RowsAffected != 300 {
				t.Fatalf("%d rows, %.200s", res.RowsAffected, fmt.Sprint(err))
			}
			var sum int64
			if err := db.Get(&sum, "SELECT SUM(LENGTH(note)) FROM bills"); err != nil || sum != 3_000_000 {
				t.Errorf("%d bytes, %v", sum, err)
			}
		})
	}
}
