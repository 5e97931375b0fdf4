// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Router is a MySQL Router in front of a replication group. Clients share its connections to
// members; a connection may change to another client between transactions.
type Router struct {
	port int
	dir  string
	proc *process
}

// RunRouter runs a router that sends everything to the first of the members that answers.
// It is stopped when the test ends.
func RunRouter(tb testing.TB, members ...*MySQL) *Router {
	tb.Helper()
	r := newRouter(tb, members)
	r.run(tb, members[0], fmt.Sprintf("destinations=%s\nrouting_strategy=first-available\n", strings.Join(addressesOf(members), ",")))
	return r
}

// RunSplittingRouter runs a router that sends reads to the group's secondaries, and other
// statements to its primary. The router finds the members in metadata that MySQL Shell would write;
// the group gets the part of it that the router reads.
func RunSplittingRouter(tb testing.TB, members ...*MySQL) *Router {
	tb.Helper()
	r := newRouter(tb, members)
	r.describe(tb, members)
	r.run(tb, members[0], "destinations=metadata-cache://group/?role=PRIMARY_AND_SECONDARY\nrouting_strategy=round-robin\naccess_mode=auto\n"+
		fmt.Sprintf("[metadata_cache:group]\ncluster_type=gr\nrouter_id=1\nuser=%s\nmetadata_cluster=group\nttl=1\nssl_mode=PREFERRED\n", routerUser))
	return r
}

// The user of the clients. Only clients with a password share connections.
const (
	routerUser     = "client"
	routerPassword = "secret"
)

func newRouter(tb testing.TB, members []*MySQL) *Router {
	tb.Helper()
	members[0].admin(tb, "CREATE USER IF NOT EXISTS "+routerUser+" IDENTIFIED BY '"+routerPassword+"'")
	members[0].admin(tb, "GRANT ALL ON *.* TO "+routerUser)
	return &Router{port: memberPort(tb), dir: tb.TempDir()}
}

func addressesOf(members []*MySQL) (all []string) {
	for _, m := range members {
		all = append(all, address(m.port))
	}
	return all
}

// groupMetadata is the part of InnoDB cluster metadata, version 2.2, that a router reads.
var groupMetadata = []string{
	"CREATE DATABASE mysql_innodb_cluster_metadata",
	"CREATE VIEW mysql_innodb_cluster_metadata.schema_version (major, minor, patch) AS SELECT 2, 2, 0",
	"CREATE VIEW mysql_innodb_cluster_metadata.v2_gr_clusters AS SELECT '1' AS cluster_id, 'group' AS cluster_name, '" + GroupName + "' AS group_name",
	"CREATE VIEW mysql_innodb_cluster_metadata.v2_clusters AS SELECT * FROM mysql_innodb_cluster_metadata.v2_gr_clusters",
	"CREATE VIEW mysql_innodb_cluster_metadata.v2_this_instance AS SELECT '1' AS cluster_id, 1 AS instance_id, 'group' AS cluster_name, 'gr' AS cluster_type",
	"CREATE TABLE mysql_innodb_cluster_metadata.v2_instances (instance_id INT PRIMARY KEY, cluster_id VARCHAR(36), mysql_server_uuid VARCHAR(36), endpoint TEXT, xendpoint TEXT, address TEXT, attributes JSON, label TEXT)",
	"CREATE TABLE mysql_innodb_cluster_metadata.v2_cs_members (clusterset_id VARCHAR(36) PRIMARY KEY, cluster_id VARCHAR(36), member_role TEXT, invalidated INT)",
	"CREATE TABLE mysql_innodb_cluster_metadata.v2_cs_clustersets (clusterset_id VARCHAR(36) PRIMARY KEY, domain_name TEXT, view_id INT)",
	"CREATE TABLE mysql_innodb_cluster_metadata.v2_routers (router_id INT PRIMARY KEY, address TEXT, router_name TEXT, version TEXT, last_check_in DATETIME, attributes JSON, options JSON)",
	"CREATE TABLE mysql_innodb_cluster_metadata.v2_router_options (router_id INT PRIMARY KEY, clusterset_id VARCHAR(36), cluster_id VARCHAR(36), router_options JSON)",
	"INSERT INTO mysql_innodb_cluster_metadata.v2_routers VALUES (1, 'localhost', 'lane', '9', NOW(), '{}', '{}')",
	"INSERT INTO mysql_innodb_cluster_metadata.v2_router_options VALUES (1, NULL, '1', '{}')",
}

