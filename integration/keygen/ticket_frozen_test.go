// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen/ticket"
)

// freezer makes connections that stop, as in a process that gets SIGSTOP, between
// LOCK TABLES and the row with the span's last ticket.
type freezer struct {
	driver.Connector

	stopped chan struct{} // closed when one has stopped
	goOn    chan struct{}
}

func (f freezer) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	return frozenConn{c, f}, err
}

type frozenConn struct {
	driver.Conn

	freezer freezer
}

func (c frozenConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "REPLACE") && strings.Contains(query, "`id`") {
		close(c.freezer.stopped)
		<-c.freezer.goOn
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c frozenConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func TestAStoppedProcessDoesNotKeepTicketsFromOthersForLong(t *testing.T) {
	m := ticketServer(t, 1, 1)
	cfg, err := mysql.ParseDSN(m.DSN("tickets"))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := freezer{connector, make(chan struct{}), make(chan struct{})}
	db := sql.OpenDB(f)
	stopped, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: ticket.Numbering{Offset: 1, Increment: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var reserving sync.WaitGroup
	var late error
	reserving.Go(func() { _, late = stopped.Reserve(t.Context(), 10) })
	<-f.stopped
	other := ticketTable(t, m, 1, 1, 0)
	span, err := other.Reserve(t.Context(), 5)
	for err != nil && dialect.Contended(err) {
		span, err = other.Reserve(t.Context(), 5)
	}
	if err != nil || span.First < 2 {
		t.Errorf("%+v, %v", span, err)
	}
	close(f.goOn)
	reserving.Wait()
	if late == nil {
		t.Error("the lock was lost, and a span that it was to protect was reserved")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
