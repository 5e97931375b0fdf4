// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// traderVar makes a test be a program instead that trades: it has the data sources, the mode of transactions and the first number.
const traderVar = "SHARDID_TEST_TRADER"

// tradedFirst is above the numbers of the orders that are there before.
const tradedFirst = 1_000_000

// tradeRouter has orders, which are migrated, ledger, whose rows are on the shards already, and prices, of which each database has a copy.
// The journal is a table of the home database.
func tradeRouter(s *migrationShop, mode sharding.TxMode) (*sharding.Router, error) {
	ledger, err := sharding.Spread([]string{"a", "b"}, 4, "ledger_%d")
	if err != nil {
		return nil, err
	}
	orders, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		return nil, err
	}
	return sharding.New(sharding.DBs{"legacy": s.source, "a": s.shards["a"], "b": s.shards["b"]},
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: orders}, sharding.Table{Name: "ledger", Key: "id", Rule: sharding.Low(2), Map: ledger},
		sharding.Broadcast("prices"), sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id"}}, sharding.Transactions(mode))
}

// trader is a program that makes transactions on several tables, and prints what it begins and how that ends.
type trader struct {
	speaks *shopSpeech
	db     *sqlx.DB
	hook   *sqlxhook.Hook

	mu     sync.Mutex
	number int64
	made   []made
}

// made are the rows of a committed trade.
type made struct{ number, id int64 }

type tradedOrder struct {
	ID     int64  `db:"id"      keygen:"orders"`
	UserID int64  `db:"user_id"`
	Code   string `db:"code"`
	Total  int64  `db:"total"`
}

// tradePart is a statement of a trade.
type tradePart func(ctx context.Context, tx *sqlx.Tx) error

// errMissing would be a fault: each trade changes rows that are there.
var errMissing = errors.New("the row is missing")

func (p *trader) changes(text string, args ...any) tradePart {
	return func(ctx context.Context, tx *sqlx.Tx) error {
		result, err := tx.ExecContext(ctx, p.speaks.says(text), args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(fmt.Errorf("%s %v: %w", text, args, errMissing), err)
		}
		return nil
	}
}

// trade makes a random transaction, whose statements come in any order.
func (p *trader) trade(ctx context.Context) {
	kind, of, all := p.choose()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	p.say('b', kind, of.number)
	ctx, done := context.WithTimeout(ctx, 3*time.Second) // no server sees two transactions that wait for each other on two servers
	defer done()
	outcome, err := p.execute(ctx, all)
	if errors.Is(err, errMissing) {
		_, _ = fmt.Fprintf(os.Stdout, "! trade %d: %s\n", of.number, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if outcome == '+' && kind != "deleted" {
		p.mu.Lock()
		p.made = append(p.made, *of)
		p.mu.Unlock()
	}
	p.say(outcome, kind, of.number)
}

func (p *trader) say(outcome byte, kind string, number int64) {
	_, _ = fmt.Fprintf(os.Stdout, "%c %s %d\n", outcome, kind, number)
}

// choose returns a new trade, or the deletion of one that is committed.
func (p *trader) choose() (kind string, of *made, all []tradePart) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.made) > 0 && rand.IntN(5) == 0 {
		i := rand.IntN(len(p.made))
		of := p.made[i]
		p.made = slices.Delete(p.made, i, i+1)
		return "deleted", &of, []tradePart{
			p.changes("DELETE FROM orders WHERE id = ?", of.id), p.changes("DELETE FROM ledger WHERE id = ?", of.id), p.changes("DELETE FROM journal WHERE number = ?", of.number),
		}
	}
	p.number++
	kind, of = "made", &made{number: p.number}
	all = []tradePart{
		p.changes("INSERT INTO journal (number) VALUES (?)", of.number),
		func(ctx context.Context, tx *sqlx.Tx) error {
			order := tradedOrder{UserID: of.number % 7, Code: fmt.Sprint("t", of.number)}
			if _, err := p.hook.Insert(ctx, tx, "orders", &order); err != nil {
				return err
			}
			of.id = order.ID
			return p.changes("INSERT INTO ledger (id, number) VALUES (?, ?)", of.id, of.number)(ctx, tx)
		},
	}
	if account := 1 + rand.IntN(15); account%2 == 0 {
		all = append(all, p.changes("UPDATE orders SET total = total - 1 WHERE id = ?", account), p.changes("UPDATE orders SET total = total + 1 WHERE id = ?", account+1))
	}
	if rand.IntN(20) == 0 {
		kind, all = "priced", append(all, p.changes("UPDATE prices SET changes = changes + 1 WHERE id = 1"))
	}
	return kind, of, all
}

