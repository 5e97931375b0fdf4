// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// wayOut is the page on growing out of one process.
const wayOut = "../docs/growing-out-of-one-process.md"

// pageBlocks returns a page's code of a language.
func pageBlocks(t *testing.T, page, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```\n")
		blocks = append(blocks, block)
	}
	return blocks
}

// adopted is a shop whose tables are renamed to Vitess' shards, and back.
type adopted struct {
	dir string
	env []string
	ran []string // lines of the shell
	r   *sharding.Router
	// places maps a physical table, such as "east/orders_00", to its place in Vitess.
	places map[string]string

	// A writer holds gate while it writes a row; the renames exclude writers. inVitess is true
	// while the rows are in Vitess' tables.
	gate     sync.RWMutex
	inVitess bool
	written  [4]atomic.Int64 // acknowledged rows by physical table
}

// adoptable is a server of MariaDB or MySQL.
type adoptable interface {
	DSN(database string) string
	Open(tb testing.TB, database string) *sql.DB
}

func newAdopted(t *testing.T, s adoptable) *adopted {
	t.Helper()
	a := &adopted{dir: t.TempDir(), places: map[string]string{}}
	a.env = append(os.Environ(), "PATH="+a.dir+":"+os.Getenv("PATH"))
	dbs := sharding.DBs{"east": s.Open(t, "shop_east"), "west": s.Open(t, "shop_west")}
	for variable, name := range map[string]string{"EAST": "shop_east", "WEST": "shop_west"} {
		cfg, err := mysql.ParseDSN(s.DSN(name))
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(cfg.Addr)
		if err != nil {
			t.Fatal(err)
		}
		options := filepath.Join(a.dir, name+".cnf")
		if err := os.WriteFile(options, fmt.Appendf(nil, "[client]\nprotocol=tcp\nskip-ssl\nhost=%s\nport=%s\nuser=%s\npassword=%s\n", host, port, cfg.User, cfg.Passwd), 0o600); err != nil {
			t.Fatal(err)
		}
		a.env = append(a.env, "SHOP_"+variable+"="+s.DSN(name), variable+"_CNF="+options)
	}
	layout, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%02d")
	if err != nil {
		t.Fatal(err)
	}
	if a.r, err = sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: layout}); err != nil {
		t.Fatal(err)
	}
	for _, db := range dbs {
		database.Exec(t, db, "CREATE TABLE regions (id bigint PRIMARY KEY)")
		database.Exec(t, db, "INSERT INTO regions VALUES (1), (2)")
	}
	for _, at := range a.r.Targets("orders") {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id bigint PRIMARY KEY, user_id bigint NOT NULL)")
	}
	if err := os.WriteFile(filepath.Join(a.dir, "shards.json"), []byte(pageBlocks(t, wayOut, "json")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	server.CommandIn(t, a.dir)
	return a
}

// run runs a command of the page on growing out of one process.
func (a *adopted) run(t *testing.T, line string) {
	t.Helper()
	a.ran = append(a.ran, line)
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
	cmd.Dir, cmd.Env = a.dir, a.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// findPlaces reads where the export puts the physical tables.
func (a *adopted) findPlaces(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "out", "shards.json"))
	if err != nil {
		t.Fatal(err)
	}
	var shards []struct {
		Shard  string
		Tables map[string]string
	}
	if err := json.Unmarshal(text, &shards); err != nil {
		t.Fatal(err)
	}
	databases := map[string]string{"-40": "shop_start_40", "40-80": "shop_40_80", "80-c0": "shop_80_c0", "c0-": "shop_c0_end"}
	for _, s := range shards {
		a.places[s.Tables["orders"]] = databases[s.Shard]
	}
	if len(a.places) != 4 {
		t.Fatal(a.places)
	}
}

// table returns the table that has the rows of a key now.
func (a *adopted) table(at sharding.Target) string {
	if a.inVitess {
		return a.places[at.String()] + ".orders"
	}
	return at.Table
}

// write adds rows until ctx ends; a row that has begun is finished.
func (a *adopted) write(ctx context.Context, t *testing.T, writer int64) {
	for n := int64(0); ctx.Err() == nil; n++ {
		key := n*4 + writer
		at, err := a.r.Target("orders", key)
		if err != nil {
			t.Error(err)
			return
		}
		a.gate.RLock()
		_, err = a.r.DB(at.DB).ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)", a.table(at), key, key))
		a.gate.RUnlock()
		if err != nil {
			t.Errorf("row %d: %v", key, err)
			return
		}
		a.written[key%4].Add(1)
	}
}

func (a *adopted) total() (n int64) {
	for i := range a.written {
		n += a.written[i].Load()
	}
	return n
}

// check compares the rows of each table with those that were acknowledged.
func (a *adopted) check(t *testing.T) {
	t.Helper()
	for i, at := range a.r.Targets("orders") {
		var rows, mine int64
		if err := a.r.DB(at.DB).QueryRowContext(t.Context(), fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(user_id %% 4 = %d), 0) FROM %s", i, a.table(at))).Scan(&rows, &mine); err != nil {
			t.Fatal(err)
		}
		if want := a.written[i].Load(); rows != want || mine != want || want == 0 {
			t.Errorf("%s has %d rows, %d of its own; %d were acknowledged", a.table(at), rows, mine, want)
		}
	}
}

// move runs a verb of apply.sh while writers wait, and compares all rows afterwards.
func (a *adopted) move(t *testing.T, verb string, inVitess bool) {
	t.Helper()
	// Each writer has to have written in this layout.
	before := a.total()
	testwait.Until(t, "writers go on", func() bool { return a.total() > before+100 })
	a.gate.Lock()
	defer a.gate.Unlock()
	a.run(t, "./out/apply.sh "+verb)
	a.inVitess = inVitess
}

func TestAdoptionInPlaceUnderWritersLosesNoRowAndNeitherDoesItsUndo(t *testing.T) {
	for name, s := range map[string]adoptable{"MariaDB": server.RunMariaDB(t), "MySQL": server.RunMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			a := newAdopted(t, s)
			a.run(t, "shardid export vitess --config shards.json --dir out")
			a.findPlaces(t)
			ctx, stop := context.WithCancel(t.Context())
			var writers sync.WaitGroup
			defer writers.Wait()
			defer stop()
			for w := range int64(4) {
				writers.Go(func() { a.write(ctx, t, w) })
			}
			a.move(t, "adopt", true)
			var regions int64
			for _, db := range a.places {
				if err := a.r.DB("east").QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+db+".regions").Scan(&regions); err != nil || regions != 2 {
					t.Errorf("%s has %d regions, %v", db, regions, err)
				}
			}
			a.move(t, "undo", false)
			a.move(t, "adopt", true)
			a.move(t, "undo", false)
			before := a.total()
			testwait.Until(t, "writers go on after the undo", func() bool { return a.total() > before+100 })
			stop()
			writers.Wait()
			a.check(t)
			a.run(t, "shardid doctor --config shards.json --rows -1")
			a.run(t, "shardid export shardingsphere --config shards.json --dir shardingsphere")
			a.run(t, "shardid export citus --config shards.json --dir citus")
			for line := range strings.Lines(strings.Join(pageBlocks(t, wayOut, "sh"), "")) {
				if line = strings.TrimSpace(line); !slices.Contains(a.ran, line) {
					t.Errorf("the page says %q, which was not run", line)
				}
			}
			t.Logf("%d rows", a.total())

			database.Exec(t, a.r.DB("east"), "INSERT INTO orders_00 VALUES (-4, -4)")
			a.run(t, "if shardid export vitess --config shards.json --dir again 2>refusal; then exit 1; fi; grep 'has 1 rows whose user_id is negative (-4 is the lowest)' refusal; test ! -e again")
		})
	}
}
