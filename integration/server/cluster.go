package server

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// galeraLibrary is the provider that Debian's package galera-4 installs; others put
// it elsewhere.
var galeraLibrary = []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"}

// RunGalera is [RunMariaDB] for a server that is the only member of a Galera cluster.
func RunGalera(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	library := ""
	for _, path := range galeraLibrary {
		if _, err := os.Stat(path); err == nil {
			library = path
			break
		}
	}
	if library == "" {
		tb.Fatalf("Galera's library is in none of %q; `make test` installs it (Debian's package galera-4)", galeraLibrary)
	}
	port := memberPort(tb)
	m := RunMariaDB(tb, append([]string{
		"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-cluster-address=gcomm://", "--wsrep-new-cluster",
		"--wsrep-node-address=" + loopback, "--wsrep-sst-method=skip",
		fmt.Sprintf("--wsrep-provider-options=base_port=%d;gmcast.listen_addr=tcp://%s:%[1]d;gcache.size=1M", port, loopback),
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
	}, flags...)...)
	m.waitForWrites(tb, "SELECT VARIABLE_VALUE = 'ON' FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_ready'")
	return m
}

// GroupName is the name of the groups that [RunGroupMember] starts.
const GroupName = "6e2f1f6c-5c1c-4a3a-9a38-3f8f1f2b7d10"

// RunGroupMember is [RunMySQL] for a server that is the only member of a replication
// group, and so its primary.
func RunGroupMember(tb testing.TB, flags ...string) *MySQL {
	tb.Helper()
	member := address(memberPort(tb))
	m := RunMySQL(tb, append([]string{
		"--log-bin", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--report-host=" + loopback,
		"--plugin-load-add=group_replication.so",
		"--loose-group-replication-group-name=" + GroupName,
		"--loose-group-replication-local-address=" + member, "--loose-group-replication-group-seeds=" + member,
		"--loose-group-replication-bootstrap-group=ON", "--loose-group-replication-start-on-boot=ON",
	}, flags...)...)
	m.waitForWrites(tb, "SELECT NOT @@super_read_only")
	return m
}

// waitForWrites returns once a member takes writes: it answers before it has joined.
// The query says whether it does.
func (i *instance) waitForWrites(tb testing.TB, query string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	db := i.pool(tb, "")
	for {
		var ready bool
		err := db.QueryRowContext(ctx, query).Scan(&ready)
		if err == nil && ready {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("after %v the member of the cluster does not take writes: %v", startLimit, err)
		case <-time.After(tryEvery):
		}
	}
}

// memberPort is one on which a member listens for others, of which there are none. It is
// the test's until it ends.
func memberPort(tb testing.TB) int {
	tb.Helper()
	port, err := claims.claim(memberPorts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { claims.release(port) })
	return port
}
