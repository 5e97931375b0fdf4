// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// purchase is an order by its user; its id carries the user's slot in its two
// lowest bits.
type purchase struct {
	ID     int64 `db:"id"`
	UserID int64 `db:"user_id"`
}

type line struct {
	ID     int64 `db:"id" keygen:"line"`
	UserID int64 `db:"user_id"`
}

// market is a shop by user over two databases with two tables each: purchases and lines, which are
// one group, reviews, which are in none, and broadcast regions. The west is the home of the other
// tables.
type market struct {
	*sqlxhook.Hook
	db     *sqlx.DB // routed
	router *sharding.Router
	own    map[string]*sqlx.DB
}

func newMarket(t testing.TB, options ...sharding.Option) market {
	t.Helper()
	names := []string{"east", "west"}
	m := market{own: map[string]*sqlx.DB{}}
	dbs := sharding.DBs{}
	for d, name := range names {
		m.own[name] = open(t, "CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", "CREATE TABLE log (id INTEGER)")
		dbs[name] = m.own[name].DB
		for i := d; i < 4; i += 2 {
			for _, table := range []string{"purchases", "lines", "reviews"} {
				m.own[name].MustExec(fmt.Sprintf("CREATE TABLE %s_%d (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)", table, i))
			}
		}
	}
	rule := sharding.Low(2)
	var err error
	m.router, err = sharding.New(dbs, append(options,
		sharding.Table{Name: "purchases", Key: "user_id", Rule: rule, Map: spread(t, names, "purchases_%d"), Group: "user",
			Also: []sharding.Alt{{Column: "id", Rule: rule, From: 1000}}},
		sharding.Table{Name: "lines", Key: "user_id", Rule: rule, Map: spread(t, names, "lines_%d"), Group: "user"},
		sharding.Table{Name: "reviews", Key: "user_id", Rule: rule, Map: spread(t, names, "reviews_%d")},
		sharding.Broadcast("regions"))...)
	if err != nil {
		t.Fatal(err)
	}
	m.Hook, m.db = routed(t, m.router, m.own["west"].DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}})
	return m
}

// routed returns the routed database of a router, and a hook for it.
func routed(t testing.TB, router *sharding.Router, home *sql.DB, set keygen.Set) (*sqlxhook.Hook, *sqlx.DB) {
	t.Helper()
	h, err := sqlxhook.New(sqlxhook.Config{Generators: set, Router: router})
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), "sqlite")
	t.Cleanup(func() { _ = db.Close() })
	return h, db
}

