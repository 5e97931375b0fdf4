// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// site is a Vitess with its own servers, and the directory in which the page's commands run.
type site struct {
	*servers

	dir      string // where commands are run
	settings []string
	dbs      map[string]*server.MySQL
}

// newSite starts the programs that the page requires: a topology server, vtctld and vtgate.
func newSite(t *testing.T) *site {
	t.Helper()
	zk := server.RunZooKeeper(t)
	s := &site{servers: newServers(t, "vtctld", "vtctldclient", "vtgate", "vttablet"), dbs: map[string]*server.MySQL{}}
	s.dir = s.home.Dir
	topology := []string{"--topo-implementation=zk2", "--topo-global-server-address=" + zk.Addr(), "--topo-global-root=/vitess/global"}
	s.servers.start(t, "vtctld", append([]string{
		"--cell=" + cell, "--service-map=grpc-vtctl,grpc-vtctld",
		"--port=" + strconv.Itoa(freePort(t)), "--grpc-port=" + portOf(t, s.control), "--grpc-bind-address=127.0.0.1", "--bind-address=127.0.0.1",
	}, topology...)...)
	s.controls(t)
	s.ctl(t, "AddCellInfo", "--root", "/vitess/"+cell, "--server-address", zk.Addr(), cell)
	s.servers.start(t, "vtgate", append(append(s.gateFlags(t),
		"--cell="+cell, "--cells-to-watch="+cell, "--tablet-types-to-wait=PRIMARY", "--enable-buffer",
		"--grpc-port="+strconv.Itoa(freePort(t)), "--grpc-bind-address=127.0.0.1"), topology...)...)
	s.settings = append(s.env(),
		"TOPOLOGY_FLAGS="+strings.Join(topology, " "), "CELL="+cell, "VTCTLD="+s.control,
		"DB_USER=root", "DB_CREDENTIALS="+s.write(t, "credentials.json", `{"root": [""]}`),
		"PATH="+s.bin+":"+os.Getenv("PATH"))
	s.installShardid(t)
	return s
}

func (s *site) installShardid(t *testing.T) {
	t.Helper()
	s.home.Install(t, server.Command(t))
}

// addDatabase starts a server of MySQL for a database of the page.
func (s *site) addDatabase(t *testing.T, name string) *sql.DB {
	t.Helper()
	m := server.RunMySQL(t, append([]string{fmt.Sprintf("--server-id=%d", len(s.dbs)+1)}, forVitess...)...)
	s.dbs[name] = m
	dsn := m.DSN("shop_" + name)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	variable := strings.ToUpper(name)
	options := fmt.Sprintf("[client]\nprotocol=tcp\nskip-ssl\nhost=%s\nport=%s\nuser=%s\npassword=%s\n", host, port, cfg.User, cfg.Passwd)
	s.settings = append(s.settings,
		"SHOP_"+variable+"="+dsn, variable+"_HOST="+host, variable+"_PORT="+port, variable+"_CNF="+s.write(t, name+".cnf", options))
	return m.Open(t, "shop_"+name)
}

// run runs a command of a section of the page.
func (s *site) run(t *testing.T, from *section, begins string) string {
	t.Helper()
	line := from.command(t, begins)
	out, err := s.home.Run(s.ctx, s.settings, "sh", "-ec", line)
	if err != nil {
		t.Fatalf("%s: %v: %s%s", line, err, out, s.logs(t))
	}
	return out
}

// logs are the ends of the vttablets' logs.
func (s *site) logs(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, pattern := range []string{"*/vttablet.*.log", "vttablet.*.log"} {
		files, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			log, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "\n%s ends with:\n%s", file, log[max(0, len(log)-4<<10):])
		}
	}
	return text.String()
}

const ordersTable = "CREATE TABLE %s (id bigint PRIMARY KEY, user_id bigint NOT NULL, KEY (user_id))"

// newRouter spreads orders over the databases.
func newRouter(t *testing.T, dbs sharding.DBs, tables int, pattern string) *sharding.Router {
	t.Helper()
	layout, err := sharding.Spread([]string{"east", "west"}, tables, pattern)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: layout})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range r.Targets("orders") {
		execf(t, dbs[at.DB], ordersTable, at.Table)
	}
	return r
}

