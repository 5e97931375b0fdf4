// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// office is where invoices with their lines are kept: the closure of Chinook's
// Invoice and InvoiceLine, by customer.
type office struct {
	source *sql.DB
	shards sharding.DBs
	tables []migrate.Table

	isPostgres bool // where names are written otherwise

	nextID atomic.Int64  // of invoices and lines that workers make
	pace   atomic.Int64  // of a worker, in nanoseconds: or it would write all that the servers can take
	wrote  chan struct{} // somebody listens, now and then
}

// invoice is the expected content of an invoice.
type invoice struct {
	customer, total int64
	lines           map[int64]int64 // quantities
}

func openOffice(t *testing.T, one, two database.DSNOpener) *office {
	t.Helper()
	o := &office{shards: sharding.DBs{"a": one.Open(t, "office_a"), "b": two.Open(t, "office_b")}, isPostgres: isPostgres(one), wrote: make(chan struct{})}
	o.nextID.Store(1_000_000)
	o.pace.Store(int64(max(2*time.Millisecond, writersRest())))
	script, name := database.Chinook, "Chinook_AutoIncrement"
	if o.isPostgres {
		script, name = database.ChinookPostgres, "chinook_serial"
	}
	_, missing := os.Stat(script)
	if missing == nil && !o.isPostgres {
		database.RunScript(t, one.DSN(""), script) // which makes the database anew
	}
	o.source = one.Open(t, name)
	switch {
	case missing != nil:
		o.likeChinook(t)
	case o.isPostgres:
		database.RunPostgresScript(t, o.source, script)
	}
	for _, table := range []migrate.Table{{Table: sharding.Table{Name: "Invoice"}}, {Table: sharding.Table{Name: "InvoiceLine"}, Via: "InvoiceId"}} {
		table.Name, table.Via = o.says(table.Name), o.says(table.Via)
		m, err := sharding.Spread([]string{"a", "b"}, 4, table.Name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		table.Key, table.Rule, table.Map = o.says("CustomerId"), sharding.Low(2), m
		o.tables = append(o.tables, table)
	}
	return o
}

// says writes a statement as the edition for PostgreSQL has the names.
func (o *office) says(text string) string {
	if !o.isPostgres {
		return text
	}
	text = strings.NewReplacer("AS SIGNED", "AS BIGINT", "INT NOT NULL AUTO_INCREMENT", "SERIAL NOT NULL", "DATETIME", "TIMESTAMP",
		"FROM seq_1_to_412", "FROM generate_series(1, 412) seq", "FROM seq_1_to_2240", "FROM generate_series(1, 2240) seq").Replace(text)
	return strings.ToLower(capital.ReplaceAllString(text, "${1}_$2"))
}

// capital matches a capital letter that begins a further word of a name.
var capital = regexp.MustCompile("([a-z])([A-Z])")

// likeChinook makes the same tables with other rows.
func (o *office) likeChinook(t *testing.T) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE Customer (CustomerId INT NOT NULL AUTO_INCREMENT PRIMARY KEY, Email VARCHAR(60) NOT NULL)",
		"CREATE TABLE Track (TrackId INT NOT NULL AUTO_INCREMENT PRIMARY KEY, Name VARCHAR(200) NOT NULL)",
		`CREATE TABLE Invoice (InvoiceId INT NOT NULL AUTO_INCREMENT PRIMARY KEY, CustomerId INT NOT NULL, InvoiceDate DATETIME NOT NULL,
			BillingAddress VARCHAR(70), BillingCity VARCHAR(40), BillingState VARCHAR(40), BillingCountry VARCHAR(40), BillingPostalCode VARCHAR(10), Total NUMERIC(10,2) NOT NULL,
			CONSTRAINT FK_InvoiceCustomerId FOREIGN KEY (CustomerId) REFERENCES Customer (CustomerId))`,
		`CREATE TABLE InvoiceLine (InvoiceLineId INT NOT NULL AUTO_INCREMENT PRIMARY KEY, InvoiceId INT NOT NULL, TrackId INT NOT NULL, UnitPrice NUMERIC(10,2) NOT NULL, Quantity INT NOT NULL,
			CONSTRAINT FK_InvoiceLineInvoiceId FOREIGN KEY (InvoiceId) REFERENCES Invoice (InvoiceId),
			CONSTRAINT FK_InvoiceLineTrackId FOREIGN KEY (TrackId) REFERENCES Track (TrackId))`,
		"INSERT INTO Customer (Email) VALUES ('0@example.com')" + series(", ('%d@example.com')", 58),
		"INSERT INTO Track (Name) VALUES ('zero')" + series(", ('track %d')", 99),
		"INSERT INTO Invoice (CustomerId, InvoiceDate, Total) SELECT 1 + seq % 59, '2024-02-29', 5 FROM seq_1_to_412",
		"INSERT INTO InvoiceLine (InvoiceId, TrackId, UnitPrice, Quantity) SELECT 1 + seq % 412, 1 + seq % 99, 0.99, 1 FROM seq_1_to_2240",
	} {
		database.Exec(t, o.source, o.says(text))
	}
}

