package sqlxhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

func users(ids ...int64) []line {
	rows := make([]line, len(ids))
	for i, id := range ids {
		rows[i].UserID = id
	}
	return rows
}

func (m market) lines(t testing.TB) string {
	t.Helper()
	var all []string
	for i, name := range []string{"east", "west", "east", "west"} {
		all = append(all, fmt.Sprint(idsIn(t, m.own[name], fmt.Sprintf("lines_%d", i))))
	}
	return strings.Join(all, " ")
}

func TestABatchForOneDatabaseIsOneTransactionOverItsTables(t *testing.T) {
	m := newMarket(t)
	rows := users(8, 2, 4, 6)
	res, err := m.Insert(t.Context(), m.Shards(), "lines", rows)
	if err != nil || !slices.Equal(res.IDs, []int64{1, 2, 3, 4}) || res.RowsAffected != 4 || rows[3].ID != 4 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.lines(t); got != "[1 3] [] [2 4] []" {
		t.Error(got)
	}
	again := users(8, 4, 2)
	again[2].ID = 2 // is there
	if _, err := m.NamedExec(t.Context(), m.Shards(), "INSERT INTO lines (id, user_id) VALUES (:id, :user_id)", again); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Error(err)
	}
	if got := m.lines(t); got != "[1 3] [] [2 4] []" {
		t.Errorf("after a failure: %s", got)
	}
	if res, err = m.Insert(t.Context(), m.Shards(), "lines", &line{UserID: 3}); err != nil || len(res.IDs) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.lines(t); got != "[1 3] [] [2 4] [7]" {
		t.Errorf("one row: %s", got)
	}
}

func TestABatchForSeveralDatabasesIsRefusedBeforeAnythingIsSent(t *testing.T) {
	m := newMarket(t)
	rows := users(8, 1)
	_, err := m.Insert(t.Context(), m.Shards(), "lines", rows)
	var route *sharding.RouteError
	if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) || !strings.Contains(err.Error(), "BestEffort") || rows[0].ID != 0 {
		t.Errorf("%v, %v", err, rows)
	}
	if got := m.lines(t); got != "[] [] [] []" {
		t.Error(got)
	}
}

func TestBestEffortInsertsIntoSeveralDatabases(t *testing.T) {
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	rows := users(5, 8, 2, 1, 7)
	res, err := m.Insert(t.Context(), m.Shards(), "lines", rows)
	if err != nil || !slices.Equal(res.IDs, []int64{1, 2, 3, 4, 5}) || res.RowsAffected != 5 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.lines(t); got != "[2] [1 4] [3] [5]" {
		t.Error(got)
	}
	again := users(1, 8)
	again[0].ID = 4 // is there
	if _, err := m.Insert(t.Context(), m.Shards(), "lines", again); err == nil || !strings.Contains(err.Error(), "UNIQUE") || again[1].ID == 0 {
		t.Errorf("%v, %v", err, again)
	}
	if got := m.lines(t); got != "[2] [1 4] [3] [5]" {
		t.Errorf("a statement that fails in one database undoes all: %s", got)
	}
}

