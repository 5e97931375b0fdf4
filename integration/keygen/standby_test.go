// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
)

func TestAPostgreSQLStandbyLeasesNothingAndIsAnotherServerOncePromoted(t *testing.T) {
	p := server.RunPostgres(t)
	db, store := database.Postgres(p).Store(t)
	db.SetMaxIdleConns(0) // each call meets the server of its time
	before := acquire(t, store, "shop")
	if _, err := store.GuardedTag("orders").Reserve(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	// The server's working directory is that of its data.
	database.Exec(t, db, "COPY (SELECT 1) TO PROGRAM 'cat > standby.signal'")
	p.Kill()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w, err := tryAcquire(t.Context(), store, "shop"); err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("leased on a standby: %v, %v", w, err)
	}
	if span, err := store.GuardedTag("orders").Reserve(t.Context(), 1); err == nil {
		t.Errorf("reserved on a standby: %+v", span)
	}

	database.Exec(t, db, "SELECT pg_promote()")
	after := acquire(t, store, "shop")
	if after.NotBefore() < before.Ceiling() || after.ID() == before.ID() {
		t.Errorf("worker id %d until %d, then %d from %d", before.ID(), before.Ceiling(), after.ID(), after.NotBefore())
	}
	if ceiling, err := before.Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("a lease of before the promotion was renewed: %d, %v", ceiling, err)
	}
	maxID := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
	if span, err := store.GuardedTag("orders").Reserve(t.Context(), 1); err != nil || span.First != maxID+10*1000 {
		t.Errorf("%+v after max_id %d, %v", span, maxID, err)
	}
}

// The opposite of the test above: only a promotion begins a timeline, which is how a standby is
// distinguished from the server that it was copied from.
func TestAStandbyThatIsOpenedWithoutAPromotionIsTakenForTheServerItWasCopiedFrom(t *testing.T) {
	p := server.RunPostgres(t)
	db, store := database.Postgres(p).Store(t)
	db.SetMaxIdleConns(0)
	before := acquire(t, store, "shop")
	for _, signal := range []string{"cat > standby.signal", "cat > /dev/null; rm standby.signal"} { // a program that reads nothing breaks the pipe
		database.Exec(t, db, "COPY (SELECT 1) TO PROGRAM '"+signal+"'")
		p.Kill()
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := before.Renew(t.Context()); err != nil {
		t.Errorf("a fail-over was noticed, so the package's comment is wrong: %v", err)
	}
}
