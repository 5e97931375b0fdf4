// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/sqlstore"
)

// overruled takes a lease on a server that, once, takes the lock of its row away and has somebody
// else change the row before the statement that writes the lease.
func overruled(t *testing.T, m *server.MariaDB) error {
	t.Helper()
	other := m.Open(t, "overruled")
	database.Prepare(t, other)
	var done atomic.Bool
	db := sql.OpenDB(&hooked{of: other.Driver(), dsn: m.DSN("overruled"), before: func(string) {}, beforeExec: func(ctx context.Context, on driver.ExecerContext, statement string) {
		if !strings.HasPrefix(statement, "UPDATE `worker_lease`") || !done.CompareAndSwap(false, true) {
			return
		}
		if _, err := on.ExecContext(ctx, "ROLLBACK", nil); err != nil {
			t.Error(err)
		}
		database.Exec(t, other, "UPDATE worker_lease SET generation = generation + 1")
	}})
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Leases().Take(t.Context(), claim("overruled"))
	if !done.Load() {
		t.Error("no lease was written")
	}
	return err
}

func TestALeaseIsTakenAgainWhenAnotherMemberOverruledItsLock(t *testing.T) {
	if err := overruled(t, server.RunGalera(t)); err != nil {
		t.Error(err)
	}
}

func TestALockThatHoldsNothingIsNamedOnOneServer(t *testing.T) {
	var setup *keygen.SetupError
	if err := overruled(t, server.ShareMariaDB(t)); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "row locks") {
		t.Errorf("got %v", err)
	}
}
