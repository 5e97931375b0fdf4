// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/ticket"
)

const tickets64 = "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE) ENGINE=InnoDB"

// replaceTicket is the statement of other clients of a ticket server.
const replaceTicket = "REPLACE INTO Tickets64 (stub) VALUES ('a')"

// ticketServer is a MariaDB server that counts offset, offset+increment, ….
func ticketServer(t *testing.T, offset, increment int64) *server.MariaDB {
	t.Helper()
	m := server.RunMariaDB(t, fmt.Sprintf("--auto-increment-offset=%d", offset), fmt.Sprintf("--auto-increment-increment=%d", increment))
	database.Exec(t, m.Open(t, "tickets"), tickets64)
	return m
}

func ticketTable(t *testing.T, m *server.MariaDB, offset, increment, from int64) *ticket.Table {
	t.Helper()
	table, err := ticket.NewTable(ticket.TableConfig{
		DB:        m.Open(t, "tickets"),
		Numbering: ticket.Numbering{Offset: offset, Increment: increment},
		From:      from,
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ticketServers are n servers whose numbers do not overlap.
func ticketServers(t *testing.T, n int64) (family []*server.MariaDB, tables []ticket.Server) {
	t.Helper()
	for offset := int64(1); offset <= n; offset++ {
		m := ticketServer(t, offset, n)
		family = append(family, m)
		tables = append(tables, ticketTable(t, m, offset, n, 0))
	}
	return family, tables
}

func openTickets(t *testing.T, cfg ticket.Config) *ticket.Generator {
	t.Helper()
	g, err := ticket.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// someIDs draws ids. A generator's own patience, of seconds, is not enough on a busy
// machine.
func someIDs(t *testing.T, g keygen.Generator[int64], n int) []int64 {
	t.Helper()
	ctx := testwait.Context(t)
	ids := make([]int64, n)
	for {
		err := keygen.Fill(ctx, g, ids)
		if err == nil {
			return ids
		}
		if !errors.Is(err, keygen.ErrStarved) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// patientSource asks again where a generator would ask another server: when a lock
// was not to be had within two seconds.
type patientSource struct{ keygen.Source }

func (p patientSource) Reserve(ctx context.Context, n int64) (span keygen.Span, err error) {
	for err = errors.New("not asked"); err != nil; {
		if span, err = p.Source.Reserve(ctx, n); err != nil && !dialect.Contended(err) {
			return span, err
		}
	}
	return span, nil
}

func TestTicketsKeepTheContract(t *testing.T) {
	m := ticketServer(t, 2, 3)
	open := func(t *testing.T) keygen.Source { return patientSource{ticketTable(t, m, 2, 3, 0)} }
	t.Run("source", func(t *testing.T) { keygentest.Source(t, open) })
	t.Run("generator", func(t *testing.T) { // of one server, as several promise no order
		table := ticketTable(t, m, 2, 3, 0)
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
			return openTickets(t, ticket.Config{Servers: []ticket.Server{table}, Step: 5000})
		})
	})
}

func TestTicketServersTakeTurns(t *testing.T) {
	_, tables := ticketServers(t, 3)
	for _, step := range []int64{1, 2, 100, 0} {
		t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
			g := openTickets(t, ticket.Config{Servers: tables, Step: step})
			ids := someIDs(t, g, 300)
			share := map[int64]int{}
			for _, id := range ids {
				share[id%3]++
			}
			if step != 1 && step != 2 && (share[0] != 100 || share[1] != 100 || share[2] != 100) {
				t.Errorf("the servers gave %v", share)
			}
			if id, twice := keygentest.Duplicate(ids); twice || len(share) != 3 {
				t.Errorf("%d came twice; the servers gave %v", id, share)
			}
		})
	}
}

// One ticket is one statement once the table was looked at and the session is set, a
// span five.
func TestATicketCostsOneStatement(t *testing.T) {
	m := ticketServer(t, 1, 2)
	db := m.Open(t, "tickets")
	db.SetMaxOpenConns(1) // so that the session's own counters see every statement
	table, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: ticket.Numbering{Offset: 1, Increment: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Reserve(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]int64{1: 1, 1000: 5} {
		before := questions(t, db)
		if _, err := table.Reserve(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if sent := questions(t, db) - before - 1; sent != want { // 1 is the asking
			t.Errorf("%d tickets cost %d statements", n, sent)
		}
	}
}

func TestSpansAndEverybodyElsesSingleTicketsNeverShareAnID(t *testing.T) {
	m := ticketServer(t, 2, 2)
	var mu sync.Mutex
	var ids []int64
	add := func(more ...int64) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, more...)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		table, others := ticketTable(t, m, 2, 2, 0), m.Open(t, "tickets")
		wg.Go(func() {
			for range 150 {
				span, err := table.Reserve(t.Context(), int64(1+i*7))
				if err != nil {
					t.Error(err)
					return
				}
				for k := range span.Count {
					add(span.First + k*span.Step)
				}
			}
		})
		wg.Go(func() {
			for range 300 {
				res, err := others.ExecContext(t.Context(), replaceTicket)
				for dialect.Contended(err) { // so it is among themselves, too
					res, err = others.ExecContext(t.Context(), replaceTicket)
				}
				if err != nil {
					t.Error(err)
					return
				}
				id, _ := res.LastInsertId() // MariaDB always has one
				add(id)
			}
		})
	}
	wg.Wait()
	if id, twice := keygentest.Duplicate(ids); twice || ids[0] != 2 || len(ids) < 4*300 {
		t.Errorf("%d came twice, of %d ids from %d on", id, len(ids), ids[0])
	}
	if slices.ContainsFunc(ids, func(id int64) bool { return id%2 != 0 }) {
		t.Error("some ids are of the other server")
	}
}

func TestASpanOutlivesAKilledServer(t *testing.T) {
	m := ticketServer(t, 1, 2)
	table := ticketTable(t, m, 1, 2, 0)
	span, err := table.Reserve(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	m.Kill()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := m.Open(t, "tickets").ExecContext(t.Context(), replaceTicket)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id <= span.Last() {
		t.Errorf("%d, %v after a span up to %d", id, err, span.Last())
	}
}

func TestATicketServerThatCountsOtherwiseIsRefused(t *testing.T) {
	good, bad := ticketServer(t, 1, 2), ticketServer(t, 1, 1)
	tables := []ticket.Server{ticketTable(t, good, 1, 2, 0), ticketTable(t, bad, 2, 2, 0)}
	var wrong *ticket.NumberingError
	_, err := ticket.New(t.Context(), ticket.Config{Servers: tables})
	if !errors.As(err, &wrong) || wrong.Got != (ticket.Numbering{Offset: 1, Increment: 1}) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)

	// Corrected, it is taken, on the sessions there are already.
	database.Exec(t, bad.Open(t, "tickets"), "SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 2")
	g := openTickets(t, ticket.Config{Servers: tables, Step: 1})
	someIDs(t, g, 20)

	// Set wrong while in use, it is out of service and the other one goes on.
	database.Exec(t, bad.Open(t, "tickets"), "SET GLOBAL auto_increment_increment = 3")
	for range 100 {
		if ids := someIDs(t, g, 1); g.Stats().LastError != nil && ids[0]%2 == 0 && g.Stats().Remaining == 0 {
			t.Fatalf("got %d", ids[0])
		}
	}
	if err := g.Stats().LastError; !errors.As(err, &wrong) || !strings.Contains(err.Error(), "server 2 of 2") {
		t.Errorf("the stats say %v", err)
	}
}

func TestATicketServerWithoutTheTableSaysSo(t *testing.T) {
	m := server.RunMariaDB(t)
	_, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{ticketTable(t, m, 1, 1, 0)}})
	if !errors.Is(err, keygen.ErrUnknownTag) {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}

// drawing draws ids in the background until stop is called, which returns them.
func drawing(t *testing.T, g keygen.Generator[int64]) (stop func() []int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	results := make([][]int64, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			for ctx.Err() == nil {
				id, err := g.Next(ctx)
				if err == nil {
					results[i] = append(results[i], id)
				} else if ctx.Err() == nil && !errors.Is(err, keygen.ErrStarved) { // a busy machine starves it
					t.Error(err)
					return
				}
			}
		})
	}
	return func() []int64 {
		cancel()
		wg.Wait()
		return slices.Concat(results...)
	}
}

