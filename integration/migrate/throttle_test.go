// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// sqlThread is how the thread of a replica that applies changes is stopped and started, and
// what is said of one that is.
type sqlThread struct{ stop, start, mayLook, stopped string }

func TestACopyWaitsForAReplicaThatIsBehind(t *testing.T) {
	for name, s := range map[string]struct {
		source, other, replica database.Server
		how                    replicating
		thread                 sqlThread
		ready                  string
	}{
		"MariaDB": {
			server.RunMariaDB(t, "--log-bin", "--binlog-format=ROW", "--server-id=1", "--log-bin-trust-function-creators=1"), server.RunMariaDB(t), server.RunMariaDB(t, "--server-id=2"),
			slaveOf, sqlThread{"STOP SLAVE 'feed' SQL_THREAD", "START SLAVE 'feed' SQL_THREAD", "GRANT SLAVE MONITOR ON *.* TO mover", "its SQL thread is not running (No)"}, "shop.ready",
		},
		"MySQL": {
			server.RunMySQL(t, "--log-bin", "--server-id=1", "--log-bin-trust-function-creators=1"), server.RunMySQL(t), server.RunMySQL(t, "--server-id=2"),
			replicaOf, sqlThread{"STOP REPLICA SQL_THREAD FOR CHANNEL 'feed'", "START REPLICA SQL_THREAD FOR CHANNEL 'feed'", "GRANT REPLICATION CLIENT ON *.* TO mover", "its SQL thread is not running (No)"}, "shop.ready",
		},
		"PostgreSQL": {
			server.RunPostgres(t), server.RunPostgres(t), nil,
			replicating{}, sqlThread{"SELECT pg_wal_replay_pause()", "SELECT pg_wal_replay_resume()", "SELECT 1", "its replay of the log is paused"}, "ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop := newMigrationShop(t, s.source, s.other)
			shop.fill(t, 5000)
			o := newOperator(t, shop)
			database.Exec(t, shop.source, s.thread.mayLook)
			database.Exec(t, shop.source, "CREATE TABLE ready (id INT PRIMARY KEY)") // comes last
			var onReplica *sql.DB
			if primary, is := s.source.(*server.Postgres); is {
				s.replica = newStandby(t, primary, true)
				onReplica = onServer(t, s.replica, "shop")
			} else {
				onReplica = s.replica.Open(t, "mysql")
				renew(t, s.replica, onReplica)
				database.Exec(t, onReplica, fmt.Sprintf(s.how.configure, portOf(t, shop.source)))
				database.Exec(t, onReplica, s.how.start)
			}
			testwait.Until(t, "the replica has the rows, and the user with all rights", func() bool {
				_, err := database.Number(t.Context(), onReplica, "SELECT COUNT(*) FROM "+s.ready)
				return err == nil
			})
			o.name(t, "r1", asMover(s.replica.DSN("shop")))

			database.Exec(t, onReplica, s.thread.stop)
			run := o.start(t, "run", "--max-lag", "1s", "--rate", "10", "--interval", "100ms")
			run.waitFor(t, "copying nothing for now: replica r1 ")
			run.waitFor(t, ", throttled: replica r1 is at least ") // in a line of progress
			run.waitFor(t, "it has shown no heartbeat of this runner yet; "+s.thread.stopped)
			if now := o.status(t); now.Tables[0].Copied != 0 {
				t.Errorf("%.3f of the rows are copied", now.Tables[0].Copied)
			}
			database.Exec(t, onReplica, s.thread.start)
			run.waitFor(t, "copying again")
			o.wait(t, func(now jobStatus) bool { return now.Tables[0].Copied > 0 }, run)

			database.Exec(t, onReplica, s.thread.stop)
			run.waitFor(t, "s behind, at most 1s; "+s.thread.stopped)
			if o.status(t).Tables[0].Copied == 1 {
				t.Error("all rows are copied")
			}

			s.replica.Kill()
			run.waitFor(t, "throttled: replica r1 does not answer: ")
			if err := run.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			o.configure(t)
			o.must(t, 2, "run", "--max-lag", "1s")
			o.must(t, 0, "run", "--once", "--max-commit-latency", "1h")
			o.must(t, 0, "abort", "--yes")
			if n := database.MustNumber(t, shop.source, "SELECT COUNT(*) FROM shardid_beat"); n != 0 {
				t.Errorf("%d heartbeats are left", n)
			}
		})
	}
}

// renew gives a server of MySQL an identity of its own: those of the tests have one in
// common, and a server repeats none that is itself.
func renew(t *testing.T, s database.Server, db *sql.DB) {
	t.Helper()
	dir := database.Texts(t, db, "SELECT @@datadir")[0]
	if isMariaDB(t, db) {
		return
	}
	s.Kill()
	if err := errors.Join(os.Remove(filepath.Join(dir, "auto.cnf")), s.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// name adds a replica to the configuration.
func (o *operator) name(t *testing.T, replica, dsn string) {
	t.Helper()
	path := filepath.Join(o.dir, "shards.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	layout := strings.Replace(string(text), `{"databases": {`, `{"replicas": ["`+replica+`"], "databases": {"`+replica+`": {"env": "SHOP_REPLICA"}, `, 1)
	if err := os.WriteFile(path, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = append(o.env, "SHOP_REPLICA="+dsn)
}
