// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// stepping makes connections that call a function after each statement, COMMIT included.
type stepping struct {
	driver.Connector

	after func()
}

func (c stepping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &steppingConn{conn.(steppable), c.after}, nil
}

// steppable has the methods of both drivers' connections.
type steppable interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.NamedValueChecker
	driver.SessionResetter
}

type steppingConn struct {
	steppable

	after func()
}

func (c *steppingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.steppable.ExecContext(ctx, query, args)
	if !errors.Is(err, driver.ErrSkip) {
		c.after()
	}
	return r, err
}

func (c *steppingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.steppable.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return steppingStmt{s, s.(driver.StmtExecContext), s.(driver.StmtQueryContext), c.after}, nil
}

type steppingStmt struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext

	after func()
}

func (s steppingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.StmtExecContext.ExecContext(ctx, args)
	s.after()
	return r, err
}

func (c *steppingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.steppable.BeginTx(ctx, options)
	return steppingTx{tx, c.after}, err
}

type steppingTx struct {
	driver.Tx

	after func()
}

func (t steppingTx) Commit() error {
	err := t.Tx.Commit()
	t.after()
	return err
}

// claims are rows with a unique value that is looked up: in a database of its own, in that of some rows, or in all.
type claims struct {
	mode   sharding.TxMode
	layout string
	dbs    sharding.DBs // with the one of the lookup table
	router *sharding.Router
	routed *sql.DB

	kills, missing int
}

func newClaims(dbs sharding.DBs, mode sharding.TxMode, layout string, building bool) (*claims, error) {
	spread := func(tables int, pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"a", "b"}, tables, pattern)
		if err != nil {
			panic(err)
		}
		return m
	}
	options := []sharding.Option{sharding.Transactions(mode), sharding.Table{Name: "claims", Key: "id", Rule: sharding.Mod(4), Map: spread(4, "claims_%d"),
		Lookups: []sharding.Lookup{{Column: "v", Table: "claims_by_v", Unique: true, Building: building}}}}
	if layout == "sharded" {
		options = append(options, sharding.Table{Name: "claims_by_v", Key: "v", Rule: sharding.Mod(2), Map: spread(2, "claims_by_v_%d")})
	}
	router, err := sharding.New(sharding.DBs{"a": dbs["a"], "b": dbs["b"]}, options...)
	if err != nil {
		return nil, err
	}
	c := &claims{mode: mode, layout: layout, dbs: dbs, router: router}
	c.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: c.home()})
	return c, nil
}

func (c *claims) home() *sql.DB {
	if c.layout == "own" {
		return c.dbs["home"]
	}
	return c.dbs["a"]
}

func (c *claims) config() lookups.Config {
	return lookups.Config{Router: c.router, Home: c.home(), Table: "claims", Column: "v"}
}

// claimWrites are transactions; those of several statements need two databases.
var claimWrites = [][]string{
	{"INSERT INTO claims (id, v) VALUES (4, 104)"},
	{"INSERT INTO claims (id, v) VALUES (5, 105)"},
	{"UPDATE claims SET v = 106 WHERE id = 1"},
	{"DELETE FROM claims WHERE id = 1"},
	{"INSERT INTO claims (id, v) VALUES (4, 104)", "INSERT INTO claims (id, v) VALUES (5, 105)", "UPDATE claims SET v = 106 WHERE id = 2", "DELETE FROM claims WHERE id = 1"},
	{"INSERT INTO claims (id, v) VALUES (4, 105), (5, 104)"},
}