func series(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// read adds what a pair of tables holds to all.
func (o *office) read(t *testing.T, db *sql.DB, suffix string, all map[int64]*invoice) {
	t.Helper()
	for _, line := range database.Texts(t, db, o.says("SELECT CONCAT_WS(' ', InvoiceId, CustomerId, CAST(Total * 100 AS SIGNED)) FROM Invoice"+suffix)) {
		var id int64
		i := &invoice{lines: map[int64]int64{}}
		if _, err := fmt.Sscan(line, &id, &i.customer, &i.total); err != nil {
			t.Fatal(err)
		}
		if all[id] != nil {
			t.Errorf("invoice %d is there twice", id)
		}
		all[id] = i
	}
	for _, line := range database.Texts(t, db, o.says("SELECT CONCAT_WS(' ', InvoiceLineId, InvoiceId, Quantity) FROM InvoiceLine"+suffix)) {
		var id, of, quantity int64
		if _, err := fmt.Sscan(line, &id, &of, &quantity); err != nil {
			t.Fatal(err)
		}
		if all[of] == nil {
			t.Errorf("line %d is not where its invoice %d is", id, of)
			continue
		}
		all[of].lines[id] = quantity
	}
}

// worker writes invoices that no other worker writes, on the serving side, and
// stores their expected content.
type worker struct {
	*office

	random *rand.Rand
	own    map[int64]*invoice
	writes int
}

// work writes until ctx ends.
func (c *worker) work(ctx context.Context) {
	pace := time.NewTicker(time.Duration(c.pace.Load()))
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		pace.Reset(time.Duration(c.pace.Load()))
		switch c.random.IntN(5) {
		case 0, 1:
			c.sell(ctx)
		case 2:
			c.correct(ctx)
		case 3:
			c.cancel(ctx)
		case 4:
			c.transfer(ctx)
		}
		c.writes++
		select {
		case c.wrote <- struct{}{}:
		default:
		}
	}
}

func (c *worker) sell(ctx context.Context) {
	id := c.nextID.Add(1)
	i := &invoice{customer: int64(c.random.IntN(59) + 1), total: int64(c.random.IntN(10_000)), lines: map[int64]int64{}}
	statements := []string{fmt.Sprintf("INSERT INTO {I} (InvoiceId, CustomerId, InvoiceDate, BillingCity, Total) VALUES (%d, %d, NOW(), 'Århus', %d / 100.0)", id, i.customer, i.total)}
	for range c.random.IntN(4) + 1 {
		line := c.nextID.Add(1)
		i.lines[line] = int64(c.random.IntN(9) + 1)
		statements = append(statements, fmt.Sprintf("INSERT INTO {L} VALUES (%d, %d, %d, 0.99, %d)", line, id, c.random.IntN(99)+1, i.lines[line]))
	}
	if c.write(ctx, i.customer, statements) {
		c.own[id] = i
	}
}

