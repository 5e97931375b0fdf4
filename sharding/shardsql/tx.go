package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// transaction begins on the database of its first statement.
type transaction struct {
	conn    *conn
	options driver.TxOptions
	pool    string // where it has begun
	begun   inner  // its conn is nil before the first statement
	tx      driver.Tx
}

// Begin is BeginTx without a context.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx returns a transaction that begins with its first statement.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.tx = &transaction{conn: c, options: options}
	return c.tx, nil
}

// on returns the transaction's connection to a database.
func (t *transaction) on(ctx context.Context, pool string) (inner, error) {
	if pool == t.conn.database.homeName() {
		pool = ""
	}
	if t.begun.conn == nil {
		err := t.begin(ctx, pool)
		return t.begun, err
	}
	if t.pool != pool {
		return inner{}, &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: it has begun on %s, and this statement is for %s", sharding.ErrCrossDatabase, shown(t.pool), shown(pool)),
			Hint: "use one transaction for each database"}
	}
	return t.begun, nil
}

func shown(pool string) string {
	if pool == "" {
		return "the home database"
	}
	return "database " + pool
}

func (t *transaction) begin(ctx context.Context, pool string) error {
	c, err := t.conn.database.poolOrHome(pool).Conn(ctx)
	if err != nil {
		return err
	}
	err = c.Raw(func(raw any) (err error) {
		t.tx, err = beginRaw(ctx, raw.(driver.Conn), t.options)
		return err
	})
	if err != nil {
		return errors.Join(err, c.Close())
	}
	t.pool, t.begun = pool, inner{conn: c, kept: true}
	return nil
}

func beginRaw(ctx context.Context, on driver.Conn, options driver.TxOptions) (driver.Tx, error) {
	if b, ok := on.(driver.ConnBeginTx); ok {
		return b.BeginTx(ctx, options)
	}
	if options != (driver.TxOptions{}) {
		return nil, errors.New("shardsql: the driver knows neither isolation levels nor read-only transactions")
	}
	return on.Begin() //nolint:staticcheck // drivers without contexts have nothing else
}

// Commit ends the transaction. One without a statement asks the home database
// whether it is there, as a transaction on a closed pool must not succeed.
func (t *transaction) Commit() error {
	if t.begun.conn == nil {
		t.conn.tx = nil
		return t.conn.Ping(context.Background())
	}
	return t.end(func() error { return t.tx.Commit() })
}

// Rollback ends the transaction.
func (t *transaction) Rollback() error {
	if t.begun.conn == nil {
		t.conn.tx = nil
		return nil
	}
	return t.end(func() error { return t.tx.Rollback() })
}

func (t *transaction) end(by func() error) error {
	err := t.begun.conn.Raw(func(any) error { return by() })
	t.conn.tx = nil
	if closed := t.begun.conn.Close(); err == nil {
		err = closed
	}
	return err
}