// insertRouted inserts a row of the key where the router says.
func insertRouted(r *sharding.Router) func(context.Context, int64) error {
	return func(ctx context.Context, key int64) error {
		at, err := r.Target("orders", key)
		if err != nil {
			return err
		}
		_, err = r.DB(at.DB).ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id, user_id) VALUES (%d, %[2]d)", at.Table, key))
		return err
	}
}

// foundRouted looks for each acknowledged row where the router says.
func (w *traffic) foundRouted(t *testing.T, r *sharding.Router) {
	t.Helper()
	for _, key := range w.keys() {
		at, err := r.Target("orders", key)
		if err != nil {
			t.Fatal(err)
		}
		if n := number(t.Context(), t, r.DB(at.DB), "SELECT COUNT(*) FROM %s WHERE user_id = %d", at.Table, key); n != 1 {
			t.Errorf("%s has %d rows of key %d", at, n, key)
		}
	}
}

func TestLiveShardsAreServedByVttabletsInTheirPlacesAndComeBack(t *testing.T) {
	p, s := newSection(t, "Live shards, in their places"), newSite(t)
	dbs := sharding.DBs{"east": s.addDatabase(t, "east"), "west": s.addDatabase(t, "west")}
	for _, db := range dbs {
		execf(t, db, "CREATE TABLE regions (id bigint PRIMARY KEY)")
		execf(t, db, "INSERT INTO regions VALUES (1), (2)")
	}
	r := newRouter(t, dbs, 4, "orders_%02d")
	s.write(t, "shards.json", configOf(t, "../../docs/growing-out-of-one-process.md"))

	w := &traffic{insert: insertRouted(r)}
	stop := w.run(t)
	defer stop()
	w.goesOn(t, 200)
	s.run(t, p, "shardid export vitess")
	shop := s.open(t, "shop")
	w.pause(func() {
		s.run(t, p, "./out/apply.sh adopt")
		s.run(t, p, "./out/apply.sh vitess")
		s.serves(t, "shop", "SELECT user_id FROM orders LIMIT 1")
		w.found(t, shop, 0)
	}, insertInto(shop))
	w.goesOn(t, 200)
	w.pause(func() {
		w.found(t, shop, 0)
		if n := number(t.Context(), t, shop, "SELECT COUNT(*) FROM regions"); n != 2 {
			t.Errorf("vtgate finds %d regions", n)
		}
		s.run(t, p, "kill")
		s.ended(t, "out")
		s.run(t, p, "./out/apply.sh undo")
	}, insertRouted(r))
	w.goesOn(t, 200)
	stop()
	w.foundRouted(t, r)
	s.run(t, p, "shardid doctor")
	t.Logf("%d rows", len(w.keys()))
}

// ended waits until the vttablets of a directory have ended, which remove their files then.
func (s *site) ended(t *testing.T, dir string) {
	t.Helper()
	testwait.Until(t, "the vttablets end", func() bool {
		files, err := filepath.Glob(filepath.Join(s.dir, dir, "vttablet.*.pid"))
		return err == nil && len(files) == 0
	})
}

// configOf is the file of a sharding configuration in a page.
func configOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return (&section{text: string(text)}).blocks("json")[0]
}

func TestShardsThatAreDatabasesAreVitessAsTheyAreWhileRoutersGoOn(t *testing.T) {
	p, s := newSection(t, "Shards that are databases already"), newSite(t)
	r := newRouter(t, sharding.DBs{"east": s.addDatabase(t, "east"), "west": s.addDatabase(t, "west")}, 2, "orders")
	s.write(t, "vitess.json", p.blocks("json")[0])

	w := &traffic{insert: insertRouted(r)}
	stop := w.run(t)
	defer stop()
	w.goesOn(t, 100)
	s.run(t, p, "shardid export vitess")
	s.run(t, p, "./vitess/apply.sh vitess")
	s.serves(t, "shop", "SELECT user_id FROM orders LIMIT 1")
	shop := s.open(t, "shop")
	beside := &traffic{insert: insertInto(shop), first: 1 << 40}
	stopBeside := beside.run(t)
	defer stopBeside()
	w.goesOn(t, 100)
	beside.goesOn(t, 100)
	stop()
	stopBeside()
	w.found(t, shop, int64(len(beside.keys())))
	beside.found(t, shop, int64(len(w.keys())))
	w.foundRouted(t, r)
	beside.foundRouted(t, r)
	t.Logf("%d rows by the router, %d by vtgate", len(w.keys()), len(beside.keys()))
}