func spread(t testing.TB, dbs []string, pattern string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread(dbs, 4, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func idsIn(t testing.TB, db *sqlx.DB, table string) []int64 {
	t.Helper()
	var ids []int64
	if err := db.Select(&ids, "SELECT id FROM "+table+" ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	return ids
}

// in returns the ids in each of the four tables.
func (m market) in(t testing.TB, table string) string {
	t.Helper()
	var all []string
	for i, name := range []string{"east", "west", "east", "west"} {
		all = append(all, fmt.Sprint(idsIn(t, m.own[name], fmt.Sprintf("%s_%d", table, i))))
	}
	return strings.Join(all, " ")
}

// Reads and writes have the results of one unsharded shop, with each method of sqlx.
func TestARoutedDatabaseIsUsedAsAnyOther(t *testing.T) {
	m := newMarket(t)
	ctx := t.Context()
	if _, err := m.Insert(ctx, m.db, "Purchases", &purchase{1003, 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Insert(ctx, m.db, "lines", []line{{UserID: 7}, {UserID: 3}}); err != nil {
		t.Fatal(err)
	}
	m.own["west"].MustExec("INSERT INTO regions VALUES (1, 'here')")
	const joined = "SELECT count(*) FROM purchases JOIN lines AS l ON l.user_id = purchases.user_id JOIN regions ON 1 WHERE purchases.id = ?"
	var n int
	if err := m.db.GetContext(ctx, &n, joined, 1003); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	var lines []line
	if err := m.db.SelectContext(ctx, &lines, "SELECT lines.* FROM lines ORDER BY id"); err != nil || !slices.Equal(lines, []line{{1, 7}, {2, 3}}) {
		t.Errorf("%v, %v", lines, err)
	}
	found, err := m.NamedQuery(ctx, m.db, "SELECT * FROM lines WHERE id = :id", line{ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlx.StructScan(found, &lines); err != nil || !slices.Equal(lines, []line{{2, 3}}) {
		t.Errorf("%v, %v", lines, err)
	}
	prepared, err := m.db.PreparexContext(ctx, "SELECT id FROM lines WHERE user_id = ?")
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[int64]int64{7: 1, 3: 2} {
		var id int64
		if err := prepared.Get(&id, user); err != nil || id != want {
			t.Errorf("line %d of user %d, %v", id, user, err)
		}
	}
	if err := prepared.Close(); err != nil {
		t.Error(err)
	}
	res, err := m.NamedExec(ctx, m.db, "DELETE FROM purchases WHERE user_id = :user_id", purchase{UserID: 7})
	if err != nil || res.RowsAffected != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestStatementsThatCannotBeRoutedAreRefusedAndNothingIsStored(t *testing.T) {
	m := newMarket(t)
	for query, want := range map[string]error{
		"SELECT * FROM purchases, reviews WHERE purchases.user_id = 7 AND reviews.user_id = 7": sharding.ErrCrossShard,
		"SELECT * FROM main.purchases":                                                 sharding.ErrCrossShard,
		"SELECT * FROM lines; DELETE FROM lines":                                       sharding.ErrRawTable,
		"TRUNCATE TABLE purchases":                                                     sharding.ErrRawTable,
		"DROP TABLE purchases":                                                         sharding.ErrRawTable,
		"CREATE INDEX i ON lines (user_id)":                                            sharding.ErrRawTable,
		"INSERT INTO lines (id) VALUES (:id)":                                          sharding.ErrMissingKey,
		"INSERT INTO lines VALUES (:id, 7)":                                            sharding.ErrMissingKey,
		"INSERT INTO lines (id, user_id) VALUES (:id, 7 + 0)":                          sharding.ErrMissingKey,
		"INSERT INTO lines (id, user_id) VALUES (:id, -'7')":                           sharding.ErrMissingKey,
		"UPDATE purchases SET user_id = 6 WHERE user_id = 7":                           sharding.ErrKeyChange,
		"UPDATE purchases SET id = 1002 WHERE user_id = 7":                             sharding.ErrKeyChange,
		"UPDATE purchases SET (id, USER_ID) = (1, 3) WHERE user_id = 7":                sharding.ErrKeyChange,
		"WITH x AS (UPDATE lines SET `user_id` = 1 RETURNING id) SELECT * FROM x":      sharding.ErrRawTable,
		"WITH x AS (INSERT INTO lines (id) VALUES (:id) RETURNING id) SELECT * FROM x": sharding.ErrRawTable,
		"DELETE FROM lines":                                                            sharding.ErrMissingKey,
		"INSERT INTO lines (id, user_id) VALUES (:id, 'x')":                            sharding.ErrKeyType,
		"INSERT INTO lines (id, user_id) VALUES (:id, NULL)":                           sharding.ErrKeyType,
	} {
		row := line{UserID: 7}
		_, err := m.NamedExec(t.Context(), m.db, query, &row)
		var route *sharding.RouteError
		if !errors.Is(err, want) || !errors.As(err, &route) || row.ID != 0 {
			t.Errorf("%s: %v, %+v", query, err, row)
		}
		if err := queryError(t, m.Hook, m.db, query, &row); !errors.Is(err, want) || row.ID != 0 {
			t.Errorf("NamedQuery %s: %v, %+v", query, err, row)
		}
	}
	for _, table := range []string{"purchases", "lines", "reviews"} {
		if got := m.in(t, table); got != "[] [] [] []" {
			t.Errorf("%s: %s", table, got)
		}
	}
}

// Each of these gives its row's key in another way.
func TestTheKeyOfAnInsertedRowIsFoundWhateverTheInsertLooksLike(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT INTO lines (id, user_id) VALUES (:id, 7)":                         "[] [] [] [1]",
		"INSERT INTO lines (id, user_id) VALUES (:id, '7')":                       "[] [] [] [1]",
		"INSERT INTO lines (user_id, id) VALUES (-1, :id)":                        "[] [] [] [1]",
		"INSERT INTO lines (user_id, id) VALUES (0, :id)":                         "[1] [] [] []", // a key as any other
		"INSERT INTO lines (id, user_id) VALUES (:id, :user_id), (50, 3)":         "[] [] [] [1 50]",
		"INSERT INTO lines (id, user_id) SELECT :id, :user_id":                    "[] [] [] [1]",
		"WITH x AS (SELECT 1) INSERT INTO lines (id, user_id) VALUES (:id, 6)":    "[] [] [1] []",
		"INSERT OR FAIL INTO \"lines\" (`ID`, [User_ID]) VALUES (:id, :user_id) ": "[] [] [] [1]",
	} {
		m := newMarket(t)
		row := line{UserID: 7}
		if _, err := m.NamedExec(t.Context(), m.db, query, &row); err != nil || row.ID != 1 {
			t.Errorf("%s: %v, %+v", query, err, row)
		}
		if got := m.in(t, "lines"); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestAHintChoosesTheShardAndRowsOfOthersAreRefused(t *testing.T) {
	m := newMarket(t)
	ctx := sharding.OnKey(t.Context(), "purchases", 7)
	if _, err := m.Insert(ctx, m.db, "lines", []line{{UserID: 7}, {UserID: 3}}); err != nil {
		t.Fatal(err)
	}
	row := line{UserID: 6}
	if _, err := m.Insert(ctx, m.db, "lines", &row); !errors.Is(err, sharding.ErrMisplaced) || row.ID != 0 {
		t.Errorf("%v, %+v", err, row)
	}
	if _, err := m.Insert(t.Context(), m.db, "lines", &line{UserID: 1}); err != nil {
		t.Fatal(err)
	}
	if res, err := m.NamedExec(ctx, m.db, "DELETE FROM lines WHERE id < :id", line{ID: 100}); err != nil || res.RowsAffected != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	on := sharding.On(t.Context(), sharding.Target{DB: "west", Table: "lines_1"})
	var ids []int64
	if err := m.db.SelectContext(on, &ids, "SELECT id FROM lines"); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
	var route *sharding.RouteError
	if _, err := m.NamedExec(sharding.OnKey(ctx, "lines", nil), m.db, "DELETE FROM lines", line{}); !errors.As(err, &route) {
		t.Errorf("a key that leads nowhere: %v", err)
	}
	if res, err := m.db.ExecContext(sharding.AllShards(t.Context()), "DELETE FROM lines"); err == nil {
		t.Errorf("a write to two databases: %v", res)
	}
	if _, err := m.NamedExec(sharding.Unsharded(t.Context()), m.db, "DELETE FROM lines_1 WHERE id > :id", line{}); err != nil {
		t.Errorf("Unsharded takes names as they are: %v", err)
	}
	if got := m.in(t, "lines"); got != "[] [] [] []" {
		t.Error(got)
	}
}

func TestATransactionIsOnTheDatabaseOfItsFirstStatement(t *testing.T) {
	m := newMarket(t)
	tx := m.db.MustBegin()
	if _, err := m.Insert(t.Context(), tx, "purchases", &purchase{1003, 7}); err != nil {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), tx, "reviews", &line{UserID: 5}); err != nil { // the same database
		t.Error(err)
	}
	row := line{UserID: 4}
	_, err := m.Insert(t.Context(), tx, "lines", &row)
	var route *sharding.RouteError
	if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) || row.ID != 0 || !strings.Contains(err.Error(), "it has begun on database west, and this statement is for database east") {
		t.Errorf("%+v, %v", row, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), tx, "lines", &row); !errors.Is(err, sql.ErrTxDone) || row.ID != 0 {
		t.Errorf("%+v, %v", row, err)
	}
	if got := m.in(t, "purchases") + m.in(t, "reviews"); got != "[] [] [] [][] [] [] []" {
		t.Error(got)
	}
}

func TestASplitBatchInATransactionStaysInIt(t *testing.T) {
	m := newMarket(t)
	tx := m.db.MustBegin()
	rows := make([]line, 20000)
	for i := range rows {
		rows[i].UserID = int64(5 + i%2*2)
	}
	if res, err := m.Insert(t.Context(), tx, "lines", rows); err != nil || res.RowsAffected != 20000 {
		t.Errorf("%d, %v", res.RowsAffected, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if got := m.in(t, "lines"); got != "[] [] [] []" {
		t.Errorf("%.100s", got)
	}
}

func TestATableCalledLikeAKeywordIsRouted(t *testing.T) {
	db := open(t, "CREATE TABLE order_0 (id INTEGER PRIMARY KEY)", "CREATE TABLE order_1 (id INTEGER PRIMARY KEY)")
	targets, err := sharding.Spread([]string{"main"}, 2, "order_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"main": db.DB}, sharding.Table{Name: "order", Key: "id", Rule: sharding.Low(1), Map: targets})
	if err != nil {
		t.Fatal(err)
	}
	h, shop := routed(t, router, db.DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}})
	rows := []base{{}, {}, {}}
	if _, err := h.Insert(t.Context(), shop, "order", rows); err != nil {
		t.Fatal(err)
	}
	if _, err := shop.Exec("DELETE FROM `order` WHERE id = 1"); err != nil {
		t.Error(err)
	}
	var ids []int64
	if err := shop.Select(&ids, `SELECT id FROM "order" ORDER BY id`); err != nil || !slices.Equal(ids, []int64{2, 3}) {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestOneHookAndOneRoutedDatabaseServeManyGoroutines(t *testing.T) {
	m := newMarket(t)
	for _, db := range m.own {
		db.SetMaxOpenConns(1)
	}
	var work sync.WaitGroup
	for g := range int64(4) {
		work.Go(func() {
			for range 25 {
				rows := make([]line, 8)
				for i := range rows {
					rows[i].UserID = g%2 + int64(i%2)*2 // of one database
				}
				if _, err := m.Insert(t.Context(), m.db, "lines", rows); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	var ids []int64
	if err := m.db.Select(&ids, "SELECT id FROM lines ORDER BY id"); err != nil || len(ids) != 800 || ids[799] != 800 {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}

// renameLine is like the functions of repositories, which accept any handle of sqlx.
func renameLine(ctx context.Context, e sqlx.ExtContext, user, id int64) (was int64, err error) {
	row := e.QueryRowxContext(ctx, e.Rebind("SELECT id FROM lines WHERE user_id = ?"), user)
	if err := row.Scan(&was); err != nil {
		return 0, err
	}
	arg := map[string]any{"id": id, "user": user}
	if _, err = sqlx.NamedExecContext(ctx, e, "DELETE FROM lines WHERE user_id = :user", arg); err == nil {
		_, err = sqlx.NamedExecContext(ctx, e, "INSERT INTO lines (id, user_id) VALUES (:id, :user)", arg)
	}
	return was, err
}

func TestFunctionsForAnyHandleOfSqlxWork(t *testing.T) {
	m := newMarket(t)
	ctx := t.Context()
	if _, err := m.Insert(ctx, m.db, "lines", []line{{5, 1}, {9, 3}}); err != nil {
		t.Fatal(err)
	}
	if was, err := renameLine(ctx, m.db, 1, 6); err != nil || was != 5 {
		t.Errorf("%d, %v", was, err)
	}
	tx, err := m.db.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := renameLine(ctx, tx, 1, 7); err != nil || was != 6 {
		t.Errorf("in a transaction: %d, %v", was, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	rows, err := sqlx.NamedQueryContext(ctx, m.db, "SELECT id FROM lines WHERE user_id = :user_id", line{UserID: 1})
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if found := rows.Next(); !found || rows.Scan(&id) != nil || id != 7 || rows.Close() != nil {
		t.Errorf("%t, %d", found, id)
	}
	row := m.db.QueryRowxContext(ctx, "SELECT l.id FROM lines l, reviews r WHERE l.user_id = 1 AND r.user_id = 1")
	if err := row.Scan(&id); !errors.Is(err, sharding.ErrCrossShard) || !errors.Is(row.Err(), sharding.ErrCrossShard) {
		t.Errorf("a row that is refused: %v", err)
	}
}

func TestAListOfKeysIsReadFromItsShards(t *testing.T) {
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	if _, err := m.Insert(t.Context(), m.db, "lines", users(3, 2, 1, 4)); err != nil {
		t.Fatal(err)
	}
	query, args, err := sqlx.In("SELECT * FROM lines WHERE user_id IN (?) ORDER BY id", []int64{4, 3, 2})
	if err != nil {
		t.Fatal(err)
	}
	var rows []line
	if err := m.db.Select(&rows, m.db.Rebind(query), args...); err != nil || !slices.Equal(rows, []line{{1, 3}, {2, 2}, {4, 4}}) {
		t.Errorf("%v, %v", rows, err)
	}
	m.own["west"].MustExec("DROP TABLE lines_3")
	var shard *sharding.ShardError
	if err := m.db.Select(&rows, "SELECT * FROM lines"); !errors.As(err, &shard) || shard.Target.String() != "west/lines_3" {
		t.Errorf("%v", err)
	}
}