// execute returns + for a commit, - for a rollback, and ? if that is not known or only some databases have committed.
func (p *trader) execute(ctx context.Context, all []tradePart) (outcome byte, err error) {
	tx, err := p.db.BeginTxx(ctx, nil)
	if err != nil {
		return '-', err
	}
	for _, does := range all {
		if err := does(ctx, tx); err != nil {
			_ = tx.Rollback()
			return '-', err
		}
	}
	if rand.IntN(20) == 0 {
		return '-', tx.Rollback()
	}
	var partial *sharding.PartialCommitError
	switch err := tx.Commit(); {
	case errors.Is(err, sharding.ErrInDoubt), errors.As(err, &partial):
		return '?', err
	case err != nil:
		return '-', err
	}
	return '+', nil
}

// tradeForEver is a program that trades until it is killed.
func tradeForEver(t *testing.T, words []string) {
	t.Helper()
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // of connections that break
	ctx := context.Background()
	s := shopAt(t, words[:3])
	numbers, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	router, err := tradeRouter(s, map[string]sharding.TxMode{"Atomic": sharding.Atomic, "BestEffort": sharding.BestEffort}[words[3]])
	if err != nil {
		t.Fatal(err)
	}
	ids, err := sql.Open(s.speaks.driver, words[0])
	if err != nil {
		t.Fatal(err)
	}
	var orders *segment.Generator
	start := func() error {
		store, err := sqlstore.New(ctx, ids)
		if err == nil {
			orders, err = segment.New(ctx, segment.Config{Source: store.Tag("orders")})
		}
		return errors.Join(err, router.Load(ctx))
	}
	for start() != nil { // a server was killed
		continue
	}
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"orders": orders}}, Router: router})
	if err != nil {
		t.Fatal(err)
	}
	p := &trader{speaks: s.speaks, db: sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: s.source}), s.speaks.driver), hook: hook, number: numbers}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				p.trade(ctx)
				time.Sleep(rand.N(writersRest() + time.Millisecond))
			}
		})
	}
	wg.Wait()
}

// runBesideTrades migrates there and back until it is killed, and prints errors that no kill of a server or of another runner explains.
func runBesideTrades(t *testing.T, dsns []string) {
	t.Helper()
	_ = mysql.SetLogger(log.New(io.Discard, "", 0))
	ctx := context.Background()
	j := shopAt(t, dsns).job(t, "id", func(c *migrate.Config) { c.ChunkRows = 100 })
	verify := func() error {
		v, err := j.Verify(ctx)
		if err == nil && v.Requeued > 0 {
			err = fmt.Errorf("%w: %v", errMissing, v.Divergences)
		}
		return err
	}
	for {
		for _, call := range append(waysThereAndBack(ctx, j), verify) {
			err := call()
			for _, bad := range []error{migrate.ErrChanged, migrate.ErrUnclear, migrate.ErrUnsupported, migrate.ErrConfig, errMissing} {
				if errors.Is(err, bad) {
					_, _ = fmt.Fprintf(os.Stdout, "! runner: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
				}
			}
			if err == nil {
				_, _ = fmt.Fprintln(os.Stdout, "step")
			}
		}
	}
}

// again repeats a call until it succeeds.
func again(t *testing.T, what string, call func() error) {
	t.Helper()
	var err error
	for ctx := testwait.Context(t); ctx.Err() == nil; {
		if err = call(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
