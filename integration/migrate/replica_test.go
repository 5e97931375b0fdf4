// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// replicating has the statements that make a server a replica of another one.
type replicating struct {
	configure string // with the other's port
	start     string
	end       string
}

var (
	slaveOf = replicating{
		"CHANGE MASTER 'feed' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos",
		"START SLAVE 'feed'", "STOP ALL SLAVES; RESET SLAVE 'feed' ALL",
	}
	replicaOf = replicating{
		"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'root', GET_SOURCE_PUBLIC_KEY = 1 FOR CHANNEL 'feed'",
		"START REPLICA FOR CHANNEL 'feed'", "STOP REPLICA FOR CHANNEL 'feed'; RESET REPLICA ALL FOR CHANNEL 'feed'",
	}
)

func portOf(t *testing.T, db *sql.DB) int64 { return database.MustNumber(t, db, "SELECT @@port") }

func execAll(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	for statement := range strings.SplitSeq(statements, "; ") {
		database.Exec(t, db, statement)
	}
}

const orderTable = "CREATE TABLE odd (id INT AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL)"

// Replicated row events fire no triggers, so a job would miss these changes. A server that replicates,
// or that may begin to at any moment, is refused.
func TestASourceThatIsAReplicaIsRefused(t *testing.T) {
	for name, s := range map[string]struct {
		from, source database.DSNOpener
		how          replicating
	}{
		"MariaDB": {server.RunMariaDB(t, "--log-bin", "--binlog-format=ROW", "--server-id=1"), server.RunMariaDB(t, "--server-id=2"), slaveOf},
		"MySQL":   {server.RunMySQL(t, "--log-bin", "--server-id=1"), server.RunMySQL(t, "--server-id=2"), replicaOf},
	} {
		t.Run(name, func(t *testing.T) {
			feed := fmt.Sprintf(s.how.configure, portOf(t, s.from.Open(t, "mysql")))
			o := newOdd(t, s.source, "odd", "odd", sharding.Low(1), orderTable, "INSERT INTO odd (u) VALUES (1), (2)")
			refused := func(when string, do func(context.Context) error) {
				t.Helper()
				limited, cancel := context.WithTimeout(t.Context(), longPause)
				defer cancel()
				if err := do(limited); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "feed") || !strings.Contains(err.Error(), "127.0.0.1") {
					t.Errorf("%s ended with %v", when, err)
				}
			}
			database.Exec(t, o.source, feed) // and stands still
			o.finds(t, "block replica the server is configured to replicate from 127.0.0.1:")
			refused("the first run", o.Run)
			if got := database.Texts(t, o.source, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"); len(got) > 0 {
				t.Errorf("a run that was refused made %q", got)
			}
			execAll(t, o.source, s.how.end)
			o.run(t)
			database.Exec(t, o.source, feed)
			database.Exec(t, o.source, s.how.start)
			refused("another run", o.Run)
			refused("following", o.Follow)
			cutover := func(ctx context.Context) error {
				_, err := o.Cutover(ctx, longPause)
				return err
			}
			refused("the cutover", cutover)
			execAll(t, o.source, s.how.end)
			if err := cutover(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Changes that reach a shard by replication are not recorded for a rollback.
func TestARollbackFromAShardThatIsAReplicaIsRefused(t *testing.T) {
	o := newOdd(t, server.RunMariaDB(t), "odd", "odd", sharding.Low(1), orderTable, "INSERT INTO odd (u) VALUES (1), (2)")
	o.reach(t, "b", server.RunMariaDB(t).Open(t, "odd_b"))
	database.Exec(t, o.shards["b"], fmt.Sprintf(slaveOf.configure, 1))
	o.finds(t, "warn replica the server is configured to replicate from 127.0.0.1:1 feed")
	o.run(t)
	if _, err := o.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Rollback(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "shards on b") || !strings.Contains(err.Error(), "replicate from 127.0.0.1:1 feed") {
		t.Errorf("the rollback ended with %v", err)
	}
	execAll(t, o.shards["b"], slaveOf.end)
	if _, err := o.Rollback(t.Context(), longPause); err != nil {
		t.Error(err)
	}
}

// Replication may also begin between the last check and the lock.
func TestAReplicaThatIsMadeDuringACutoverIsRefused(t *testing.T) {
	o := newOdd(t, server.RunMariaDB(t), "odd", "odd", sharding.Low(1), orderTable, "INSERT INTO odd (u) VALUES (1), (2)")
	o.run(t)
	cfg := migrate.Config{Name: "odd", Source: o.source, Shards: o.shards, Tables: []migrate.Table{o.table}, Observe: func(s migrate.Step) {
		if s.Name == migrate.StepLocked {
			database.Exec(t, o.source, fmt.Sprintf(slaveOf.configure, 1))
		}
	}}
	job, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "replicate from 127.0.0.1:1 feed") {
		t.Errorf("the cutover ended with %v", err)
	}
	database.Exec(t, o.source, "INSERT INTO odd (u) VALUES (3)") // the table is open
}

// MariaDB can run triggers for row events. Then no change is lost, and the server is not refused.
func TestAReplicaThatRunsTriggersForRowEventsIsASource(t *testing.T) {
	primary := server.RunMariaDB(t, "--log-bin", "--binlog-format=ROW", "--server-id=1").Open(t, "odd")
	o := newOdd(t, server.RunMariaDB(t, "--server-id=2", "--slave-run-triggers-for-rbr=YES"), "odd", "odd", sharding.Low(1))
	database.Exec(t, o.source, "SET GLOBAL gtid_slave_pos = '"+database.Texts(t, primary, "SELECT @@gtid_current_pos")[0]+"'")
	database.Exec(t, primary, orderTable)
	database.Exec(t, o.source, fmt.Sprintf(slaveOf.configure, portOf(t, primary)))
	database.Exec(t, o.source, slaveOf.start)
	repeated := func(rows int64) {
		t.Helper()
		testwait.Until(t, "the source has what was written on the other server", func() bool {
			return database.MustNumber(t, o.source, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'odd' AND TABLE_NAME = 'odd'") == 1 &&
				database.MustNumber(t, o.source, "SELECT COUNT(*) FROM odd") == rows
		})
	}
	repeated(0)
	database.Exec(t, primary, "INSERT INTO odd (u) VALUES (1), (2)")
	repeated(2)
	o.run(t)
	database.Exec(t, primary, "INSERT INTO odd (u) VALUES (3), (4)")
	repeated(4)
	o.run(t)
	if got := o.on(t, "SELECT id FROM %s"); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("the shards have %q", got)
	}
	if v, err := o.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestAUserWhoMayNotSeeReplicationIsRefused(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		m := newMoving(t, s, slices.DeleteFunc(slices.Clone(grants), func(grant string) bool {
			return strings.Contains(grant, "SLAVE MONITOR") || strings.Contains(grant, "performance_schema")
		})...)
		found, err := m.job.Inspect(t.Context())
		if err != nil || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Severity == migrate.Block && f.Code == migrate.Privileges && f.Database == "source" && strings.Contains(f.Message, "replicates from another one")
		}) {
			t.Errorf("%+v, %v", found, err)
		}
		if err := m.job.Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) {
			t.Errorf("a run ended with %v", err)
		}
	})
}

func TestAMemberOfAClusterIsRefusedAsASource(t *testing.T) {
	t.Run("Galera", func(t *testing.T) { refusedAsMember(t, server.RunGalera(t), "Galera") })
	t.Run("Group Replication", func(t *testing.T) { refusedAsMember(t, server.RunGroupMember(t), "Group Replication") })
}

func refusedAsMember(t *testing.T, s database.DSNOpener, cluster string) {
	t.Helper()
	o := newOdd(t, s, "odd", "odd", sharding.Low(1), orderTable, "INSERT INTO odd (u) VALUES (1), (2)")
	o.finds(t, "block cluster the server is a member of a cluster ("+cluster+")")
	if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) {
		t.Errorf("a run ended with %v", err)
	}
	if got := database.Texts(t, o.source, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"); len(got) > 0 {
		t.Errorf("a run that was refused made %q", got)
	}
}
