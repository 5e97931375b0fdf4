// SPDX-License-Identifier: Apache-2.0

package testshards

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// Copies are the broadcast table colors with the row (1, 'red') in two SQLite databases.
type Copies struct {
	Router      *sharding.Router
	AfterCommit func() // is called after each COMMIT
}

// NewCopies creates them with a driver of SQLite.
func NewCopies(t testing.TB, sqlite driver.Driver) *Copies {
	t.Helper()
	c := &Copies{AfterCommit: func() {}}
	dbs := sharding.DBs{}
	for _, name := range []string{"db0", "db1"} {
		db := sql.OpenDB(committing{filepath.Join(t.TempDir(), name), sqlite, c})
		t.Cleanup(func() { _ = db.Close() })
		for _, query := range []string{"CREATE TABLE colors (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO colors VALUES (1, 'red')"} {
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		dbs[name] = db
	}
	m, err := sharding.Spread([]string{"db0", "db1"}, 2, "users_%d")
	if err != nil {
		t.Fatal(err)
	}
	c.Router, err = sharding.New(dbs, sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(2), Map: m},
		sharding.Broadcast("colors"), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Names returns the names in the copies.
func (c *Copies) Names(t testing.TB) (names [2]string) {
	t.Helper()
	for i, db := range c.Router.Databases() {
		if err := c.Router.DB(db).QueryRowContext(t.Context(), "SELECT name FROM colors").Scan(&names[i]); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// committing opens connections that report their COMMITs.
type committing struct {
	file   string
	driver driver.Driver
	copies *Copies
}

func (c committing) Driver() driver.Driver { return c.driver }

func (c committing) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.file)
	return committingConn{conn, c.copies}, err
}

type committingConn struct {
	driver.Conn

	copies *Copies
}

func (c committingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return committingTx{tx, c.copies}, err
}

func (c committingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c committingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type committingTx struct {
	driver.Tx

	copies *Copies
}

func (t committingTx) Commit() error {
	err := t.Tx.Commit()
	t.copies.AfterCommit()
	return err
}