// issuedBy tells whether, from now on, the server with the offset gives ids.
func issuedBy(t *testing.T, db *sql.DB, what string) {
	t.Helper()
	const last = "SELECT COALESCE(MAX(id), 0) FROM Tickets64"
	first := int64(-1)
	testwait.Until(t, what, func() bool {
		n, err := database.Number(t.Context(), db, last)
		if err == nil && first < 0 {
			first = n
		}
		return err == nil && n > first
	})
}

func TestAKilledTicketServerIsPassedOverAndComesBack(t *testing.T) {
	for _, step := range []int64{1, 20} {
		t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
			family, tables := ticketServers(t, 3)
			g := openTickets(t, ticket.Config{Servers: tables, Step: step})
			stop := drawing(t, g)
			for i, m := range family {
				m.Kill()
				testwait.Until(t, "the failure shows", func() bool { return g.Stats().LastError != nil })
				issuedBy(t, family[(i+1)%3].Open(t, "tickets"), "the others go on")
				if err := m.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				issuedBy(t, m.Open(t, "tickets"), "the server is back")
				testwait.Until(t, "the failure is over", func() bool { return g.Stats().LastError == nil })
			}
			ids := stop()
			t.Logf("%d ids over 3 kills", len(ids))
			if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
				t.Errorf("%d came twice, of %d", id, len(ids))
			}
		})
	}
}

