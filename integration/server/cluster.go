// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

// galeraLibrary is the path at which Debian's package galera-4 installs the provider; other
// systems use other paths.
var galeraLibrary = []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"}

// RunGalera is [RunMariaDB] for a server that is the only member of a Galera cluster.
func RunGalera(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	return RunGaleraCluster(tb, 1, flags...)[0]
}

// RunGaleraCluster runs n servers as members of one Galera cluster, and returns
// when all of them accept writes. A killed member cannot join again, because it would need a
// copy of the others' state.
func RunGaleraCluster(tb testing.TB, size int, flags ...string) (members []*MariaDB) {
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
	first := memberPort(tb)
	for n := range size {
		port, join := first, []string{"--wsrep-cluster-address=gcomm://", "--wsrep-new-cluster"}
		k := mariadbFor(flags)
		if n > 0 {
			port, join = memberPort(tb), []string{fmt.Sprintf("--wsrep-cluster-address=gcomm://%s:%d", loopback, first)}
			k.configure = members[0].stateFor(tb)
		}
		settings := []string{
			"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-node-address=" + loopback, "--wsrep-sst-method=skip",
			fmt.Sprintf("--wsrep-provider-options=base_port=%d;gmcast.listen_addr=tcp://%s:%[1]d;ist.recv_addr=%[2]s:%[3]d;gcache.size=1M", port, loopback, memberPort(tb)),
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		}
		m := &MariaDB{k.run(tb, slices.Concat(join, settings, flags))}
		members = append(members, m)
		m.waitForWrites(tb, fmt.Sprintf(`SELECT COUNT(*) = 2 FROM information_schema.GLOBAL_STATUS
			WHERE VARIABLE_NAME = 'wsrep_ready' AND VARIABLE_VALUE = 'ON' OR VARIABLE_NAME = 'wsrep_cluster_size' AND VARIABLE_VALUE = '%d'`, n+1))
	}
	return members
}

// stateFor writes the cluster's current state into the data of a joining server. This is correct because all
// servers begin as copies of one folder, and nothing was written since.
func (m *MariaDB) stateFor(tb testing.TB) func(*instance) error {
	tb.Helper()
	const query = `SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('wsrep_cluster_state_uuid', 'wsrep_last_committed') ORDER BY VARIABLE_NAME`
	var state []any
	err := dialect.Each(tb.Context(), m.pool(tb, ""), func(rows *sql.Rows) error {
		var value string
		err := rows.Scan(&value)
		state = append(state, value)
		return err
	}, query)
	if err != nil {
		tb.Fatal(err)
	}
	return func(joining *instance) error {
		text := fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %s\nsafe_to_bootstrap: 0\n", state...)
		return os.WriteFile(filepath.Join(joining.dataDir(), "grastate.dat"), []byte(text), 0o600)
	}
}

// GroupName is the name of the groups that [RunGroup] starts.
const GroupName = "6e2f1f6c-5c1c-4a3a-9a38-3f8f1f2b7d10"

// RunGroupMember is [RunMySQL] for a server that is the only member of a replication
// group, and so its primary.
func RunGroupMember(tb testing.TB, flags ...string) *MySQL {
	tb.Helper()
	return RunGroup(tb, 1, flags...)[0]
}

// RunGroup runs n servers as members of one replication group. It returns when
// the first member accepts writes or, in a group with several primaries
// (--loose-group-replication-single-primary-mode=OFF), when all do. The first server would form
// a new group if it were started again; the others join this group again.
func RunGroup(tb testing.TB, size int, flags ...string) (members []*MySQL) {
	tb.Helper()
	addresses := make([]string, size)
	for n := range addresses {
		addresses[n] = fmt.Sprintf("%s:%d", loopback, memberPort(tb))
	}
	for n, address := range addresses {
		role := "ON"
		if n > 0 {
			role = "OFF"
		}
		joining := []string{
			"--log-bin", fmt.Sprintf("--server-id=%d", n+1), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--report-host=" + loopback,
			"--performance-schema=ON", // lists the members
			"--plugin-load-add=group_replication.so",
			"--loose-group-replication-group-name=" + GroupName,
			"--loose-group-replication-local-address=" + address, "--loose-group-replication-group-seeds=" + strings.Join(addresses, ","),
			"--loose-group-replication-bootstrap-group=" + role, "--loose-group-replication-start-on-boot=" + role,
		}
		m := RunMySQL(tb, append(joining, flags...)...)
		members = append(members, m)
		if n > 0 {
			m.Renew(tb)
			m.join(tb)
		}
		m.waitForWrites(tb, fmt.Sprintf("SELECT COUNT(*) = %d FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'", n+1))
	}
	members[0].waitForWrites(tb, "SELECT NOT @@super_read_only")
	return members
}

// join makes a server a member of an existing group.
func (m *MySQL) join(tb testing.TB) {
	tb.Helper()
	db := m.pool(tb, "")
	for _, text := range []string{
		"CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'",
		"START GROUP_REPLICATION",
	} {
		if _, err := db.ExecContext(tb.Context(), text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
}

// Renew restarts the server with a new server_uuid. All servers of the tests begin as
// copies of one folder, and so with the same auto.cnf.
func (m *MySQL) Renew(tb testing.TB) {
	tb.Helper()
	m.Kill()
	if err := os.Remove(filepath.Join(m.dataDir(), "auto.cnf")); err != nil {
		tb.Fatal(err)
	}
	if err := m.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// waitForWrites returns when a member accepts writes, because a member answers queries before it has joined.
// The query returns whether it does.
func (i *instance) waitForWrites(tb testing.TB, query string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	db := i.pool(tb, "")
	err := again(ctx, func() error {
		var ready bool
		err := db.QueryRowContext(ctx, query).Scan(&ready)
		if err == nil && !ready {
			err = errors.New("it says no to " + query)
		}
		return err
	})
	if err != nil {
		tb.Fatalf("the member of the cluster does not take writes: %v", err)
	}
}

// memberPort returns a port on which a member listens for others. The port is reserved until the test ends.
func memberPort(tb testing.TB) int {
	tb.Helper()
	port, err := claims.claim(memberPorts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { claims.release(port) })
	return port
}
