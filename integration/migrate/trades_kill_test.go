// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// market has traders, runners and servers, which are killed and stopped.
type market struct {
	*migrationShop

	mode     string
	router   *sharding.Router
	resolver *twophase.Resolver
	started  int64

	mu       sync.Mutex
	outcomes map[int64]byte // + if the rows of a trade are there, - if they are not, ? if that is not known
	kinds    map[string]int
	priced   int            // committed changes of prices
	unknown  map[int64]bool // trades that may have changed prices
	wrong    []string       // what programs and runners have complained of
}

func newMarket(t *testing.T, s *migrationShop, mode string) *market {
	t.Helper()
	m := &market{migrationShop: s, mode: mode, outcomes: map[int64]byte{}, kinds: map[string]int{}, unknown: map[int64]bool{}}
	s.fill(t, 500)
	database.Exec(t, s.source, "UPDATE orders SET total = 0")
	database.Exec(t, s.source, "CREATE TABLE journal (number BIGINT NOT NULL PRIMARY KEY)")
	for _, db := range []*sql.DB{s.source, s.shards["a"], s.shards["b"]} {
		database.Exec(t, db, "CREATE TABLE prices (id BIGINT NOT NULL PRIMARY KEY, changes BIGINT NOT NULL)")
		database.Exec(t, db, "INSERT INTO prices VALUES (1, 0)")
	}
	var err error
	if m.router, err = tradeRouter(s, sharding.Atomic); err != nil {
		t.Fatal(err)
	}
	for _, at := range m.ledger(t) {
		database.Exec(t, s.shards[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL)")
	}
	if err := schema.Apply(t.Context(), s.source); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), s.source, "orders", tradedFirst, 50); err != nil {
		t.Fatal(err)
	}
	if err := twophase.Create(t.Context(), m.router, nil); err != nil {
		t.Fatal(err)
	}
	m.resolver, err = twophase.New(twophase.Config{Router: m.router, After: 200 * time.Millisecond, Every: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *market) ledger(t *testing.T) []sharding.Target {
	t.Helper()
	table, is := m.router.Table("ledger")
	if !is {
		t.Fatal("there is no ledger")
	}
	return table.Map.Targets()
}

// participant is a process, and what starts another one.
type participant struct {
	cmd   *exec.Cmd
	ended chan struct{}
	again func() *participant
}

func (p *participant) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (m *market) start(t *testing.T, env string, again func() *participant) *participant {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &participant{cmd, make(chan struct{}), again}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m.hear(lines.Text())
		}
		_ = cmd.Wait() // it was killed
	}()
	return p
}

func (m *market) dsns() string {
	return m.servers[0].DSN("shop") + " " + m.servers[0].DSN("shop_a") + " " + m.servers[1].DSN("shop_b")
}

func (m *market) trader(t *testing.T) *participant {
	t.Helper()
	m.started++
	return m.start(t, fmt.Sprintf("%s=%s %s %d", traderVar, m.dsns(), m.mode, m.started*tradedFirst), func() *participant { return m.trader(t) })
}

func (m *market) runner(t *testing.T) *participant {
	t.Helper()
	return m.start(t, runnerVar+"="+m.dsns(), func() *participant { return m.runner(t) })
}

// hear notes a line of a participant.
func (m *market) hear(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var outcome byte
	var kind string
	var number int64
	switch n, _ := fmt.Sscanf(line, "%c %s %d", &outcome, &kind, &number); {
	case strings.HasPrefix(line, "! "):
		m.wrong = append(m.wrong, line)
		return
	case n < 3: // a step, or it was killed in the midst of the line
		return
	}
	m.kinds[kind+" "+string(outcome)]++
	isPriced := kind == "priced"
	switch {
	case outcome == 'b':
		outcome, m.unknown[number] = '?', isPriced
	case kind == "deleted" && outcome != '?':
		outcome = map[byte]byte{'+': '-', '-': '+'}[outcome]
	case isPriced && outcome != '?':
		delete(m.unknown, number)
		m.priced += map[byte]int{'+': 1}[outcome]
	}
	m.outcomes[number] = outcome
}

// disturb kills or stops something.
func (m *market) disturb(t *testing.T, all []*participant) {
	t.Helper()
	time.Sleep(rand.N(2 * time.Second)) // they trade meanwhile
	i := rand.IntN(len(all))
	switch rand.IntN(5) {
	case 0, 1:
		all[i].kill()
		all[i] = all[i].again()
	case 2:
		_ = all[i].cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(rand.N(3 * time.Second))
		_ = all[i].cmd.Process.Signal(syscall.SIGCONT)
	case 3:
		restarts(t, m.servers[i%2])
	case 4:
		all[i].kill()
		restarts(t, m.servers[rand.IntN(2)])
		all[i] = all[i].again()
	}
}

