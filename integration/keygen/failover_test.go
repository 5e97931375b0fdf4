// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

// pair is a primary and its replica behind one address, as applications see
// them.
type pair struct {
	primary, replica     *server.MariaDB
	onPrimary, onReplica *sql.DB
	active               atomic.Pointer[server.MariaDB]
}

// newPair starts both and asynchronous replication between them; the replica then
// has shardid's tables and the tag orders.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		primary: server.RunMariaDB(t, "--server-id=1", "--log-bin", "--binlog-format=ROW", "--sync-binlog=1"),
		replica: server.RunMariaDB(t, "--server-id=2", "--log-bin", "--binlog-format=ROW", "--log-slave-updates"),
	}
	p.active.Store(p.primary)
	p.onPrimary, p.onReplica = p.primary.Open(t, "app"), p.replica.Open(t, "app")
	database.Exec(t, p.onPrimary, "RESET MASTER") // the replica has made the database itself
	database.Exec(t, p.onReplica, "RESET MASTER")
	cfg, err := mysql.ParseDSN(p.primary.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, p.onReplica, fmt.Sprintf("CHANGE MASTER TO master_host = '%s', master_port = %s, master_user = 'root', master_use_gtid = slave_pos, master_connect_retry = 1", host, port))
	database.Exec(t, p.onReplica, "START SLAVE")
	database.Prepare(t, p.open(t))
	p.catchUp(t)
	return p
}

// Connect implements driver.Connector.
func (p *pair) Connect(ctx context.Context) (driver.Conn, error) {
	cfg, err := mysql.ParseDSN(p.active.Load().DSN("app"))
	if err != nil {
		return nil, err
	}
	cfg.Logger = &mysql.NopLogger{} // connections to a killed server break; that is no news
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return connector.Connect(ctx)
}

// Driver implements driver.Connector.
func (*pair) Driver() driver.Driver { return &mysql.MySQLDriver{} }

func (p *pair) open(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(p)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// catchUp waits until the replica has all that the primary has.
func (p *pair) catchUp(t *testing.T) {
	t.Helper()
	var position string
	if err := p.onPrimary.QueryRow("SELECT @@gtid_binlog_pos").Scan(&position); err != nil {
		t.Fatal(err)
	}
	if late := database.MustNumber(t, p.onReplica, "SELECT MASTER_GTID_WAIT(?, ?)", position, testwait.Limit.Seconds()); late != 0 {
		t.Fatalf("the replica did not reach %s", position)
	}
}

// cutOff ends replication, so that the replica does not receive what follows.
func (p *pair) cutOff(t *testing.T) {
	t.Helper()
	database.Exec(t, p.onReplica, "STOP SLAVE")
}

// acknowledged makes each commit on the primary wait until the replica has
// received it (semi-synchronous replication).
func (p *pair) acknowledged(t *testing.T) {
	t.Helper()
	database.Exec(t, p.onReplica, "STOP SLAVE")
	database.Exec(t, p.onReplica, "SET GLOBAL rpl_semi_sync_slave_enabled = 1")
	database.Exec(t, p.onReplica, "START SLAVE")
	database.Exec(t, p.onPrimary, "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC")
	database.Exec(t, p.onPrimary, "SET GLOBAL rpl_semi_sync_master_timeout = 3600000")
	database.Exec(t, p.onPrimary, "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	const replicas = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'"
	testwait.Until(t, "the primary waits for its replica", func() bool { return database.MustNumber(t, p.onPrimary, replicas) > 0 })
}

// failOver kills the primary and goes on with the replica once it has applied
// what it received.
func (p *pair) failOver(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	database.Exec(t, p.onReplica, "STOP SLAVE IO_THREAD")
	testwait.Until(t, "the replica applies what it received", func() bool { return p.applied(t) })
	database.Exec(t, p.onReplica, "STOP SLAVE")
	database.Exec(t, p.onReplica, "RESET SLAVE ALL")
	p.active.Store(p.replica)
}

func (p *pair) applied(t *testing.T) bool {
	t.Helper()
	rows, err := p.onReplica.Query("SHOW SLAVE STATUS")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatal("no replication", err, rows.Err())
	}
	values := make([]any, len(columns))
	status := map[string]*sql.NullString{}
	for i, name := range columns {
		status[name] = &sql.NullString{}
		values[i] = status[name]
	}
	if err := rows.Scan(values...); err != nil {
		t.Fatal(err)
	}
	return status["Slave_SQL_Running"].String != "Yes" ||
		status["Read_Master_Log_Pos"].String == status["Exec_Master_Log_Pos"].String &&
			status["Master_Log_File"].String == status["Relay_Master_Log_File"].String
}

func acquire(t *testing.T, store *sqlstore.Store, namespace string) keygen.Window {
	t.Helper()
	w, err := tryAcquire(t.Context(), store, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func tryAcquire(ctx context.Context, store *sqlstore.Store, namespace string) (keygen.Window, error) {
	assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: namespace})
	if err != nil {
		return nil, err
	}
	lease, err := assigner.Acquire(ctx, keygen.Twitter())
	if err != nil {
		return nil, err
	}
	return lease.(keygen.Window), nil
}

func TestAfterAnAsynchronousFailOverNoLeaseOverlapsALostOne(t *testing.T) {
	p := newPair(t)
	store := database.StoreOn(t, p.open(t))
	known := acquire(t, store, "shop")
	p.catchUp(t)
	p.cutOff(t)
	lost := acquire(t, store, "shop")
	elsewhere := acquire(t, store, "never heard of")
	p.failOver(t)

	// They begin a term later than they had to if the servers' clocks agree, as
	// here they do.
	term := lost.Term().Milliseconds()
	next, other := acquire(t, store, "shop"), acquire(t, store, "never heard of")
	if next.ID() != lost.ID() || next.NotBefore() < lost.Ceiling()+term {
		t.Errorf("worker id %d until %d was lost; then %d begins at %d", lost.ID(), lost.Ceiling(), next.ID(), next.NotBefore())
	}
	if other.ID() != elsewhere.ID() || other.NotBefore() < elsewhere.Ceiling()+term {
		t.Errorf("worker id %d until %d was lost; then %d begins at %d", elsewhere.ID(), elsewhere.Ceiling(), other.ID(), other.NotBefore())
	}
	for name, w := range map[string]keygen.Window{"known": known, "lost": lost} {
		if ceiling, err := w.Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
			t.Errorf("the %s lease was renewed on the other server: %d, %v", name, ceiling, err)
		}
	}
	if _, err := next.Renew(t.Context()); errors.Is(err, keygen.ErrWorkerLost) || err == nil || !strings.Contains(err.Error(), "failed over") {
		t.Errorf("a lease taken after the fail-over does not say that it is for later: %v", err)
	}
}

