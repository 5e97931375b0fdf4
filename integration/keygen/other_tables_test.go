// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
)

// tinyIDInfo is the table of tinyid's tinyid-server/db.sql.
const tinyIDInfo = "CREATE TABLE `tiny_id_info` (" +
	"`id` bigint(20) unsigned NOT NULL AUTO_INCREMENT," +
	"`biz_type` varchar(63) NOT NULL DEFAULT ''," +
	"`begin_id` bigint(20) NOT NULL DEFAULT '0'," +
	"`max_id` bigint(20) NOT NULL DEFAULT '0'," +
	"`step` int(11) DEFAULT '0'," +
	"`delta` int(11) NOT NULL DEFAULT '1'," +
	"`remainder` int(11) NOT NULL DEFAULT '0'," +
	"`create_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00'," +
	"`update_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00'," +
	"`version` bigint(20) NOT NULL DEFAULT '0'," +
	"PRIMARY KEY (`id`), UNIQUE KEY `uniq_biz_type` (`biz_type`)) ENGINE=InnoDB DEFAULT CHARSET=utf8"

// tinyIDDatabase makes tinyid's table with a row for orders.
func tinyIDDatabase(t *testing.T, db *sql.DB, step, delta, remainder int64) *sqlstore.Store {
	t.Helper()
	database.Exec(t, db, tinyIDInfo)
	database.Exec(t, db, fmt.Sprintf("INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('order', 1, 1, %d, %d, %d, 1)", step, delta, remainder))
	return database.StoreOn(t, db)
}

func tinyIDSource(t *testing.T, store *sqlstore.Store, delta, remainder int64) *sqlstore.TinyID {
	t.Helper()
	source, err := store.TinyID("order", delta, remainder)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// theirTinyID reserves a range by the statements of tinyid's TinyIdInfoDAOImpl, which
// its DbSegmentIdServiceImpl runs in one transaction, and counts through it as its
// SegmentId does.
func theirTinyID(ctx context.Context, db *sql.DB) (ids []int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	var id, maxID, step, delta, remainder, version int64
	err = tx.QueryRowContext(ctx, "select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type = ?", "order").
		Scan(&id, &maxID, &step, &delta, &remainder, &version)
	if err != nil {
		return nil, err
	}
	res, err := tx.ExecContext(ctx, "update tiny_id_info set max_id= ?, update_time=now(), version=version+1"+
		" where id=? and max_id=? and version=? and biz_type=?", maxID+step, id, maxID, version, "order")
	if err != nil {
		return nil, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return nil, errors.Join(err, errTinyIDConflict)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	current := maxID
	for current%delta != remainder {
		current++
	}
	if current != maxID {
		current -= delta
	}
	for current += delta; current <= maxID+step; current += delta {
		ids = append(ids, current)
	}
	return ids, nil
}

// errTinyIDConflict: another one has reserved since the row was read.
var errTinyIDConflict = errors.New("get next segmentId conflict")

// together takes shardid's ids while others reserve ranges by their own statements, each
// n times, and returns all ids.
func together(t *testing.T, ours func() []int64, theirs func(worker int) ([]int64, error), rounds int) (mine, others []int64) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for range rounds {
				ids, err := theirs(worker)
				for errors.Is(err, errTinyIDConflict) || dialect.Contended(err) {
					ids, err = theirs(worker)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				others = append(others, ids...)
				mu.Unlock()
			}
		})
	}
	for range rounds {
		mine = append(mine, ours()...)
	}
	wg.Wait()
	return mine, others
}

// mustDiffer requires that all ids differ, and that there are some of each kind.
func mustDiffer(t *testing.T, mine, others []int64) {
	t.Helper()
	t.Logf("%d ids of ours, %d of theirs", len(mine), len(others))
	id, twice := keygentest.Duplicate(slices.Concat(mine, others))
	if twice || len(mine) == 0 || len(others) == 0 {
		t.Errorf("%d came twice, of %d and %d", id, len(mine), len(others))
	}
}

func TestTinyIDAndOursReserveFromTheSameTablesOfThreeDatabases(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		const n = 3
		var dbs []*sql.DB
		var sources []ticket.Server
		for i := range int64(n) {
			db := s.Open(t, fmt.Sprint("ids", i))
			dbs = append(dbs, db)
			sources = append(sources, tinyIDSource(t, tinyIDDatabase(t, db, 100, n, i), n, i))
		}
		g := openTickets(t, ticket.Config{Servers: sources, Step: 7})
		mine, others := together(t,
			func() []int64 { return someIDs(t, g, 50) },
			func(int) ([]int64, error) { return theirTinyID(t.Context(), dbs[rand.IntN(n)]) }, 50)
		mustDiffer(t, mine, others)
		for i, db := range dbs {
			if version := database.MustNumber(t, db, "SELECT version FROM tiny_id_info"); version < 50 {
				t.Errorf("database %d: %d ranges were reserved", i, version)
			}
		}
	})
}

func TestTinyIDsTableOnRealServersKeepsTheContract(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		store := tinyIDDatabase(t, s.Open(t, "ids"), 1000, 2, 1)
		keygentest.Source(t, func(t *testing.T) keygen.Source { return tinyIDSource(t, store, 2, 1) })
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
			return redisSegments(t, tinyIDSource(t, store, 2, 1), 5000)
		})
	})
}