func TestTicketsBeginWithoutAServerThatIsDownAndTakeItInLater(t *testing.T) {
	family, tables := ticketServers(t, 2)
	family[0].Kill()
	g := openTickets(t, ticket.Config{Servers: tables, Step: 10})
	if ids := someIDs(t, g, 50); slices.ContainsFunc(ids, func(id int64) bool { return id%2 == 1 }) {
		t.Errorf("a killed server gave some of %v", ids)
	}
	if err := family[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "ids of the server that is back", func() bool { return someIDs(t, g, 1)[0]%2 == 1 })
}

func TestTicketsFailInTimeWhenAllServersAreDown(t *testing.T) {
	family, tables := ticketServers(t, 2)
	g := openTickets(t, ticket.Config{Servers: tables, Step: 1})
	for _, m := range family {
		m.Kill()
	}
	for g.Stats().Remaining > 0 {
		someIDs(t, g, 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := g.Next(ctx)
	if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "server 2 of 2") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}

// set changes how a server counts, for all sessions to come.
func set(t *testing.T, m *server.MariaDB, offset, increment int64) {
	t.Helper()
	database.Exec(t, m.Open(t, "tickets"), fmt.Sprintf("SET GLOBAL auto_increment_increment = %d, GLOBAL auto_increment_offset = %d", increment, offset))
}

func standing(t *testing.T, tables []ticket.Server) []ticket.Live {
	t.Helper()
	live := make([]ticket.Live, 0, len(tables))
	for _, s := range tables {
		l, err := s.(*ticket.Table).Live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, l)
	}
	return live
}

func TestOneTicketServerGrowsToTwoAndFourWithoutADuplicate(t *testing.T) {
	family, tables := ticketServers(t, 1)
	var ids []int64
	draw := func() {
		g := openTickets(t, ticket.Config{Servers: tables, Step: 5})
		ids = append(ids, someIDs(t, g, 200)...)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int64{2, 4} {
		draw()
		plan, err := ticket.PlanExpansion(standing(t, tables), size, 2000)
		if err != nil {
			t.Fatal(err)
		}
		draw() // between the plan and the change
		if err := plan.Armed(standing(t, tables)); !errors.Is(err, ticket.ErrUnarmed) {
			t.Errorf("an unchanged server is no obstacle: %v", err)
		}
		for i, m := range family {
			set(t, m, int64(i+1), size)
		}
		var wrong *ticket.NumberingError
		if _, err := tables[0].Reserve(t.Context(), 1); !errors.As(err, &wrong) {
			t.Errorf("a process that counts as before is not refused: %v", err)
		}
		if err := plan.Armed(standing(t, tables)); err != nil {
			t.Fatal(err)
		}
		for i := range tables {
			tables[i] = ticketTable(t, family[i], int64(i+1), size, 0)
		}
		draw() // before the new servers begin
		for _, s := range plan.Added() {
			m := ticketServer(t, s.Numbering.Offset, s.Numbering.Increment)
			table := ticketTable(t, m, s.Numbering.Offset, s.Numbering.Increment, plan.From)
			if span, err := table.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
				t.Errorf("a new server begins below the boundary: %+v, %v", span, err)
			}
			database.Exec(t, m.Open(t, "tickets"), fmt.Sprintf("ALTER TABLE Tickets64 AUTO_INCREMENT = %d", s.AutoIncrement))
			if span, err := table.Reserve(t.Context(), 1); err != nil || span.First != s.AutoIncrement {
				t.Errorf("%+v, %v; planned was %+v", span, err, s)
			}
			family, tables = append(family, m), append(tables, table)
		}
	}
	draw()
	draw()
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) != 8*200 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}
