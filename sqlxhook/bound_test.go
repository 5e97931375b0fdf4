package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
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

// market is a shop by user over two databases with two tables each: purchases and
// lines, which are one group, reviews, which are none, and broadcast regions.
type market struct {
	*sqlxhook.Hook
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
	m.Hook, err = sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}},
		Router:     m.router, DriverName: "sqlite",
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m market) shard(t testing.TB, user int64) *sqlxhook.Shard {
	t.Helper()
	s, err := m.For("purchases", user)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestABoundHandleTakesLogicalNames(t *testing.T) {
	m := newMarket(t)
	s := m.shard(t, 7) // west/purchases_3
	if _, err := m.Insert(t.Context(), s, "Purchases", &purchase{1003, 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Insert(t.Context(), s, "lines", []line{{UserID: 7}, {UserID: 3}}); err != nil {
		t.Fatal(err)
	}
	m.own["west"].MustExec("INSERT INTO regions VALUES (1, 'here')")
	var n int
	err := s.GetContext(t.Context(), &n, "SELECT count(*) FROM purchases JOIN lines AS l ON l.user_id = purchases.user_id JOIN regions ON 1 WHERE purchases.id = ?", 1003)
	if err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	res, err := m.NamedExec(t.Context(), s, "UPDATE purchases SET id = id WHERE user_id = :user_id", purchase{UserID: 7})
	if err == nil || !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = m.NamedExec(t.Context(), s, "DELETE FROM purchases_3 WHERE user_id = :user_id", purchase{UserID: 7}); err != nil || res.RowsAffected != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	var lines []line
	if err := s.SelectContext(t.Context(), &lines, "SELECT lines.* FROM lines ORDER BY id"); err != nil || !slices.Equal(lines, []line{{1, 7}, {2, 3}}) {
		t.Errorf("%v, %v", lines, err)
	}
	found, err := m.NamedQuery(t.Context(), s, "SELECT * FROM lines WHERE id = :id", line{ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlx.StructScan(found, &lines); err != nil || len(lines) != 1 {
		t.Errorf("%v, %v", lines, err)
	}
	if found, err = s.QueryxContext(t.Context(), s.Rebind("SELECT id FROM lines WHERE id = ?"), 1); err != nil || !found.Next() || found.Close() != nil {
		t.Error(err)
	}
	done, err := s.ExecContext(t.Context(), "UPDATE lines SET id = id + 10")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); n != 2 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// MariaDB skips what MySQL executes here, and the other way round.
func TestCodeInACommentForSomeServersIsRefusedOnAShard(t *testing.T) {
	h, err := sqlxhook.New(sqlxhook.Config{Router: newMarket(t).router, DriverName: "mysql"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.For("purchases", 7)
	if err != nil {
		t.Fatal(err)
	}
	for query, allowed := range map[string]bool{
		"UPDATE lines SET id = 1 /*!80000 WHERE 1 = 1 */, user_id = 6":           false,
		"INSERT /*!80000 x */ INTO lines (id, user_id) VALUES (13, 6)":           false,
		"SELECT id FROM purchases /*M!100100 WHERE id = 1 */":                    false,
		"SELECT name FROM regions /*!80000 WHERE id = 1 */":                      false,
		"SELECT /*!40001 SQL_NO_CACHE */ id FROM log":                            true, // is on no shard
		"SELECT /*+ NO_MERGE(x) */ id FROM purchases WHERE note = '/*!80000 */'": true,
	} {
		_, err := s.Expand(query)
		if allowed == (err != nil) || !allowed && !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestExpandChangesTheNamesAlone(t *testing.T) {
	s := newMarket(t).shard(t, 5)
	got, err := s.Expand("SELECT 'lines' /* lines */ FROM\tlines\n, regions")
	if want := "SELECT 'lines' /* lines */ FROM\t\"lines_1\"\n, regions"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestABoundHandleRefusesWhatIsNotItsOwn(t *testing.T) {
	m := newMarket(t)
	s := m.shard(t, 7)
	for query, want := range map[string]error{
		"SELECT * FROM reviews":                                                               sharding.ErrCrossShard,
		"SELECT * FROM purchases, reviews_3":                                                  sharding.ErrCrossShard,
		"DELETE FROM purchases_1":                                                             sharding.ErrCrossShard,
		"UPDATE lines_0 SET id = 1":                                                           sharding.ErrCrossShard,
		"SELECT * FROM lines WHERE id IN (SELECT id FROM purchases_0)":                        sharding.ErrCrossShard,
		"SELECT * FROM main.purchases":                                                        sharding.ErrRawTable,
		"SELECT * FROM 'purchases'":                                                           sharding.ErrRawTable,
		"SELECT * FROM lines; DELETE FROM lines":                                              sharding.ErrRawTable,
		"TRUNCATE TABLE purchases":                                                            sharding.ErrRawTable,
		"DROP TABLE purchases_3":                                                              sharding.ErrRawTable,
		"CREATE INDEX i ON lines (user_id)":                                                   sharding.ErrRawTable,
		"INSERT INTO lines (id, user_id) VALUES (1, 7)":                                       sharding.ErrMissingKey,
		"REPLACE INTO lines_3 (id, user_id) VALUES (1, 7)":                                    sharding.ErrMissingKey,
		"UPDATE purchases SET user_id = 3":                                                    sharding.ErrKeyChange,
		"UPDATE purchases SET id = 3, note = 1":                                               sharding.ErrKeyChange,
		"UPDATE purchases p SET a = (1, 2), p.user_id = 3":                                    sharding.ErrKeyChange,
		"UPDATE purchases SET (a, USER_ID) = (1, 3) WHERE id = 1":                             sharding.ErrKeyChange,
		"WITH x AS (UPDATE lines SET `user_id` = 1 RETURNING id) SELECT * FROM x":             sharding.ErrKeyChange,
		"INSERT INTO log SELECT 1 ON CONFLICT DO UPDATE SET user_id = (SELECT id FROM lines)": sharding.ErrKeyChange,
		"UPDATE regions SET name = 'x'":                                                       sharding.ErrRawTable,
		"WITH x AS (DELETE FROM regions RETURNING id) SELECT id FROM x":                       sharding.ErrRawTable,
		"DELETE FROM regions":                                                                 sharding.ErrRawTable,
		"INSERT INTO regions (id, name) VALUES (1, 'x')":                                      sharding.ErrRawTable,
	} {
		_, err := s.ExecContext(t.Context(), query)
		var route *sharding.RouteError
		if !errors.Is(err, want) || !errors.As(err, &route) || route.Hint == "" {
			t.Errorf("%s: %v", query, err)
		}
		if _, err := s.QueryxContext(t.Context(), query); !errors.Is(err, want) {
			t.Errorf("QueryxContext %s: %v", query, err)
		}
		if err := s.GetContext(t.Context(), new(int), query); !errors.Is(err, want) {
			t.Errorf("GetContext %s: %v", query, err)
		}
		if err := s.SelectContext(t.Context(), new([]int), query); !errors.Is(err, want) {
			t.Errorf("SelectContext %s: %v", query, err)
		}
	}
	for _, query := range []string{
		"UPDATE lines SET id = CASE WHEN user_id = 7 THEN 1 ELSE 2 END WHERE user_id = 3",
		"INSERT INTO log SELECT id FROM purchases WHERE user_id = 7",
		"SELECT name FROM regions JOIN lines ON 1",
		"WITH x AS (SELECT id FROM lines) SELECT * FROM x",
		"REPLACE INTO log VALUES (1)",
		"UPDATE log SET id = 1",
	} {
		if _, err := s.ExecContext(t.Context(), query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := s.ExecContext(sharding.Unsharded(t.Context()), "DROP TABLE reviews_3"); err != nil {
		t.Errorf("Unsharded lifts the guard: %v", err)
	}
}

func TestAnUpsertMayNotChangeTheKey(t *testing.T) {
	m := newMarket(t)
	s := m.shard(t, 7)
	upsert := "INSERT INTO lines (id, user_id) VALUES (:id, :user_id) ON CONFLICT (id) DO UPDATE SET "
	if _, err := m.NamedExec(t.Context(), s, upsert+"user_id = excluded.user_id", &line{UserID: 7}); !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
	if _, err := m.NamedExec(t.Context(), s, upsert+"id = excluded.id", &line{UserID: 7}); err != nil {
		t.Error(err)
	}
	on := strings.Replace(upsert, "CONFLICT (id) DO UPDATE SET", "DUPLICATE KEY UPDATE", 1)
	if _, err := m.NamedExec(t.Context(), s, on+"user_id = VALUES(user_id)", &line{UserID: 7}); !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
}

func TestARowWhoseIDLeadsElsewhereIsRefused(t *testing.T) {
	m := newMarket(t)
	s := m.shard(t, 7)
	_, err := m.Insert(t.Context(), s, "purchases", &purchase{1001, 7})
	if !errors.Is(err, sharding.ErrMisplaced) || !strings.Contains(err.Error(), "id leads to slot 1, and user_id to slot 3") {
		t.Error(err)
	}
	if _, err = m.Insert(t.Context(), s, "purchases", &purchase{999, 7}); err != nil {
		t.Errorf("an id from before ids led to shards: %v", err)
	}
	if s, err = m.ForBy("purchases", "id", 1002); err != nil || s.Target().Table != "purchases_2" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err = m.ForBy("purchases", "id", 999); !errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}

func TestAnIDOfAnotherSlotOfTheSameTableIsRefused(t *testing.T) {
	m := newMarket(t)
	maps := map[string]sharding.Map{}
	for _, table := range []string{"purchases", "lines"} {
		targets := m.router.Targets(table)
		targets[3] = targets[1]
		joined, err := sharding.MapOf(targets...)
		if err != nil {
			t.Fatal(err)
		}
		maps[table] = joined.At(1)
	}
	if err := m.router.Swap(maps); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]sqlxhook.Execer{"Shard": m.shard(t, 7), "Shards": m.Shards()} {
		if _, err := m.Insert(t.Context(), to, "purchases", &purchase{1001, 7}); !errors.Is(err, sharding.ErrMisplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Insert(t.Context(), m.Shards(), "purchases", &[]purchase{{1003, 7}, {1001, 5}}); err != nil {
		t.Error(err)
	}
	if ids := idsIn(t, m.own["west"], "purchases_1"); !slices.Equal(ids, []int64{1001, 1003}) {
		t.Errorf("%v", ids)
	}
}

// genes makes ids from 1000 on with a bucket in their two lowest bits.
type genes struct{ last int64 }

func (g *genes) Next(ctx context.Context) (int64, error) { return g.NextIn(ctx, 0) }

func (g *genes) NextIn(_ context.Context, bucket int64) (int64, error) {
	g.last++
	return 1000 + g.last<<2 + bucket, nil
}

func (g *genes) FillIn(ctx context.Context, dst, buckets []int64) (err error) {
	for i := range dst {
		dst[i], err = g.NextIn(ctx, buckets[i])
	}
	return err
}

func TestGeneratedIDsCarryTheSlotOfTheirRow(t *testing.T) {
	type bought struct {
		ID     int64  `db:"id" keygen:"purchase"`
		UserID uint32 `db:"user_id"`
	}
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"purchase": &genes{}, "line": keygen.Counting(4000, 1)}},
		Router:     m.router, DriverName: "sqlite",
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := []bought{{UserID: 7}, {UserID: 2}, {ID: 1005, UserID: 1}, {UserID: 4}}
	if _, err := h.Insert(t.Context(), h.Shards(), "purchases", rows); err != nil {
		t.Fatal(err)
	}
	groups, err := sqlxhook.GroupBy(t.Context(), h, "purchases", []*bought{{UserID: 3}})
	if err != nil {
		t.Fatal(err)
	}
	rows = append(rows, *groups[0].Items[0])
	for _, row := range rows {
		if row.ID%4 != int64(row.UserID%4) {
			t.Errorf("%+v", row)
		}
	}
	type wrong struct {
		ID     int64 `db:"id" keygen:"line"` // of a generator that knows no slots
		UserID int64 `db:"user_id"`
	}
	one := wrong{UserID: 1}
	if _, err := h.Insert(t.Context(), h.Shards(), "purchases", &one); !errors.Is(err, sharding.ErrMisplaced) || !strings.Contains(err.Error(), "keygen.Bucketed") || one.ID != 0 {
		t.Errorf("%v, %+v", err, one)
	}
	if _, err := h.Insert(t.Context(), h.Shards(), "purchases", []struct {
		ID     int64 `db:"id" keygen:"purchase"`
		UserID *int  `db:"user_id"`
	}{{}}); !errors.Is(err, sharding.ErrKeyType) {
		t.Error(err)
	}
}

func TestAShardOfAnotherHookIsNoShard(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	if _, err := m.Insert(t.Context(), other.shard(t, 7), "lines", &line{UserID: 7}); !errors.Is(err, sharding.ErrRawTable) {
		t.Error(err)
	}
	plain, _ := newHook(t, sqlxhook.Config{})
	if _, err := plain.NamedExec(t.Context(), other.shard(t, 7), "DELETE FROM lines_0", order{}); !errors.Is(err, sharding.ErrCrossShard) {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), other.Shards(), "log", &line{UserID: 7}); !errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}

func TestATransactionIsBoundToItsShard(t *testing.T) {
	m := newMarket(t)
	tx, err := m.Begin(t.Context(), "purchases", 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Insert(t.Context(), tx, "purchases", &purchase{1003, 7}); err != nil {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), tx, "purchases", &purchase{1001, 5}); !errors.Is(err, sharding.ErrMisplaced) {
		t.Error(err)
	}
	if _, err := tx.ExecContext(t.Context(), "DELETE FROM purchases_1"); !errors.Is(err, sharding.ErrCrossShard) {
		t.Error(err)
	}
	near, err := tx.For("reviews", 5) // the same database
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.ExecContext(t.Context(), "DELETE FROM reviews"); err != nil {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), near, "reviews", &line{ID: 1, UserID: 1}); err != nil {
		t.Error(err)
	}
	_, err = tx.For("reviews", 4)
	var route *sharding.RouteError
	if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) || !strings.Contains(err.Error(), "the transaction is on west, the row on east/reviews_0") {
		t.Error(err)
	}
	if _, err = tx.For("nowhere", 4); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
	if _, err := tx.Begin(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	for _, table := range []string{"purchases_3", "reviews_1"} {
		if ids := idsIn(t, m.own["west"], table); len(ids) > 0 {
			t.Errorf("%s holds %v", table, ids)
		}
	}
	if _, err := m.Begin(t.Context(), "nowhere", 7); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Begin(ended, "purchases", 7); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestASplitBatchInATransactionStaysInIt(t *testing.T) {
	m := newMarket(t)
	tx, err := m.Begin(t.Context(), "lines", 7)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]line, 20000)
	for i := range rows {
		rows[i].UserID = 7
	}
	if res, err := m.Insert(t.Context(), tx, "lines", rows); err != nil || res.RowsAffected != 20000 {
		t.Errorf("%d, %v", res.RowsAffected, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if ids := idsIn(t, m.own["west"], "lines_3"); len(ids) > 0 {
		t.Errorf("%d rows", len(ids))
	}
}

func TestMovedSlotsChangeWhatHandlesMayDo(t *testing.T) {
	m := newMarket(t)
	before := m.shard(t, 7)
	maps := map[string]sharding.Map{}
	for _, table := range []string{"purchases", "lines"} {
		targets := m.router.Targets(table)
		targets[3] = sharding.Target{DB: "east", Table: table + "_new"}
		moved, err := sharding.MapOf(targets...)
		if err != nil {
			t.Fatal(err)
		}
		maps[table] = moved.At(1)
		m.own["east"].MustExec("CREATE TABLE " + table + "_new (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)")
	}
	named := "DELETE FROM lines_new WHERE id = :id"
	if _, err := m.NamedExec(t.Context(), m.own["east"], named, line{}); err != nil {
		t.Errorf("no table of a shard yet: %v", err)
	}
	if err := m.router.Swap(maps); err != nil {
		t.Fatal(err)
	}
	if _, err := m.NamedExec(t.Context(), m.own["east"], named, line{}); !errors.Is(err, sharding.ErrRawTable) {
		t.Errorf("a table of a shard now: %v", err)
	}
	if _, err := m.Insert(t.Context(), before, "lines", &line{UserID: 7}); !errors.Is(err, sharding.ErrMisplaced) {
		t.Errorf("a handle from before: %v", err)
	}
	after := m.shard(t, 7)
	if after.Target().String() != "east/purchases_new" {
		t.Error(after.Target())
	}
	if _, err := m.Insert(t.Context(), after, "lines", &line{UserID: 7}); err != nil {
		t.Error(err)
	}
	if ids := idsIn(t, m.own["east"], "lines_new"); len(ids) != 1 {
		t.Errorf("%v", ids)
	}
}