func TestABatchForTwoDatabasesKeepsBothBusyAtOnce(t *testing.T) {
	meet := make(chan struct{})
	exec := func(string) error {
		select { // a statement waits for the one of the other database
		case meet <- struct{}{}:
		case <-meet:
		case <-t.Context().Done():
			return t.Context().Err()
		}
		return nil
	}
	m := spread(t, []string{"east", "west"}, "lines_%d")
	router, err := sharding.New(sharding.DBs{"east": openSilent(t, exec), "west": openSilent(t, exec)},
		sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Low(2), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}}, Router: router, DriverName: "mysql",
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := h.Insert(t.Context(), h.Shards(), "lines", users(4, 1, 2, 3)); err != nil || res.RowsAffected != 4 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestACommitThatFailsBehindAnotherTellsWhatStays(t *testing.T) {
	// A deferred constraint is checked by COMMIT.
	names := []string{"east", "west"}
	own := map[string]*sqlx.DB{}
	dbs := sharding.DBs{}
	for i, name := range names {
		own[name] = open(t, "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
			fmt.Sprintf("CREATE TABLE lines_%d (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)", i))
		own[name].SetMaxOpenConns(1)
		own[name].MustExec("PRAGMA foreign_keys = ON")
		dbs[name] = own[name].DB
	}
	own["east"].MustExec("INSERT INTO parents VALUES (2)")
	m, err := sharding.Spread(names, 2, "lines_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Low(1), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}}, Router: router, DriverName: "sqlite",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Insert(t.Context(), h.Shards(), "lines", users(2, 3))
	var partial *sharding.PartialCommitError
	if !errors.As(err, &partial) || !slices.Equal(partial.Committed, []string{"east"}) || partial.Failed["west"] == nil {
		t.Errorf("%v", err)
	}
	_, err = h.Insert(t.Context(), h.Shards(), "lines", users(3, 2))
	if err == nil || errors.As(err, &partial) && partial.Failed["east"] != nil {
		t.Errorf("the first to commit failed, so nothing stays: %v", err)
	}
	if e, w := idsIn(t, own["east"], "lines_0"), idsIn(t, own["west"], "lines_1"); len(e) != 1 || len(w) != 0 {
		t.Errorf("%v %v", e, w)
	}
}

func TestABroadcastTableIsWrittenEverywhere(t *testing.T) {
	type region struct {
		ID   int64  `db:"id"`
		Name string `db:"name"`
	}
	strict := newMarket(t)
	if _, err := strict.Insert(t.Context(), strict.Shards(), "regions", region{1, "a"}); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Error(err)
	}
	for name, e := range map[string]sqlxhook.Execer{"database": strict.own["east"], "shard": strict.shard(t, 4)} {
		_, err := strict.Insert(t.Context(), e, "regions", region{1, "a"})
		if !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "write to broadcast table regions refused: one copy alone would change") ||
			!strings.Contains(err.Error(), "Hook.Shards") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	if res, err := m.Insert(t.Context(), m.Shards(), "regions", []region{{1, "a"}, {2, "b"}}); err != nil || res.RowsAffected != 4 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := m.NamedExec(t.Context(), m.Shards(), "UPDATE regions SET name = :name WHERE id = :id", region{2, "c"}); err != nil {
		t.Error(err)
	}
	for name, db := range m.own {
		var all []region
		if err := db.Select(&all, "SELECT * FROM regions ORDER BY id"); err != nil || !slices.Equal(all, []region{{1, "a"}, {2, "c"}}) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if found, err := m.NamedQuery(t.Context(), m.own["east"], "SELECT name FROM regions WHERE id = :id", region{ID: 1}); err != nil || found.Close() != nil {
		t.Errorf("reading is free: %v", err)
	}
}

func TestStatementsForAllShardsAreRefusedUnlessAHintChoosesOne(t *testing.T) {
	m := newMarket(t)
	if _, err := m.Insert(t.Context(), m.Shards(), "lines", users(4, 2)); err != nil {
		t.Fatal(err)
	}
	query := "UPDATE lines SET id = id + 10 WHERE user_id = :user_id"
	for name, call := range map[string]func() error{
		"update": func() error { _, err := m.NamedExec(t.Context(), m.Shards(), query, line{}); return err },
		"direct": func() error {
			_, err := m.Shards().ExecContext(t.Context(), "DELETE FROM lines")
			return err
		},
		"no sharded table": func() error { _, err := m.Insert(t.Context(), m.Shards(), "log", line{ID: 1}); return err },
		"physical table":   func() error { _, err := m.Insert(t.Context(), m.Shards(), "lines_0", line{ID: 1}); return err },
		"unknown key": func() error {
			_, err := m.NamedExec(sharding.OnKey(t.Context(), "lines", nil), m.Shards(), query, line{})
			return err
		},
	} {
		err := call()
		var route *sharding.RouteError
		if !errors.As(err, &route) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx := sharding.OnKey(t.Context(), "lines", 2)
	if res, err := m.NamedExec(ctx, m.Shards(), query, line{UserID: 2}); err != nil || res.RowsAffected != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	ctx = sharding.On(t.Context(), sharding.Target{DB: "east", Table: "lines_2"})
	if _, err := m.Shards().ExecContext(ctx, m.Shards().Rebind("DELETE FROM lines WHERE id = ?"), 12); err != nil {
		t.Error(err)
	}
	if got := m.lines(t); got != "[1] [] [] []" {
		t.Error(got)
	}
}

func TestRowsThatCannotBePlacedGetTheirIDsBack(t *testing.T) {
	type ticket struct {
		ID     int64 `db:"id" keygen:"line"`
		UserID any   `db:"user_id"`
	}
	m := newMarket(t)
	for _, rows := range [][]ticket{{{UserID: 1}, {UserID: "x"}}, {{UserID: 1}, {}}} {
		_, err := m.Insert(t.Context(), m.Shards(), "lines", rows)
		if !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "row 1") || rows[0].ID != 0 {
			t.Errorf("%v, %v", err, rows)
		}
	}
	zero := users(1, 0)
	_, err := m.Insert(t.Context(), m.Shards(), "lines", zero)
	if !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "row 1: no sharding key (user_id)") || zero[0].ID != 0 {
		t.Errorf("%v, %v", err, zero)
	}
	if _, err := m.Insert(t.Context(), m.Shards(), "lines", []line{}); !errors.Is(err, sqlxhook.ErrArgument) {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), m.Shards(), "lines", []any{&line{}, 1}); !errors.Is(err, sqlxhook.ErrArgument) {
		t.Error(err)
	}
}

