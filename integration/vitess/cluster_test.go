// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding/export"
)

// forVitess are the settings that a server of MySQL needs under vttablets: row changes
// are read from its binary log.
var forVitess = []string{"--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-format=ROW", "--max-connections=2000"}

// cell is the only one of the tests' clusters.
const cell = "zone1"

// servers are the programs of a Vitess that run in a home.
type servers struct {
	home    *server.Home
	bin     string
	gate    int    // the port on which vtgate speaks MySQL's protocol
	control string // the address of vtctld

	// ctx ends when one of the programs does.
	ctx context.Context
	end context.CancelFunc
}

func newServers(t *testing.T, names ...string) *servers {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	for _, name := range names {
		path := filepath.Join(cache, "shardid-test-servers", "vitess", name)
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("Vitess is not built; `make lanes` does that, or do it alone with .ci/install-built vitess vitess.io/vitess: %v", err)
		}
		programs = append(programs, path)
	}
	s := &servers{home: server.NewHome(t), gate: freePort(t), control: address(freePort(t))}
	s.ctx, s.end = context.WithCancel(testwait.Context(t))
	t.Cleanup(s.end)
	s.bin = s.home.Install(t, programs...)
	return s
}

// freePort is one on which nobody listens now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts one of the programs.
func (s *servers) start(t *testing.T, program string, args ...string) {
	t.Helper()
	ended := s.home.Start(t, s.env(), filepath.Join(s.bin, program), args...)
	go func() {
		select {
		case <-ended:
			if s.ctx.Err() == nil {
				t.Errorf("%s has ended by itself", program)
				s.end()
			}
		case <-s.ctx.Done():
		}
	}()
}

func (s *servers) env() []string { return []string{"VTDATAROOT=" + s.home.Dir} }

// gateFlags make a vtgate that everybody may use.
func (s *servers) gateFlags(t *testing.T) []string {
	t.Helper()
	return []string{
		"--mysql-auth-server-impl=none", "--mysql-server-bind-address=127.0.0.1", "--mysql-server-port=" + strconv.Itoa(s.gate),
		"--port=" + strconv.Itoa(freePort(t)), "--bind-address=127.0.0.1",
		"--tablet-refresh-interval=1s",
	}
}

// open returns a pool of connections to a keyspace by vtgate.
func (s *servers) open(t *testing.T, keyspace string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.dsn(keyspace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *servers) dsn(keyspace string) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", address(s.gate), keyspace
	return c.FormatDSN()
}

// serves waits until vtgate answers a query of a keyspace.
func (s *servers) serves(t *testing.T, keyspace, query string) {
	t.Helper()
	db := s.open(t, keyspace)
	var last error
	defer func() {
		if t.Failed() {
			t.Logf("%s of %s: %v", query, keyspace, last)
		}
	}()
	testwait.Until(t, "vtgate serves "+keyspace, func() bool {
		last = dialect.Each(s.ctx, db, func(*sql.Rows) error { return nil }, query)
		return last == nil || s.ctx.Err() != nil
	})
	s.must(t)
}

// must ends a test whose programs have ended.
func (s *servers) must(t *testing.T) {
	t.Helper()
	if s.ctx.Err() != nil {
		t.FailNow()
	}
}

// ctl has vtctldclient carry out a command.
func (s *servers) ctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.tryCtl(t, args...)
	if err != nil {
		t.Fatalf("vtctldclient %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *servers) tryCtl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return s.home.Run(s.ctx, s.env(), filepath.Join(s.bin, "vtctldclient"), append([]string{"--server", s.control}, args...)...)
}

// controls waits until vtctld answers.
func (s *servers) controls(t *testing.T) {
	t.Helper()
	testwait.Until(t, "vtctld answers", func() bool {
		_, err := s.tryCtl(t, "GetCellInfoNames")
		return err == nil || s.ctx.Err() != nil
	})
	s.must(t)
}

// write puts a file into the home and returns its path.
func (s *servers) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.home.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.home.Give(t)
	return path
}

// keyspace is one of vtcombo's.
type keyspace struct {
	name   string
	shards []string
}

// newCombo starts vtcombo with the keyspaces over one server of MySQL.
func newCombo(t *testing.T, m *server.MySQL, keyspaces ...keyspace) *servers {
	t.Helper()
	s := newServers(t, "vtcombo", "vtctldclient")
	type shard struct {
		Name string `json:"name"`
	}
	type space struct {
		Name         string  `json:"name"`
		Shards       []shard `json:"shards"`
		ReplicaCount int     `json:"replicaCount"` // the primary among them
		RdonlyCount  int     `json:"rdonlyCount"`  // 0 means 1
	}
	var topology struct {
		Keyspaces []space  `json:"keyspaces"`
		Cells     []string `json:"cells"`
	}
	topology.Cells = []string{cell}
	for _, k := range keyspaces {
		made := space{Name: k.name, ReplicaCount: 1, RdonlyCount: -1} // all tablets would be of one server
		for _, name := range k.shards {
			made.Shards = append(made.Shards, shard{name})
			m.Open(t, database(k.name, name))
		}
		topology.Keyspaces = append(topology.Keyspaces, made)
	}
	text, err := json.Marshal(topology)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := mysql.ParseDSN(m.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, "vtcombo", append(s.gateFlags(t),
		"--json-topo="+string(text), "--db-host=127.0.0.1", "--db-port="+portOf(t, cfg.Addr),
		"--db-app-user=root", "--db-dba-user=root", "--db-appdebug-user=root", "--db-allprivs-user=root", "--db-repl-user=root", "--db-filtered-user=root",
		"--tablet-hostname=127.0.0.1", "--mycnf-server-id=1", "--grpc-port="+portOf(t, s.control), "--grpc-bind-address=127.0.0.1",
		"--service-map=grpc-vtctl,grpc-vtctld", "--tablet-types-to-wait=PRIMARY")...)
	s.controls(t)
	for _, k := range keyspaces {
		s.serves(t, k.name, "SHOW TABLES")
	}
	return s
}

// database is what vtcombo calls that of a shard.
func database(keyspace, shard string) string { return "vt_" + keyspace + "_" + shard }

// exported is an export of the shards of a keyspace.
type exported struct {
	export.Export

	shards []shardOf
}

// shardOf is a shard and the physical table of the router that it takes of each table.
type shardOf struct {
	Shard  string
	Tables map[string]string
}

func (e exported) names() (names []string) {
	for _, s := range e.shards {
		names = append(names, s.Shard)
	}
	return names
}

func (e exported) file(t *testing.T, name string) string {
	t.Helper()
	for _, f := range e.Files {
		if f.Name == name {
			return f.Text
		}
	}
	t.Fatalf("the export has no %s", name)
	return ""
}

func newExported(t *testing.T, out export.Export) exported {
	t.Helper()
	e := exported{Export: out}
	if err := json.Unmarshal([]byte(e.file(t, "shards.json")), &e.shards); err != nil {
		t.Fatal(err)
	}
	return e
}

func execf(t *testing.T, db *sql.DB, format string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(format, args...)); err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

func number(ctx context.Context, t *testing.T, db *sql.DB, format string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(ctx, fmt.Sprintf(format, args...)).Scan(&n); err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	return n
}