func (c *claims) write(ctx context.Context, texts []string) error {
	if len(texts) == 1 {
		_, err := c.routed.ExecContext(ctx, texts[0])
		return err
	}
	tx, err := c.routed.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// claimsVariable makes a test start a program instead that dies after a step of a write.
const claimsVariable = "SHARDID_TEST_CLAIMS"

func dieClaiming(settings []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(settings[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	var left atomic.Int64
	left.Store(1 << 40)
	dbs := sharding.DBs{}
	for i, name := range []string{"home", "a", "b"} {
		plain, err := sql.Open(settings[0], settings[5+i])
		if err != nil {
			panic(err)
		}
		connector, err := plain.Driver().(driver.DriverContext).OpenConnector(settings[5+i])
		if err != nil {
			panic(err)
		}
		dbs[name] = sql.OpenDB(stepping{connector, func() {
			if left.Add(-1) == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
	}
	c, err := newClaims(dbs, sharding.TxMode(number(1)), settings[2], false)
	if err != nil {
		panic(err)
	}
	if err := c.write(context.Background(), []string{"UPDATE claims SET v = 103 WHERE id = 3"}); err != nil { // which asks what is asked once
		panic(err)
	}
	left.Store(int64(number(4)))
	if err := c.write(context.Background(), claimWrites[number(3)]); err != nil {
		panic(err)
	}
	os.Exit(0) // it has no such step
}

// killedAt reports whether the write has this step.
func (c *claims) killedAt(t *testing.T, s database.DSNOpener, write, step int) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAValueStaysUsableWhenItsProgramIsKilledAtEachStep$")
	cmd.Env = append(os.Environ(), claimsVariable+"="+strings.Join([]string{database.DriverOf(s), strconv.Itoa(int(c.mode)), c.layout, strconv.Itoa(write), strconv.Itoa(step), s.DSN("home"), s.DSN("a"), s.DSN("b")}, " "))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, is := cmd.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		t.Fatalf("write %d, step %d: %v: %s", write, step, err, out)
	}
	return true
}

// rows are the ids by value, as the shards have them.
func (c *claims) rows(t *testing.T) map[int][]int {
	t.Helper()
	all := map[int][]int{}
	for _, at := range c.router.Targets("claims") {
		err := dialect.Each(t.Context(), c.dbs[at.DB], func(rows *sql.Rows) error {
			var id, v int
			err := rows.Scan(&id, &v)
			all[v] = append(all[v], id)
			return err
		}, "SELECT id, v FROM "+at.Table)
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// found are the ids that a search for a value finds.
func (c *claims) found(ctx context.Context, t *testing.T, v int) (ids []int) {
	t.Helper()
	err := dialect.Each(ctx, c.routed, func(rows *sql.Rows) error {
		var id int
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, fmt.Sprintf("SELECT id FROM claims WHERE v = %d", v))
	if err != nil {
		t.Error(err)
	}
	return ids
}

// settle ends what a killed program has left on the servers.
func (c *claims) settle(t *testing.T) {
	t.Helper()
	if c.mode != sharding.Atomic {
		return
	}
	r, err := twophase.New(twophase.Config{Router: c.router, Home: c.home(), After: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	list := "XA RECOVER"
	if database.DriverName(c.home()) == "pgx" {
		list = "SELECT gid FROM pg_prepared_xacts"
	}
	for range 500 {
		did, err := r.Resolve(t.Context())
		left := 0
		_ = dialect.Each(t.Context(), c.home(), func(*sql.Rows) error { left++; return nil }, list)
		if err == nil && did.InDoubt == 0 && left == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("branches are left")
}

// audit reports what is wrong after a kill.
func (c *claims) audit(t *testing.T) (missing bool) {
	t.Helper()
	rows := c.rows(t)
	r, err := lookups.Verify(t.Context(), c.config())
	if missing = errors.Is(err, lookups.ErrMissing); err != nil && !missing {
		t.Errorf("%+v, %v", r, err)
	}
	for v := 101; v <= 106; v++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		ids := rows[v]
		if len(ids) > 1 {
			t.Errorf("%d is the value of %v", v, ids)
		}
		if found := c.found(ctx, t, v); !missing && !slices.Equal(found, ids) {
			t.Errorf("%d finds %v and not %v", v, found, ids)
		}
		if !missing {
			_, err := c.routed.ExecContext(ctx, fmt.Sprintf("INSERT INTO claims (id, v) VALUES (%d, %d)", 7+v%2, v))
			if len(ids) == 0 && err != nil || len(ids) > 0 && !dialect.IsDuplicate(err) {
				t.Errorf("%d, of %v, is given to another row: %v", v, ids, err)
			}
			if err == nil {
				database.Exec(t, c.routed, fmt.Sprintf("DELETE FROM claims WHERE id = %d", 7+v%2))
			}
		}
		cancel()
	}
	return missing
}

// repair follows the steps under "A table that has rows" of docs/lookups.md.
func (c *claims) repair(t *testing.T) {
	t.Helper()
	building, err := newClaims(c.dbs, c.mode, c.layout, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = building.routed.Close() }()
	if r, err := lookups.Build(t.Context(), building.config()); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if c.audit(t) {
		t.Error("the repair has left a row without an entry")
	}
}

func (c *claims) reset(t *testing.T) {
	t.Helper()
	for id := range 9 {
		database.Exec(t, c.routed, fmt.Sprintf("DELETE FROM claims WHERE id = %d", id))
	}
	if r, err := lookups.Tidy(t.Context(), c.config()); err != nil || r.Removed != r.LeftOver {
		t.Errorf("%+v, %v", r, err)
	}
	for id := 1; id <= 3; id++ {
		database.Exec(t, c.routed, fmt.Sprintf("INSERT INTO claims (id, v) VALUES (%d, %d)", id, 100+id))
	}
}

func TestAValueStaysUsableWhenItsProgramIsKilledAtEachStep(t *testing.T) {
	if settings := os.Getenv(claimsVariable); settings != "" {
		dieClaiming(strings.Fields(settings))
	}
	for name, run := range map[string]func(t *testing.T) database.DSNOpener{
		"MariaDB": func(t *testing.T) database.DSNOpener { t.Helper(); return server.RunMariaDB(t) },
		"MySQL":   func(t *testing.T) database.DSNOpener { t.Helper(); return server.RunMySQL(t) },
		"PostgreSQL": func(t *testing.T) database.DSNOpener {
			t.Helper()
			return server.RunPostgres(t, "max_prepared_transactions=100")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t)
			dbs := sharding.DBs{"home": s.Open(t, "home"), "a": s.Open(t, "a"), "b": s.Open(t, "b")}
			for _, mode := range []sharding.TxMode{sharding.SingleShard, sharding.BestEffort, sharding.Atomic} {
				for _, layout := range []string{"own", "shared", "sharded"} {
					t.Run(fmt.Sprint("mode ", mode, ", ", layout), func(t *testing.T) {
						c := createClaims(t, dbs, mode, layout)
						for write, texts := range claimWrites {
							if several := len(texts) > 1 || strings.Contains(texts[0], "), ("); mode != sharding.SingleShard || !several {
								c.killAll(t, s, write)
							}
						}
						t.Logf("%d kills, %d of which left a row without an entry", c.kills, c.missing)
					})
				}
			}
		})
	}
}

// createClaims creates the tables anew.
func createClaims(t *testing.T, dbs sharding.DBs, mode sharding.TxMode, layout string) *claims {
	t.Helper()
	c, err := newClaims(dbs, mode, layout, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.routed.Close() })
	for _, at := range c.router.Targets("claims") {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, v BIGINT UNIQUE)")
	}
	for _, db := range dbs {
		for _, table := range []string{"claims_by_v", "claims_by_v_0", "claims_by_v_1"} {
			database.Exec(t, db, "DROP TABLE IF EXISTS "+table)
		}
	}
	if err := lookups.Create(t.Context(), c.config()); err != nil {
		t.Fatal(err)
	}
	if mode == sharding.Atomic {
		if err := twophase.Create(t.Context(), c.router, c.home()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// killAll kills a program at each step of a write, or at each fourth one.
func (c *claims) killAll(t *testing.T, s database.DSNOpener, write int) {
	t.Helper()
	for step := 1; ; step++ {
		if !effort.Soak() && (step+write)%4 != 0 {
			continue
		}
		c.reset(t)
		if !c.killedAt(t, s, write, step) {
			return
		}
		c.kills++
		c.settle(t)
		if c.audit(t) {
			if c.missing++; c.mode != sharding.BestEffort || c.layout != "sharded" {
				t.Error("a row has no entry")
			}
			c.repair(t)
		}
		if t.Failed() {
			t.Fatalf("write %d, step %d", write, step)
		}
	}
}