func TestGroupKeysSplitsAListByShard(t *testing.T) {
	m := newMarket(t)
	groups, err := sqlxhook.GroupKeys(m.Hook, "lines", []int64{5, 2, 1, 6, 5})
	if err != nil || len(groups) != 2 {
		t.Fatalf("%v, %v", groups, err)
	}
	if g := groups[0]; g.Shard.Target().Table != "lines_1" || !slices.Equal(g.Items, []int64{5, 1, 5}) || !slices.Equal(g.Index, []int{0, 2, 4}) {
		t.Errorf("%+v", g)
	}
	if byID, err := sqlxhook.GroupKeysBy(m.Hook, "purchases", "id", []string{"1001", "1005"}); err != nil || len(byID) != 1 {
		t.Errorf("%v, %v", byID, err)
	}
	if _, err := sqlxhook.GroupKeysBy(m.Hook, "purchases", "id", []int64{1001, 5}); !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "key 1") {
		t.Error(err)
	}
	if _, err := sqlxhook.GroupKeys(m.Hook, "lines", []any{1, nil}); !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "key 1") {
		t.Error(err)
	}
	if _, err := sqlxhook.GroupKeys(m.Hook, "nowhere", []int64{1}); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
	plain, _ := newHook(t, sqlxhook.Config{})
	if _, err := sqlxhook.GroupKeysBy(plain, "lines", "id", []int64{1}); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
	if none, err := sqlxhook.GroupKeys(m.Hook, "lines", []int64{}); len(none) != 0 || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

func TestEachKeepsTheLimitAndJoinsErrors(t *testing.T) {
	m := newMarket(t)
	targets := m.router.Targets("lines")
	var now, most atomic.Int32
	var mu sync.Mutex
	seen := map[string]bool{}
	meet := make(chan struct{})
	bad := errors.New("bad")
	err := m.Each(t.Context(), targets, 2, func(ctx context.Context, s *sqlxhook.Shard) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		select { // two calls meet, or the test hangs
		case meet <- struct{}{}:
		case <-meet:
		case <-ctx.Done():
		}
		mu.Lock()
		defer mu.Unlock()
		seen[s.Target().String()] = true
		if strings.HasPrefix(s.Target().DB, "west") {
			return bad
		}
		return nil
	})
	var shard *sharding.ShardError
	if !errors.As(err, &shard) || shard.Target.DB != "west" {
		t.Errorf("%v is of no shard", err)
	}
	if !errors.Is(err, bad) || strings.Count(err.Error(), ": bad") != 2 || !strings.Contains(err.Error(), "west/lines_3: bad") {
		t.Error(err)
	}
	if len(seen) != 4 || most.Load() != 2 {
		t.Errorf("%v, %d at once", seen, most.Load())
	}
}

func TestEachStopsWhenItsContextEnds(t *testing.T) {
	m := newMarket(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := m.Each(ctx, m.router.Targets("lines"), 1, func(context.Context, *sqlxhook.Shard) error {
		calls++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := m.Each(t.Context(), []sharding.Target{{DB: "east", Table: "nothing"}}, 0, nil); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
}

func TestCollectReturnsAllRowsInTheOrderOfTargetsOrNone(t *testing.T) {
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	if _, err := m.Insert(t.Context(), m.Shards(), "lines", users(3, 2, 1, 4)); err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context, s *sqlxhook.Shard) (rows []line, err error) {
		err = s.SelectContext(ctx, &rows, "SELECT * FROM lines")
		return rows, err
	}
	rows, err := sqlxhook.Collect(t.Context(), m.Hook, m.router.Targets("lines"), 0, read)
	if err != nil || !slices.Equal(rows, []line{{4, 4}, {3, 1}, {2, 2}, {1, 3}}) {
		t.Errorf("%v, %v", rows, err)
	}
	m.own["west"].MustExec("DROP TABLE lines_3")
	if rows, err = sqlxhook.Collect(t.Context(), m.Hook, m.router.Targets("lines"), 0, read); err == nil || rows != nil || !strings.Contains(err.Error(), "west/lines_3") {
		t.Errorf("%v, %v", rows, err)
	}
}
