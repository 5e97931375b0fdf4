// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

func kinds() ([]kind, error) {
	mysql, err := mysqlKind()
	return []kind{mariadb, mysql, postgres, redisKind, zooKeeper}, err
}

// onEachKind runs a test of what servers of all kinds have in common.
func onEachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

func TestStopLeavesNoProcessAndNoDirectory(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		i, err := k.start(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second Stop finds nothing and says so to nobody
			if err := i.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		assertGone(t, i)
		assertNoFile(t, i.dir.path)
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address(i.port)); err == nil {
			t.Errorf("somebody still listens on %s", conn.RemoteAddr())
		}
	})
}

func TestServerIsStoppedWhenItsTestEnds(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		var i *instance
		t.Run("test", func(t *testing.T) { i = k.run(t, nil) })
		assertGone(t, i)
		assertNoFile(t, i.dir.path)
	})
}

// sqlServer is a server of any kind that knows SQL.
type sqlServer interface {
	Open(tb testing.TB, database string) *sql.DB
	DSN(database string) string
	Kill()
	Start(ctx context.Context) error
}

func TestCommittedRowSurvivesKillAndRestart(t *testing.T) {
	mariaDB, mySQL, postgreSQL := RunMariaDB(t), RunMySQL(t), RunPostgres(t)
	for server, i := range map[sqlServer]*instance{mariaDB: mariaDB.instance, mySQL: mySQL.instance, postgreSQL: postgreSQL.instance} {
		db, before := server.Open(t, "shop"), server.DSN("shop")
		mustExec(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
		for want := int64(1); want <= 3; want++ {
			mustExec(t, db, "INSERT INTO orders SELECT COUNT(*) + 1 FROM orders")
			server.Kill()
			assertGone(t, i)
			if err := db.PingContext(t.Context()); err == nil {
				t.Errorf("%s: a killed server answered", i.kind.name)
			}
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if id := queryInt(t, db, "SELECT MAX(id) FROM orders"); id != want {
				t.Errorf("%s: after the restart the committed row is %d, want %d", i.kind.name, id, want)
			}
		}
		if after := server.DSN("shop"); after != before {
			t.Errorf("the DSN changed from %s to %s", before, after)
		}
	}
}

func TestStartOnTakenPortIsNotedAsSuch(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		holder, i := k.run(t, nil), k.run(t, nil)
		i.Kill()
		i.port = holder.port
		if err := i.Start(t.Context()); !errors.Is(err, errPortTaken) {
			t.Errorf("Start says %v, want %v", err, errPortTaken)
		}
	})
}

func TestStartOfRunningServerIsRefused(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		i := k.run(t, nil)
		if err := i.Start(t.Context()); err == nil {
			t.Error("a running server was started again")
		}
		asker, err := k.asker(i.port)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = asker.Close() }()
		if err := i.answers(t.Context(), asker, startLimit); err != nil {
			t.Errorf("the refused Start broke the server: %v", err)
		}
	})
}

func TestStartGivesUpWhenItsContextEnds(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		i := k.run(t, nil)
		i.Kill()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := i.Start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Start says %v, want %v", err, context.Canceled)
		}
		if i.proc.running() {
			t.Error("the server runs although Start failed")
		}
	})
}

func assertGone(t *testing.T, i *instance) {
	t.Helper()
	pid := i.proc.cmd.Process.Pid
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (signal 0: %v)", pid, err)
	}
}

func assertNoFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}