// The opposite of the test above: somebody makes the ledger believe that it is
// still on the same server.
func TestALedgerThatDoesNotNoticeTheFailOverGivesALostLeaseAgain(t *testing.T) {
	p := newPair(t)
	store := database.StoreOn(t, p.open(t))
	acquire(t, store, "shop")
	p.catchUp(t)
	p.cutOff(t)
	lost := acquire(t, store, "shop")
	p.failOver(t)
	database.Exec(t, p.open(t), "UPDATE worker_namespace SET identity = CONCAT_WS(':', @@server_id, @@port, @@hostname) WHERE namespace = ''")
	next := acquire(t, store, "shop")
	if next.ID() != lost.ID() || next.NotBefore() >= lost.Ceiling() {
		t.Errorf("worker id %d until %d, then %d from %d do not overlap: the test above proves nothing", lost.ID(), lost.Ceiling(), next.ID(), next.NotBefore())
	}
}

// A lease that stands in the replica as it was taken is lost all the same when
// the primary comes back: in between the worker id may have been another's.
func TestALeaseDoesNotSurviveTwoFailOversBackToItsServer(t *testing.T) {
	m := server.RunMariaDB(t)
	db, store := database.MariaDB(m).Store(t)
	w := acquire(t, store, "shop")
	database.Exec(t, db, "UPDATE worker_namespace SET identity = 'another server' WHERE namespace = ''")
	next := acquire(t, store, "shop") // notices that this is not the other server
	if ceiling, err := w.Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("%d, %v", ceiling, err)
	}
	if next.NotBefore() < w.Ceiling() {
		t.Errorf("%d is below %d", next.NotBefore(), w.Ceiling())
	}
}

