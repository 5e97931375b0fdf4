// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestAServerThatTakesNoChangesIsFoundAtTheStart(t *testing.T) {
	t.Run("MySQL", func(t *testing.T) {
		open := database.MySQL(server.RunMySQL(t))
		db, _ := open.Store(t)
		store := database.StoreOn(t, open(t))
		database.Exec(t, db, "SET GLOBAL super_read_only = ON")
		mustFindReadOnly(t, store)
	})
	t.Run("MySQL, by transaction_read_only", func(t *testing.T) {
		m := server.RunMySQL(t)
		database.MySQL(m).Store(t)
		db := laxPool(t, m.DSN("app"), false)
		db.SetMaxOpenConns(1)
		database.Exec(t, db, "SET SESSION transaction_read_only = ON")
		mustFindReadOnly(t, database.StoreOn(t, db))
	})
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		app := asApp(t, db, dsn)
		database.Exec(t, db, "SET GLOBAL read_only = ON")
		mustFindReadOnly(t, database.StoreOn(t, app))
		database.Exec(t, db, tickets64)
		mustFindReadOnlyTickets(t, app)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		open := database.Postgres(server.RunPostgres(t))
		db, _ := open.Store(t)
		database.Exec(t, db, "ALTER DATABASE app SET default_transaction_read_only = on")
		mustFindReadOnly(t, database.StoreOn(t, open(t)))
	})
}

// mustFindReadOnly requires that every kind of start fails at once.
func mustFindReadOnly(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	tries, err := openFailing(t, store)
	_, guarded := store.GuardedTag("orders").Reserve(t.Context(), 1)
	_, node := store.WorkerNode("host", "1").Acquire(t.Context(), keygen.Disposable())
	_, guardedNode := store.GuardedWorkerNode("host", "1").Acquire(t.Context(), keygen.Disposable())
	_, lease := snowflake.New(t.Context(), snowflake.Config{Layout: keygen.Twitter(), Worker: shortLeases(t, store)})
	for name, err := range map[string]error{"segment": err, "guarded": guarded, "worker node": node, "guarded node": guardedNode, "lease": lease} {
		mustSendToThePrimary(t, name, err)
	}
	if tries != 1 {
		t.Errorf("it was asked %d times", tries)
	}
}

// mustSendToThePrimary requires an error that is returned at once and names
// the cause.
func mustSendToThePrimary(t *testing.T, name string, err error) {
	t.Helper()
	var setup *keygen.SetupError
	if !errors.As(err, &setup) || !errors.Is(err, keygen.ErrReadOnly) || !strings.Contains(err.Error(), "connect to the primary") {
		t.Errorf("%s: %v", name, err)
	}
}

func mustFindReadOnlyTickets(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, step := range []int64{1, 100} { // by one statement, and under a lock
		_, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{appTickets(t, db)}, Step: step})
		mustSendToThePrimary(t, fmt.Sprintf("tickets, %d at a time", step), err)
	}
}

// asApp connects as a user to whom read_only applies.
func asApp(t *testing.T, db *sql.DB, dsn string) *sql.DB {
	t.Helper()
	for _, text := range []string{"CREATE USER writer", "GRANT SELECT, INSERT, UPDATE, DELETE, LOCK TABLES ON app.* TO writer"} {
		database.Exec(t, db, text)
	}
	app, err := sql.Open("mysql", strings.Replace(dsn, "root@", "writer@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	return app
}

func shortLeases(t *testing.T, store *sqlstore.Store) keygen.Assigner {
	t.Helper()
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "shop", Term: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

func appTickets(t *testing.T, db *sql.DB) *ticket.Table {
	t.Helper()
	table, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: ticket.Numbering{Offset: 1, Increment: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A server that has become read-only is an outage to who runs: generators use up what
// they have, say then why there is no more, and go on when the server does.
func TestGeneratorsThatRunSayThatTheirServerHasBecomeReadOnly(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		database.Exec(t, db, tickets64)
		app := asApp(t, db, dsn)
		store := database.StoreOn(t, app)
		layout := keygen.Twitter()
		flakes, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: shortLeases(t, store)})
		if err != nil {
			t.Fatal(err)
		}
		ring, err := cached.New(t.Context(), cached.Config{Layout: layout, Worker: shortLeases(t, store)})
		if err != nil {
			t.Fatal(err)
		}
		tickets := openTickets(t, ticket.Config{Servers: []ticket.Server{appTickets(t, app)}, Step: 1})
		mustOutliveReadOnly(t, db, map[string]keygen.Generator[int64]{"snowflake": flakes, "cached": ring, "ticket": tickets})
		for _, g := range []interface{ Close() error }{flakes, ring} {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func mustOutliveReadOnly(t *testing.T, db *sql.DB, all map[string]keygen.Generator[int64]) {
	t.Helper()
	database.Exec(t, db, "SET GLOBAL read_only = ON")
	var wg sync.WaitGroup
	for name, g := range all {
		wg.Go(func() {
			given, err := useUp(t.Context(), g)
			if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, keygen.ErrReadOnly) || errors.As(err, new(*keygen.SetupError)) {
				t.Errorf("%s, after %d ids: %v", name, given, err)
			}
		})
	}
	wg.Wait()
	database.Exec(t, db, "SET GLOBAL read_only = OFF")
	for _, g := range all {
		someIDs(t, g, 1)
	}
}

// useUp takes ids until there are no more.
func useUp(ctx context.Context, g keygen.Generator[int64]) (given int, err error) {
	for {
		if _, err := g.Next(ctx); err != nil {
			return given, err
		}
		given++
	}
}

// In a fail-over the old primary is set read-only before the new one is reached.
func TestAServerThatTakesNoChangesForAWhileEndsNoGeneratorThatRuns(t *testing.T) {
	db, store := database.MySQL(server.RunMySQL(t)).Store(t)
	failed := make(chan error, 100)
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: 1, Observer: segment.Observer{
		Refill: func(_ keygen.Span, _ time.Duration, err error) {
			if err != nil {
				failed <- err
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	database.Exec(t, db, "SET GLOBAL super_read_only = ON")
	if err := drain(t, g, db, failed); err != nil {
		t.Errorf("the generator that runs failed: %v", err)
	}
}

// drain takes ids until reservations have failed, lets the server take changes again,
// and takes another one.
func drain(t *testing.T, g *segment.Generator, db *sql.DB, failed <-chan error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for range 4 { // two segments of one id are in memory
			if _, err := g.Next(t.Context()); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 2 {
		if err := <-failed; !strings.Contains(err.Error(), "read-only") {
			return err
		}
	}
	database.Exec(t, db, "SET GLOBAL super_read_only = OFF")
	return <-done
}
