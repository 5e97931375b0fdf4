// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"os"
	"regexp"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

// documented is the statement of sqlstore's comment for a backup that was restored.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../keygen/sqlstore/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^//\t(UPDATE worker_namespace .*);$`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("%q", found)
	}
	return found[0][1]
}

// leasedSince leases a worker id after a backup of the tables of leases, restores that, and returns
// the lease.
func leasedSince(t *testing.T, db *sql.DB, store *sqlstore.Store) workerid.Entry {
	t.Helper()
	take(t, store, "before")
	tables := []string{"worker_lease", "worker_namespace"}
	for _, table := range tables {
		database.Exec(t, db, "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table)
	}
	lost := take(t, store, "since")
	for _, table := range tables {
		database.Exec(t, db, "DELETE FROM "+table)
		database.Exec(t, db, "INSERT INTO "+table+" SELECT * FROM backup_"+table)
	}
	return lost
}

func TestAfterABackupWasRestoredLeasesAreDeclaredLostByTheStatementOfTheComment(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		lost := leasedSince(t, db, store)
		database.Exec(t, db, documented(t))
		if e := take(t, database.StoreOn(t, open(t)), "next"); e.Worker == lost.Worker && e.NotBefore < lost.Ceiling {
			t.Errorf("%+v overlaps %+v", e, lost)
		}
	})
}

// The opposite of the test above, and why the comment says so.
func TestAfterABackupWasRestoredALeaseIsGivenAgain(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		lost := leasedSince(t, db, store)
		if e := take(t, database.StoreOn(t, open(t)), "next"); e.Worker != lost.Worker || e.NotBefore >= lost.Ceiling {
			t.Errorf("%+v does not overlap %+v: the test above proves nothing", e, lost)
		}
	})
}
