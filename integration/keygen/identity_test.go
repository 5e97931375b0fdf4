// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// clusters run single members, which suffice to read a cluster's identity.
var clusters = map[dialect.Cluster]func(t *testing.T) database.Opener{
	dialect.Galera:           func(t *testing.T) database.Opener { return database.MariaDB(server.RunGalera(t)) },
	dialect.GroupReplication: func(t *testing.T) database.Opener { return database.MySQL(server.RunGroupMember(t)) },
}

func identify(t *testing.T, db *sql.DB) dialect.Server {
	t.Helper()
	s, err := dialect.Identify(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func textOf(t *testing.T, db *sql.DB, expression string) (text string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT "+expression).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAServerSaysOfWhatKindAndInWhichClusterItIs(t *testing.T) {
	servers := map[string]struct {
		open    database.Opener
		kind    dialect.Kind
		cluster dialect.Cluster
	}{
		"MariaDB":           {database.MariaDB(server.RunMariaDB(t)), dialect.KindMariaDB, dialect.NoCluster},
		"MySQL":             {database.MySQL(server.RunMySQL(t)), dialect.KindMySQL, dialect.NoCluster},
		"PostgreSQL":        {database.Postgres(server.RunPostgres(t)), dialect.KindPostgreSQL, dialect.NoCluster},
		"Galera":            {clusters[dialect.Galera](t), dialect.KindMariaDB, dialect.Galera},
		"Group Replication": {clusters[dialect.GroupReplication](t), dialect.KindMySQL, dialect.GroupReplication},
	}
	for name, is := range servers {
		db := is.open(t)
		s := identify(t, db)
		if s.Kind != is.kind || s.Cluster != is.cluster || s.Proxy != "" || !s.AtLeast(9, 0) {
			t.Errorf("%s: %+v", name, s)
		}
		if same := textOf(t, db, s.IdentityExpr()) == textOf(t, db, s.NodeExpr()); same == (is.cluster != dialect.NoCluster) {
			t.Errorf("%s: the server's identity is its own: %v", name, same)
		}
	}
}

// A user of an application has no rights on the server's own tables.
func TestAnyUserMayReadTheIdentity(t *testing.T) {
	for cluster, member := range map[dialect.Cluster]database.DSNOpener{
		dialect.Galera: server.RunGalera(t), dialect.GroupReplication: server.RunGroupMember(t),
	} {
		admin := member.Open(t, "app")
		database.Exec(t, admin, "CREATE USER reader")
		database.Exec(t, admin, "GRANT SELECT ON app.* TO reader")
		conn := database.OpenAs(t, member, "reader", "app")
		if s := identify(t, conn); s.Cluster != cluster || textOf(t, conn, s.IdentityExpr()) == textOf(t, conn, s.NodeExpr()) {
			t.Errorf("%s: %+v", cluster, s)
		}
		if _, err := dialect.Appliers(t.Context(), conn, identify(t, conn)); !errors.Is(err, dialect.ErrNotPermitted) || !strings.Contains(err.Error(), "GRANT ") {
			t.Errorf("%s: a user without rights sees the appliers: %v", cluster, err)
		}
	}
}

func TestAConfiguredApplierIsSeenWhetherItRunsOrNot(t *testing.T) {
	maria, other := server.RunMariaDB(t, "--slave-run-triggers-for-rbr=YES"), server.RunMySQL(t, "--log-bin")
	for name, is := range map[string]struct {
		db       *sql.DB
		change   string
		triggers bool
	}{
		"MariaDB": {maria.Open(t, "shop"), "CHANGE MASTER 'other' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='r'", true},
		"MySQL":   {other.Open(t, "shop"), "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='r' FOR CHANNEL 'other'", false},
	} {
		s := identify(t, is.db)
		if all, err := dialect.Appliers(t.Context(), is.db, s); err != nil || len(all) > 0 {
			t.Errorf("%s alone: %+v, %v", name, all, err)
		}
		database.Exec(t, is.db, is.change)
		want := dialect.Applier{Channel: "other", From: "127.0.0.1:1", Triggers: is.triggers}
		if all, err := dialect.Appliers(t.Context(), is.db, s); err != nil || len(all) != 1 || all[0] != want {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// A note of another member of the cluster is not a fail-over.
func TestInAClusterLeasesAndGuardedTagsNoteTheCluster(t *testing.T) {
	for cluster, run := range clusters {
		db, store := run(t).Store(t)
		w := acquire(t, store, "shop")
		if _, err := store.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		noted := textOf(t, db, identify(t, db).IdentityExpr())
		database.Exec(t, db, "UPDATE worker_namespace SET identity = '"+noted+"' WHERE identity <> ''")
		before := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
		if _, err := store.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if after := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"); after != before+10 {
			t.Errorf("%s: the counter went from %d to %d", cluster, before, after)
		}
		if _, err := w.Renew(t.Context()); err != nil {
			t.Errorf("%s: %v", cluster, err)
		}
		database.Exec(t, db, "UPDATE worker_namespace SET identity = 'another server' WHERE identity <> ''")
		if _, err := w.Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
			t.Errorf("%s: after a real fail-over: %v", cluster, err)
		}
	}
}

// An older release notes the member. Its processes and new ones go on side by side
// as long as that member answers: neither takes the other's note for a fail-over.
func TestAnOlderReleasesNoteOfTheMemberStands(t *testing.T) {
	for cluster, run := range clusters {
		db, store := run(t).Store(t)
		member := textOf(t, db, identify(t, db).NodeExpr())
		w := acquire(t, store, "shop") // so that the longest term is known
		if _, err := store.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, db, "UPDATE worker_namespace SET identity = '"+member+"' WHERE namespace IN ('', 'leaf_alloc')")
		before := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")

		upgraded := database.StoreOn(t, db)
		next := acquire(t, upgraded, "shop")
		if now := keygen.Twitter().Tick(time.Now()); next.NotBefore() > now {
			t.Errorf("%s: a lease after the upgrade begins %d ticks later", cluster, next.NotBefore()-now)
		}
		if _, err := w.Renew(t.Context()); err != nil {
			t.Errorf("%s: a lease from before the upgrade: %v", cluster, err)
		}
		if _, err := upgraded.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if after := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"); after != before+10 {
			t.Errorf("%s: the counter went from %d to %d", cluster, before, after)
		}
		for _, row := range []string{"", "leaf_alloc"} {
			if noted := textOf(t, db, "identity FROM worker_namespace WHERE namespace = '"+row+"'"); noted != member {
				t.Errorf("%s: the row %q notes %q, and an older release looks for %q", cluster, row, noted, member)
			}
		}
	}
}

// A store that has been running since before its server joined a cluster would look
// for the member.
func TestAStoreWhoseServerJoinsAClusterAsksAnewBeforeItSeesAFailOver(t *testing.T) {
	m := server.RunMySQL(t, "--log-bin", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
	db, store := database.MySQL(m).Store(t)
	w := acquire(t, store, "shop")
	database.Exec(t, db, "INSTALL PLUGIN group_replication SONAME 'group_replication.so'")
	database.Exec(t, db, "SET GLOBAL group_replication_group_name = '"+server.GroupName+"'")
	database.Exec(t, db, "UPDATE worker_namespace SET identity = '"+server.GroupName+"' WHERE namespace = ''")
	if _, err := w.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}
