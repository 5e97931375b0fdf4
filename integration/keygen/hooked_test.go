// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// hooked is a database that calls before ahead of each query, and beforeExec, unless it is nil,
// ahead of each other statement, with its connection. A statement that refuse, unless it is nil,
// returns an error for is not executed.
type hooked struct {
	of         driver.Driver
	dsn        string
	before     func(query string)
	beforeExec func(ctx context.Context, on driver.ExecerContext, statement string)
	refuse     func(statement string) error
}

func (h *hooked) Driver() driver.Driver { return h.of }

func (h *hooked) Connect(context.Context) (driver.Conn, error) {
	conn, err := h.of.Open(h.dsn)
	if err != nil {
		return nil, err
	}
	return hookedConn{conn, h}, nil
}

type hookedConn struct {
	driver.Conn

	of *hooked
}

func (c hookedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.of.before(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c hookedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	conn := c.Conn.(driver.ExecerContext)
	if c.of.refuse != nil {
		if err := c.of.refuse(query); err != nil {
			return nil, err
		}
	}
	if c.of.beforeExec != nil {
		c.of.beforeExec(ctx, conn, query)
	}
	return conn.ExecContext(ctx, query, args)
}

func (c hookedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

// Two processes request the first number of a period at once: one finds no counter, and then
// the counter of the other.
func TestACounterThatIsMadeBetweenTwoStatementsIsUsed(t *testing.T) {
	maria := server.ShareMariaDB(t)
	other := maria.Open(t, "hooked")
	if err := schema.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	armed := false
	db := sql.OpenDB(&hooked{of: other.Driver(), dsn: maria.DSN("hooked"), before: func(query string) {
		if !armed || !strings.HasPrefix(query, "SELECT `max_id`") {
			return
		}
		armed = false
		if _, err := other.Exec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('second/2026', 1, 1)"); err != nil {
			t.Error(err)
		}
	}})
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	periods, from, to := store.Periods(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if _, err := periods.Reserve(t.Context(), "first", "2026", from, to, 1); err != nil { // which looks at the table more closely
		t.Fatal(err)
	}
	armed = true
	span, err := periods.Reserve(t.Context(), "second", "2026", from, to, 5)
	if err != nil || span.First != 1 || span.Count != 5 || armed {
		t.Errorf("%+v, %v", span, err)
	}
}

// Behind a proxy that shares sessions a counter is read under a lock and then raised. A proxy that
// continues the transaction on another connection, as its own is broken, has lost the lock.
func TestARangeThatAnotherReservedAfterTheLockWasLostIsNotReservedAgain(t *testing.T) {
	maria := server.ShareMariaDB(t)
	open := database.MariaDB(maria)
	plain, others := open.Store(t)
	lost := false
	db := sql.OpenDB(&hooked{
		of: plain.Driver(), dsn: maria.DSN("app"), before: func(string) {},
		refuse: func(statement string) error {
			if strings.Contains(statement, "LAST_INSERT_ID") {
				return errors.New("Error 3566 (HY000): Access to native function is rejected when connection sharing is enabled")
			}
			return nil
		},
		beforeExec: func(ctx context.Context, on driver.ExecerContext, statement string) {
			if lost || !strings.HasPrefix(statement, "UPDATE `leaf_alloc`") {
				return
			}
			lost = true
			if _, err := on.ExecContext(ctx, "ROLLBACK", nil); err != nil {
				t.Error(err)
			}
			if _, err := others.Tag("orders").Reserve(ctx, 1000); err != nil {
				t.Error(err)
			}
		},
	})
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	first := database.MustNumber(t, plain, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
	span, err := store.Tag("orders").Reserve(t.Context(), 10)
	if err != nil || span.First < first+1000 || !lost {
		t.Errorf("%+v, %v: another process had reserved from %d on", span, err, first)
	}
	next, err := others.Tag("orders").Reserve(t.Context(), 10)
	if err != nil || next.First <= span.Last() {
		t.Errorf("%+v after %+v, %v", next, span, err)
	}
}