// A database that is killed is passed over while the others go on, and comes back.
func TestAKilledDatabaseOfTinyIDsIsPassedOverAndComesBack(t *testing.T) {
	var family []*server.MariaDB
	var sources []ticket.Server
	for i := range int64(2) {
		m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
		family = append(family, m)
		sources = append(sources, tinyIDSource(t, tinyIDDatabase(t, m.Open(t, "ids"), 40, 2, i), 2, i))
	}
	g := openTickets(t, ticket.Config{Servers: sources, Step: 20})
	stop := drawing(t, g)
	reserves := func(m *server.MariaDB, what string) {
		db, first := m.Open(t, "ids"), int64(-1)
		testwait.Until(t, what, func() bool {
			n, err := database.Number(t.Context(), db, "SELECT max_id FROM tiny_id_info")
			if err == nil && first < 0 {
				first = n
			}
			return err == nil && n > first
		})
	}
	for range 3 {
		for i, m := range family {
			m.Kill()
			testwait.Until(t, "the failure shows", func() bool { return g.Stats().LastError != nil })
			reserves(family[1-i], "the other one goes on")
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			reserves(m, "the database is back")
		}
	}
	ids := stop()
	t.Logf("%d ids over 6 kills", len(ids))
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

// cosIDTable is what CosId's JdbcIdSegmentInitializer makes.
const cosIDTable = `create table if not exists cosid (
	name            varchar(100) not null comment '{namespace}.{name}',
	last_max_id     bigint unsigned not null default 0,
	last_fetch_time bigint unsigned not null default 0,
	constraint cosid_pk primary key (name)) engine = InnoDB`

// theirCosID reserves a range by the statements of CosId's JdbcIdSegmentDistributor.
func theirCosID(ctx context.Context, db *sql.DB, step int64) (ids []int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "update cosid set last_max_id=(last_max_id + ?),last_fetch_time=unix_timestamp() where name = ?", step, "shop.order"); err != nil {
		return nil, err
	}
	var last int64
	if err := tx.QueryRowContext(ctx, "select last_max_id from cosid where name = ?", "shop.order").Scan(&last); err != nil {
		return nil, err
	}
	for id := last - step + 1; id <= last; id++ { // DefaultIdSegment counts from the offset, which is none of its ids
		ids = append(ids, id)
	}
	return ids, tx.Commit()
}

func cosIDDatabase(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	database.Exec(t, db, cosIDTable)
	database.Exec(t, db, "insert into cosid (name, last_max_id, last_fetch_time) value ('shop.order', 0, unix_timestamp())")
	return database.StoreOn(t, db)
}

func TestCosIDAndOursReserveFromTheSameTable(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		g := redisSegments(t, cosIDDatabase(t, db).CosID("shop.order"), 20)
		mine, others := together(t,
			func() []int64 { return someIDs(t, g, 50) },
			func(worker int) ([]int64, error) { return theirCosID(t.Context(), db, int64(10+worker)) }, 50)
		mustDiffer(t, mine, others)
		given := int64(len(mine) + len(others))
		if last := database.MustNumber(t, db, "select last_max_id from cosid"); last < given || slices.Min(slices.Concat(mine, others)) != 1 {
			t.Errorf("last_max_id is %d after %d ids", last, given)
		}
	})
}

func TestCosIDsTableOnRealServersKeepsTheContract(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		store := cosIDDatabase(t, s.Open(t, "ids"))
		keygentest.Source(t, func(*testing.T) keygen.Source { return store.CosID("shop.order") })
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
			return redisSegments(t, store.CosID("shop.order"), 5000)
		})
	})
}

func TestOtherPeoplesCountersAreKilledWithTheirServerAndNothingComesTwice(t *testing.T) {
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	db := m.Open(t, "ids")
	g, err := segment.New(t.Context(), segment.Config{Source: cosIDDatabase(t, db).CosID("shop.order"), Step: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	stop := drawing(t, g)
	for range kills() / 5 {
		first := int64(-1)
		testwait.Until(t, "ids are reserved", func() bool {
			n, err := database.Number(t.Context(), db, "SELECT last_max_id FROM cosid")
			if err == nil && first < 0 {
				first = n
			}
			return err == nil && n > first+2000
		})
		m.Kill()
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ids := stop()
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

// A row's delta that somebody changes while processes run ends their reservations
// before an id of another database is given.
func TestADeltaThatIsChangedOnTheServerIsNoticedByTheNextReservation(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		source := tinyIDSource(t, tinyIDDatabase(t, db, 100, 2, 1), 2, 1)
		if _, err := source.Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, db, "UPDATE tiny_id_info SET remainder = 0")
		var setup *keygen.SetupError
		if span, err := source.Reserve(t.Context(), 10); !errors.As(err, &setup) || !strings.Contains(err.Error(), "remainder 0") {
			t.Errorf("%+v, %v", span, err)
		}
	})
}

// onSharedMariaDBAndMySQL runs a test on MariaDB and MySQL, in databases of the test's own.
func onSharedMariaDBAndMySQL(t *testing.T, test func(t *testing.T, s database.Server)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, server.ShareMariaDB(t)) })
	t.Run("MySQL", func(t *testing.T) { test(t, server.ShareMySQL(t)) })
}