// describe writes the group's metadata, and the router's files and user with which it reads them.
func (r *Router) describe(tb testing.TB, members []*MySQL) {
	tb.Helper()
	for _, text := range groupMetadata {
		members[0].admin(tb, text)
	}
	for n, m := range members {
		members[0].admin(tb, fmt.Sprintf("INSERT INTO mysql_innodb_cluster_metadata.v2_instances VALUES (%d, '1', '%s', '%s', NULL, '%[3]s', '{}', 'm%[1]d')", n+1, m.uuid(tb), address(m.port)))
	}
	state := fmt.Sprintf(`{"version": "1.0.0", "metadata-cache": {"group-replication-id": "%s", "cluster-metadata-servers": ["mysql://%s"]}}`,
		GroupName, strings.Join(addressesOf(members), `", "mysql://`))
	if err := os.WriteFile(filepath.Join(r.dir, "state.json"), []byte(state), 0o600); err != nil {
		tb.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"set", routerUser, "password", routerPassword}} {
		command := append([]string{args[0], "--master-key-file=" + filepath.Join(r.dir, "key"), filepath.Join(r.dir, "keyring")}, args[1:]...)
		cmd := exec.CommandContext(tb.Context(), routerProgram(tb)+"_keyring", command...)
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("mysqlrouter_keyring: %v: %s", err, out)
		}
	}
}

func (m *MySQL) uuid(tb testing.TB) (uuid string) {
	tb.Helper()
	if err := m.pool(tb, "").QueryRowContext(tb.Context(), "SELECT @@server_uuid").Scan(&uuid); err != nil {
		tb.Fatal(err)
	}
	return uuid
}

func routerProgram(tb testing.TB) string {
	tb.Helper()
	cache, err := cacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	program := filepath.Join(cache, "shardid-mysqlrouter")
	if _, err := os.Stat(program); err != nil {
		tb.Fatalf("MySQL Router is not installed for the tests; `make lanes` does that, or do it alone with .ci/install-router: %v", err)
	}
	return program
}

// run starts the router with the certificate of a member.
func (r *Router) run(tb testing.TB, member *MySQL, routing string) {
	tb.Helper()
	program := routerProgram(tb)
	text := fmt.Sprintf(`[DEFAULT]
logging_folder=%[1]s
runtime_folder=%[1]s
data_folder=%[1]s
plugin_folder=%[2]s.plugins
keyring_path=%[1]s/keyring
master_key_path=%[1]s/key
dynamic_state=%[1]s/state.json
connect_timeout=60
read_timeout=60
client_ssl_key=%[3]s/server-key.pem
client_ssl_cert=%[3]s/server-cert.pem
[logger]
level=info
[connection_pool]
max_idle_server_connections=64
[routing:shared]
bind_address=%[4]s
bind_port=%[5]d
protocol=classic
client_ssl_mode=PREFERRED
server_ssl_mode=PREFERRED
connection_sharing=1
connection_sharing_delay=0
%[6]s`, r.dir, program, member.dataDir(), loopback, r.port, routing)
	config := filepath.Join(r.dir, "mysqlrouter.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "--config", config) //nolint:noctx // it ends when the test does
	cmd.Dir, cmd.Env = r.dir, plainEnviron()
	var err error
	if r.proc, err = startProcess(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		r.proc.kill()
		if tb.Failed() {
			tb.Logf("MySQL Router's log ends with:\n%s", r.logTail())
		}
	})
	r.waitForAnswers(tb)
}

// DSN is the data source name of the named database through the router.
func (r *Router) DSN(database string) string {
	c := mariadbConfig(r.port, database)
	c.User, c.Passwd, c.TLSConfig = routerUser, routerPassword, "skip-verify"
	return c.FormatDSN()
}

// Open returns a connection pool of a database that exists. It is closed when the test ends.
func (r *Router) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	c, err := mysql.ParseDSN(r.DSN(database))
	if err != nil {
		tb.Fatal(err)
	}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func (r *Router) waitForAnswers(tb testing.TB) {
	tb.Helper()
	db := r.Open(tb, "")
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	err := again(ctx, func() error {
		if !r.proc.running() {
			cancel()
		}
		return db.PingContext(ctx)
	})
	if err != nil {
		tb.Fatalf("MySQL Router does not answer: %v", err)
	}
}

func (r *Router) logTail() string {
	log, err := os.ReadFile(filepath.Join(r.dir, "mysqlrouter.log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTail):])
}