// reserved issues ids from generators on the pair: some that the replica knows
// of, some that it does not, and after the fail-over those of other generators. Each issues count
// ids from segments of the size step, or of growing ones for 0.
func reserved(t *testing.T, step int64, count int, source func(*sqlstore.Store) keygen.Source) []int64 {
	t.Helper()
	p := newPair(t)
	var ids []int64
	draw := func() {
		g, err := segment.New(t.Context(), segment.Config{Source: source(database.StoreOn(t, p.open(t))), Step: step})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]int64, count)
		if err := g.Fill(t.Context(), dst); err != nil {
			t.Error(err)
		}
		ids = append(ids, dst...)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	draw()
	p.catchUp(t)
	p.cutOff(t)
	draw()
	draw()
	p.failOver(t)
	draw()
	draw()
	return ids
}

func TestAfterAnAsynchronousFailOverGuardedSegmentsDoNotRepeat(t *testing.T) {
	guarded := func(s *sqlstore.Store) keygen.Source { return s.GuardedTag("orders") }
	for name, ids := range map[string][]int64{
		"segments of one size": reserved(t, 100, 2000, guarded),
		"segments that grow":   reserved(t, 0, 200_000, guarded),
	} {
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%s: %d came twice", name, id)
		}
	}
}

// What no database can protect from by itself, and the guard is for.
func TestAfterAnAsynchronousFailOverSegmentsWithoutAGuardRepeat(t *testing.T) {
	ids := reserved(t, 100, 2000, func(s *sqlstore.Store) keygen.Source { return s.Tag("orders") })
	if _, twice := keygentest.Duplicate(ids); !twice {
		t.Error("no id came twice: the test above proves nothing")
	}
}

// Tables of others, and rows that begin with their period, have no guard: what their
// comments and the doctor say of them is so.
func TestAfterAnAsynchronousFailOverCountersThatHaveNoGuardRepeat(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, p *pair) keygen.Source{
		"tinyid": func(t *testing.T, p *pair) keygen.Source {
			t.Helper()
			return tinyIDSource(t, database.StoreOn(t, p.open(t)), 1, 0)
		},
		"CosId": func(t *testing.T, p *pair) keygen.Source {
			t.Helper()
			return database.StoreOn(t, p.open(t)).CosID("shop.order")
		},
		"periods": func(t *testing.T, p *pair) keygen.Source {
			t.Helper()
			return ofPeriod{database.StoreOn(t, p.open(t)).Periods()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			tinyIDDatabase(t, p.onPrimary, 100, 1, 0)
			cosIDDatabase(t, p.onPrimary)
			reserve := func(s keygen.Source) keygen.Span {
				span, err := s.Reserve(t.Context(), 100)
				if err != nil {
					t.Fatal(err)
				}
				return span
			}
			known := reserve(open(t, p))
			p.catchUp(t)
			p.cutOff(t)
			lost := reserve(open(t, p))
			p.failOver(t)
			if again := reserve(open(t, p)); again != lost || lost.First <= known.First {
				t.Errorf("%+v, and then %+v, where %+v was lost", known, again, lost)
			}
		})
	}
}

func TestASemiSynchronousFailOverLosesNothing(t *testing.T) {
	for range kills() / 25 {
		failOverUnderLoad(t)
	}
}

func failOverUnderLoad(t *testing.T) {
	t.Helper()
	p := newPair(t)
	p.acknowledged(t)
	const writers, enough = 8, 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var before, after atomic.Int64
	busy, over := make(chan struct{}), make(chan struct{})
	spans := make([][]int64, writers)
	var wg sync.WaitGroup
	for i := range writers {
		tag := database.StoreOn(t, p.open(t)).Tag("orders")
		wg.Go(func() {
			for ctx.Err() == nil {
				onReplica := p.active.Load() == p.replica
				call, done := context.WithTimeout(ctx, 10*time.Second)
				span, err := tag.Reserve(call, 1)
				done()
				switch {
				case err != nil:
					continue
				case onReplica && after.Add(1) == enough:
					close(over)
				case !onReplica && before.Add(1) == enough:
					close(busy)
				}
				spans[i] = append(spans[i], span.First)
			}
		})
	}
	await(t, busy)
	p.failOver(t)
	await(t, over)
	cancel()
	wg.Wait()
	var ids []int64
	for _, s := range spans {
		ids = append(ids, s...)
	}
	t.Logf("%d reservations before the fail-over, %d after it", before.Load(), after.Load())
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d was reserved twice", id)
	}
}

func await[T any](t *testing.T, event <-chan T) T {
	t.Helper()
	return testwait.For(t, event, "what the test waits for here")
}