// close brings the job behind a switch beside the traders, and ends everything.
func (m *market) close(t *testing.T, all []*participant) {
	t.Helper()
	for _, p := range all[2:] {
		p.kill() // the runners
	}
	j := m.job(t, "id")
	again(t, "switch", func() error {
		if err := j.Run(t.Context()); err != nil {
			return err
		}
		_, err := j.Cutover(t.Context(), longPause)
		return err
	})
	for _, p := range all[:2] {
		p.kill()
	}
	again(t, "resolve", func() error {
		did, err := m.resolver.Resolve(t.Context())
		if err == nil && did.InDoubt > 0 {
			err = fmt.Errorf("%+v", did)
		}
		return err
	})
	again(t, "follow", func() error { return j.Run(t.Context()) })
	if v, err := j.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
	m.compare(t, "id", "orders_old", "")
	again(t, "rollback", func() error { _, err := j.Rollback(t.Context(), longPause); return err })
	m.compare(t, "id", "orders", "_sealed")
}

// numbersIn are the ids and numbers of trades, in the order of the numbers.
func numbersIn(t *testing.T, db *sql.DB, query string) (all []made) {
	t.Helper()
	for _, text := range database.Texts(t, db, query) {
		var row made
		if _, err := fmt.Sscan(text, &row.id, &row.number); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, row)
	}
	return all
}

// audit compares what is there with what the programs have said.
func (m *market) audit(t *testing.T) {
	t.Helper()
	entered := map[made]bool{}
	found := map[int64][3]int{} // in orders, in the ledger, in the journal
	note := func(all []made, at int) {
		for _, row := range all {
			n := found[row.number]
			n[at]++
			found[row.number] = n
		}
	}
	for _, at := range m.ledger(t) {
		rows := numbersIn(t, m.shards[at.DB], "SELECT CONCAT(id, ' ', number) FROM "+at.Table)
		note(rows, 1)
		for _, row := range rows {
			entered[row] = true
		}
	}
	orders := numbersIn(t, m.source, "SELECT CONCAT(id, ' ', SUBSTR(code, 2)) FROM orders WHERE code LIKE 't%'")
	note(orders, 0)
	note(numbersIn(t, m.source, "SELECT CONCAT(0, ' ', number) FROM journal"), 2)
	isAtomic := m.mode == "Atomic"
	for number, outcome := range m.outcomes {
		is := found[number]
		delete(found, number)
		if is != [3]int{1, 1, 1} && (is != [3]int{} || outcome == '+') && (isAtomic || outcome != '?') || is == [3]int{1, 1, 1} && outcome == '-' {
			t.Errorf("trade %d, of which the program said %c, is %d times in orders, the ledger and the journal", number, outcome, is)
		}
	}
	if len(found) > 0 {
		t.Errorf("%d trades are there which nobody began", len(found))
	}
	if !isAtomic {
		return
	}
	if i := slices.IndexFunc(orders, func(row made) bool { return !entered[row] }); i >= 0 {
		t.Errorf("the ledger has another id than orders has for trade %d", orders[i].number)
	}
	if sum := database.MustNumber(t, m.source, "SELECT CAST(SUM(total) AS "+m.speaks.integer+") FROM orders"); sum != 0 {
		t.Errorf("the sum of all accounts is %d", sum)
	}
	for _, db := range []*sql.DB{m.source, m.shards["a"], m.shards["b"]} {
		n := int(database.MustNumber(t, db, "SELECT changes FROM prices"))
		if n < m.priced || n > m.priced+len(m.unknown) || n != int(database.MustNumber(t, m.source, "SELECT changes FROM prices")) {
			t.Errorf("a copy has %d changes of prices; %d are committed, and %d unknown", n, m.priced, len(m.unknown))
		}
	}
}

// Programs write to a table that is being migrated and to others in the same transactions, while they, the runners and
// the servers are killed.
func TestNoTradeIsThereByHalfAfterMigrationsAndKills(t *testing.T) {
	if words := os.Getenv(traderVar); words != "" {
		tradeForEver(t, strings.Fields(words))
	}
	if dsns := os.Getenv(runnerVar); dsns != "" {
		runBesideTrades(t, strings.Fields(dsns))
	}
	test := func(t *testing.T, s *migrationShop, mode string) {
		t.Helper()
		m := newMarket(t, s, mode)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { m.resolver.Run(ctx) })
		defer func() { cancel(); wg.Wait() }()
		all := []*participant{m.trader(t), m.trader(t), m.runner(t), m.runner(t)}
		for range effort.Cases(3, 100) {
			m.disturb(t, all)
		}
		m.close(t, all)
		m.audit(t)
		t.Logf("%v", m.kinds)
		for _, line := range m.wrong {
			t.Error(line)
		}
	}
	modes := []string{"Atomic"}
	if effort.Soak() {
		modes = append(modes, "BestEffort")
	}
	for _, mode := range modes {
		onShopServers(t, func(t *testing.T, s *migrationShop) { test(t, s, mode) })
		t.Run("PostgreSQL", func(t *testing.T) {
			t.Parallel()
			test(t, newMigrationShop(t, server.RunPostgres(t, "max_prepared_transactions=100"), server.RunPostgres(t, "max_prepared_transactions=100")), mode)
		})
	}
}