// any returns one of the worker's invoices.
func (c *worker) any() (id int64, i *invoice) {
	n := c.random.IntN(len(c.own))
	for id, i = range c.own {
		if n--; n < 0 {
			break
		}
	}
	return id, i
}

func (c *worker) correct(ctx context.Context) {
	id, i := c.any()
	total, quantity := int64(c.random.IntN(10_000)), int64(c.random.IntN(9)+1)
	if c.write(ctx, i.customer, []string{
		fmt.Sprintf("UPDATE {I} SET Total = %d / 100.0 WHERE InvoiceId = %d", total, id),
		fmt.Sprintf("UPDATE {L} SET Quantity = %d WHERE InvoiceId = %d", quantity, id),
	}) {
		i.total = total
		for line := range i.lines {
			i.lines[line] = quantity
		}
	}
}

func (c *worker) cancel(ctx context.Context) {
	id, i := c.any()
	if c.write(ctx, i.customer, []string{fmt.Sprintf("DELETE FROM {L} WHERE InvoiceId = %d", id), fmt.Sprintf("DELETE FROM {I} WHERE InvoiceId = %d", id)}) {
		delete(c.own, id)
	}
}

// transfer gives an invoice to another customer of the same slot: on shards, the
// application would have to move any other by itself.
func (c *worker) transfer(ctx context.Context) {
	id, i := c.any()
	customer := i.customer%4 + 4*int64(1+c.random.IntN(13))
	if c.write(ctx, i.customer, []string{fmt.Sprintf("UPDATE {I} SET CustomerId = %d WHERE InvoiceId = %d", customer, id)}) {
		i.customer = customer
	}
}

// write makes the transaction on the source or, when its tables are gone, on the
// shard; false when it was not made.
func (c *worker) write(ctx context.Context, customer int64, statements []string) bool {
	at, err := c.tables[0].Target(customer)
	if err != nil {
		return false
	}
	_, slot, _ := strings.Cut(at.Table, "_")
	for onShard := false; ctx.Err() == nil; {
		db, suffix := c.source, ""
		if onShard {
			db, suffix = c.shards[at.DB], "_"+slot
		}
		names := strings.NewReplacer("{I}", "Invoice"+suffix, "{L}", "InvoiceLine"+suffix)
		err := inTransaction(db, func(text string) string { return c.says(names.Replace(text)) }, statements)
		if err == nil {
			return true
		}
		if isNoTable(err) {
			onShard = !onShard
		}
	}
	return false
}

// isNoTable reports whether the error says that a table does not exist.
func isNoTable(err error) bool {
	closed := (*mysql.MySQLError)(nil)
	return errors.As(err, &closed) && closed.Number == 1146 || strings.Contains(err.Error(), "SQLSTATE 42P01")
}

func inTransaction(db *sql.DB, says func(string) string, statements []string) error {
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	for _, text := range statements {
		if _, err := tx.ExecContext(context.Background(), says(text)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// workers write until stop is called, which returns the expected invoices.
func (o *office) workers(t *testing.T, n int) (stop func() map[int64]*invoice) {
	t.Helper()
	all := make([]*worker, n)
	for i := range all {
		all[i] = &worker{o, rand.New(rand.NewPCG(uint64(i), 6)), map[int64]*invoice{}, 0}
	}
	there := map[int64]*invoice{}
	o.read(t, o.source, "", there)
	for id, i := range there {
		all[int(id)%n].own[id] = i
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() { c.work(ctx) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return func() map[int64]*invoice {
		cancel()
		wg.Wait()
		union, writes := map[int64]*invoice{}, 0
		for _, c := range all {
			maps.Copy(union, c.own)
			writes += c.writes
		}
		t.Logf("%d invoices at first, %d transactions, %d invoices now", len(there), writes, len(union))
		return union
	}
}

// account fails unless the shards have exactly these invoices, each on
// its shard.
func (o *office) account(t *testing.T, want map[int64]*invoice) {
	t.Helper()
	got := map[int64]*invoice{}
	for _, at := range o.tables[0].Map.Targets() {
		here := map[int64]*invoice{}
		o.read(t, o.shards[at.DB], at.Table[strings.LastIndex(at.Table, "_"):], here)
		for id, i := range here {
			if to, err := o.tables[0].Target(i.customer); err != nil || to != at {
				t.Errorf("invoice %d of customer %d is on %s, not %s (%v)", id, i.customer, at, to, err)
			}
			if got[id] != nil {
				t.Errorf("invoice %d is on two shards", id)
			}
			got[id] = i
		}
	}
	for id, i := range want {
		if g := got[id]; g == nil || g.customer != i.customer || g.total != i.total || !maps.Equal(g.lines, i.lines) {
			t.Errorf("invoice %d is %+v, not %+v", id, g, i)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d invoices, not %d", len(got), len(want))
	}
}

func TestEveryInvoiceIsAccountedForAfterThereAndBackAndThere(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) { thereAndBackAndThere(t, openOffice(t, server.RunMariaDB(t), server.RunMariaDB(t))) })
	t.Run("PostgreSQL", func(t *testing.T) {
		thereAndBackAndThere(t, openOffice(t, server.RunPostgres(t), server.RunPostgres(t)))
	})
}

func thereAndBackAndThere(t *testing.T, o *office) {
	t.Helper()
	j, err := migrate.New(migrate.Config{Source: o.source, Shards: o.shards, Tables: o.tables, ChunkRows: 100})
	if err != nil {
		t.Fatal(err)
	}
	stop := o.workers(t, 2)
	do := func(what string, f func() error) {
		if err := f(); err != nil {
			stop()
			t.Fatalf("%s: %v", what, err)
		}
	}
	run := func() error { return j.Run(t.Context()) }
	// On a machine that is busy workers may be faster than their changes are followed.
	change := func(what string, do func(context.Context, time.Duration) (migrate.Switch, error)) func() error {
		return func() error {
			done, err := do(t.Context(), longPause)
			for errors.Is(err, migrate.ErrNotReady) && strings.Contains(err.Error(), "changes arrive faster") && o.pace.Load() < int64(time.Minute) {
				o.pace.Store(2 * o.pace.Load())
				t.Logf("%s: workers rest for %s", what, time.Duration(o.pace.Load()))
				done, err = do(t.Context(), longPause)
			}
			t.Logf("%s: writers waited %s, %d changes drained", what, done.Pause, done.Drained)
			return err
		}
	}
	cutover, rollback := change("cutover", j.Cutover), change("rollback", j.Rollback)
	verify := func() error { // beside a runner
		ctx, stopFollowing := context.WithCancel(t.Context())
		following := make(chan error, 1)
		go func() { following <- j.Follow(ctx) }()
		v, err := j.Verify(t.Context())
		stopFollowing()
		err = errors.Join(err, <-following)
		t.Logf("%d rows compared, %d were under way", v.Rows, v.Unsettled)
		if err == nil && v.Requeued > 0 {
			err = fmt.Errorf("%v", v.Divergences)
		}
		return err
	}
	written := func() error { // so many transactions where the tables are now
		for range 50 {
			<-o.wrote
		}
		return nil
	}
	for i, step := range []func() error{written, run, verify, cutover, written, verify, rollback, written, run, verify, cutover, written} {
		do(fmt.Sprint("step ", i), step)
	}
	want := stop()
	do("finalize", func() error { return j.Finalize(t.Context()) })
	o.account(t, want)
}
