// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/redisgen"
)

func redisPeriods(t *testing.T, c redis.UniversalClient) *redisgen.Periods {
	t.Helper()
	p, err := redisgen.NewPeriods(c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// onAllCounters runs a test on everything that keeps counters of periods; open is a
// handle as another process would open it.
func onAllCounters(t *testing.T, test func(t *testing.T, open func(t *testing.T) periodic.Counters)) {
	t.Helper()
	for name, db := range map[string]func(t *testing.T) database.Opener{
		"SQLite":     database.SQLite,
		"MariaDB":    func(t *testing.T) database.Opener { return database.MariaDB(server.ShareMariaDB(t)) },
		"MySQL":      func(t *testing.T) database.Opener { return database.MySQL(server.ShareMySQL(t)) },
		"PostgreSQL": func(t *testing.T) database.Opener { return database.Postgres(server.SharePostgres(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			open := db(t)
			test(t, func(t *testing.T) periodic.Counters {
				_, store := open.Store(t)
				return store.Periods()
			})
		})
	}
	t.Run("Redis", func(t *testing.T) {
		onEachRedis(t, func(t *testing.T, c redis.UniversalClient) {
			test(t, func(t *testing.T) periodic.Counters { return redisPeriods(t, c) })
		})
	})
}

// today numbers orders by day.
func today(c periodic.Counters, change func(*periodic.Config)) periodic.Config {
	cfg := periodic.Config{Counters: c, Name: "order", Period: periodic.Day, Zone: time.UTC, Digits: 9}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func openNumbers(t *testing.T, cfg periodic.Config) *periodic.Numbers {
	t.Helper()
	n, err := periodic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// ofPeriod is one counter of a period as a source.
type ofPeriod struct{ periodic.Counters }

func (o ofPeriod) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	return o.Counters.Reserve(ctx, "order/shop7", "2026", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), n)
}

func TestCountersOfPeriodsKeepTheContract(t *testing.T) {
	onAllCounters(t, func(t *testing.T, open func(t *testing.T) periodic.Counters) {
		t.Run("source", func(t *testing.T) {
			keygentest.Source(t, func(t *testing.T) keygen.Source { return ofPeriod{open(t)} })
		})
		t.Run("generator", func(t *testing.T) {
			counters := open(t)
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
				return openNumbers(t, today(counters, func(c *periodic.Config) { c.Step = 5000 })).IDs("shop8")
			})
		})
	})
}

// The clock of the counters decides, not the clock of the process.
func TestNumbersOfAnotherTimeThanTheCountersAreRefusedAndNoCounterIsMade(t *testing.T) {
	onAllCounters(t, func(t *testing.T, open func(t *testing.T) periodic.Counters) {
		counters := open(t)
		for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
			from := time.Now().Add(off)
			for range 2 { // the second time for a counter that would be there
				span, err := counters.Reserve(t.Context(), "order/shop7", "2026-11", from, from.Add(time.Hour), 10)
				if !errors.Is(err, keygen.ErrClockRollback) {
					t.Errorf("off by %v: %+v, %v", off, span, err)
				}
			}
		}
		from := time.Now().Add(-time.Hour)
		if span, err := counters.Reserve(t.Context(), "order/shop7", "2026-11", from, from.Add(2*time.Hour), 10); err != nil || span.First != 1 {
			t.Errorf("%+v, %v", span, err)
		}
		span, err := counters.Reserve(t.Context(), "order/shop7", "2026-11", from, from.Add(time.Minute), 10)
		if !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("after the period: %+v, %v", span, err)
		}
	})
}

// Processes whose clocks differ draw while one of them after the other comes to the
// next day.
func TestPeriodsChangeUnderLoadWithoutADuplicate(t *testing.T) {
	onAllCounters(t, func(t *testing.T, open func(t *testing.T) periodic.Counters) {
		// A busy machine may need longer than that until the first number is drawn.
		for until := time.Second; !changeDay(t, open, until); until *= 2 {
			t.Logf("midnight came before the first number, after %v", until)
		}
	})
}

// changeDay draws from three processes until some time after midnight, which comes in so
// long, and tells whether a number of the day before was among them.
func changeDay(t *testing.T, open func(t *testing.T) periodic.Counters, until time.Duration) bool {
	t.Helper()
	begin := time.Now()
	midnight := time.Date(begin.Year(), begin.Month(), begin.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, 1)
	zone := time.FixedZone("where midnight is near", int(midnight.Sub(begin.Add(until)).Seconds()))
	var mu sync.Mutex
	seen := map[string]int{}
	days := map[string]int{}
	var wg sync.WaitGroup
	for _, ahead := range []time.Duration{0, 400 * time.Millisecond, -400 * time.Millisecond} {
		n := openNumbers(t, today(open(t), func(c *periodic.Config) {
			c.Zone, c.MaxStep = zone, 50 // so that reservations fall into the change
			c.Now = func() time.Time { return time.Now().Add(ahead) }
		}))
		for caller := range 2 {
			wg.Go(func() {
				for done := false; !done; {
					key := fmt.Sprint("shop", caller)
					number, err := n.Next(t.Context(), key)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[key+" "+number.String()]++
					days[number.Period]++
					done = time.Since(begin) > until+2*time.Second
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for number, times := range seen {
		if times > 1 {
			t.Errorf("%s was given %d times", number, times)
		}
	}
	t.Logf("%d numbers, %v", len(seen), days)
	return len(days) == 2 || t.Failed()
}

func TestNoNumberComesTwiceWhenTheCountersServerIsKilledAgainAndAgain(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
		_, store := database.MariaDB(m).Store(t)
		killedAgainAndAgain(t, store.Periods(), func() error {
			m.Kill()
			return m.Start(t.Context())
		})
	})
	t.Run("Redis", func(t *testing.T) {
		r := server.RunRedis(t, server.Persistent()...)
		killedAgainAndAgain(t, redisPeriods(t, r.Open(t)), func() error {
			r.Kill()
			return r.Start(t.Context())
		})
	})
}

func killedAgainAndAgain(t *testing.T, counters periodic.Counters, kill func() error) {
	t.Helper()
	n := openNumbers(t, today(counters, func(c *periodic.Config) { c.Step, c.MaxStep = 5, 5 }))
	ids := n.IDs("shop7")
	stop := drawing(t, ids)
	for range 8 {
		first := someIDs(t, ids, 1)[0]
		testwait.Until(t, "numbers are given", func() bool {
			id, err := ids.Next(t.Context())
			return err == nil && id > first+200
		})
		if err := kill(); err != nil {
			t.Fatal(err)
		}
	}
	all := stop()
	if id, twice := keygentest.Duplicate(all); twice || len(all) == 0 {
		t.Errorf("%d came twice, of %d", id, len(all))
	}
}

// A lost counter is detected, and does not begin at 1 again.
func TestACounterOfAPeriodThatRedisLostIsRegressedAndNeverBegunAnew(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	source := ofPeriod{redisPeriods(t, c)}
	if _, err := source.Reserve(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	refuse := func(who string, s keygen.Source) {
		t.Helper()
		for range 3 {
			if span, err := s.Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrRegressed) {
				t.Errorf("%s: %+v, %v", who, span, err)
			}
		}
	}
	c.Del(t.Context(), "{shop:order/shop7}:2026") // evicted
	refuse("who knows it", source)
	refuse("another process", ofPeriod{redisPeriods(t, c)})
	c.FlushAll(t.Context())
	refuse("who knows it, after everything was lost", source)
	c.Set(t.Context(), "{shop:order/shop7}:2026", 40, 0)
	refuse("below what was given", source)
	c.Set(t.Context(), "{shop:order/shop7}:2026", 100, 0)
	if span, err := source.Reserve(t.Context(), 10); err != nil || span.First != 101 {
		t.Errorf("%+v, %v", span, err)
	}
	if ttl := c.TTL(t.Context(), "{shop:order/shop7}:2026").Val(); ttl < 48*time.Hour || ttl > 50*time.Hour {
		t.Errorf("the counter goes after %v", ttl)
	}
}

// A thousand numbers cost some round trips, each of them one statement.
func TestNumbersOfAPeriodCostOneStatementForASegment(t *testing.T) {
	db, store := database.MariaDB(server.RunMariaDB(t)).Store(t)
	db.SetMaxOpenConns(1) // so that the session's own counters see every statement
	source := ofPeriod{store.Periods()}
	for range 2 { // it is made, and the table is looked at
		if _, err := source.Reserve(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	before := questions(t, db)
	for range 5 {
		if _, err := source.Reserve(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
	if sent := questions(t, db) - before - 1; sent != 5 {
		t.Errorf("5 segments cost %d statements", sent)
	}
}

func TestAUserWithoutTheRightToMakeCountersGetsAnErrorThatSaysSo(t *testing.T) {
	m := server.RunMariaDB(t)
	admin, _ := database.MariaDB(m).Store(t)
	database.Exec(t, admin, "CREATE USER teller")
	database.Exec(t, admin, "GRANT SELECT, UPDATE ON app.leaf_alloc TO teller")
	source := ofPeriod{database.StoreOn(t, mariaDBAs(t, m, "teller")).Periods()}
	var setup *keygen.SetupError
	if span, err := source.Reserve(t.Context(), 1); !errors.As(err, &setup) {
		t.Errorf("%+v, %v", span, err)
	}
	database.Exec(t, admin, "GRANT INSERT ON app.leaf_alloc TO teller")
	if span, err := source.Reserve(t.Context(), 1); err != nil || span.First != 1 {
		t.Errorf("%+v, %v", span, err)
	}
}

// alike are texts that MySQL's or MariaDB's collations take for equal.
var alike = []string{"shop", "SHOP", "shöp", "ｓｈｏｐ", "ss", "ß", "shop\u200b"}

func TestKeysThatDifferInCaseOrAccentsCountEachForItself(t *testing.T) {
	onAllCounters(t, func(t *testing.T, open func(t *testing.T) periodic.Counters) {
		n := openNumbers(t, today(open(t), nil))
		for _, key := range alike {
			if number, err := n.Next(t.Context(), key); err != nil || number.Count != 1 {
				t.Errorf("%q: %v, %v", key, number, err)
			}
		}
	})
}

// Leaf's table has the collation of its database.
func TestAKeyWhoseCounterLeafsTableTakesForAnothersIsRefused(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, "+
			"step int NOT NULL, description varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))")
		counters := database.StoreOn(t, db).Periods()
		n := openNumbers(t, today(counters, nil))
		if number, err := n.Next(t.Context(), "shöp"); err != nil || number.Count != 1 {
			t.Fatal(number, err)
		}
		for _, key := range []string{"SHÖP", "shop"} {
			number, err := n.Next(t.Context(), key)
			var setup *keygen.SetupError
			if !errors.As(err, &setup) || !strings.Contains(err.Error(), "order/shöp/") || !strings.Contains(err.Error(), "utf8mb4_bin") {
				t.Errorf("%q: %v, %v", key, number, err)
			}
		}
		if number, err := n.Next(t.Context(), "tent"); err != nil || number.Count != 1 {
			t.Error(number, err)
		}
		cure := regexp.MustCompile("ALTER TABLE [^;]*").FindString(cureOf(t, n))
		database.Exec(t, db, cure)
		if number, err := n.Next(t.Context(), "shop"); err != nil || number.Count != 1 {
			t.Error(number, err)
		}
	})
}

// A connection may have another character set than the table: what it sends and gets
// back is the same text all the same.
func TestKeysOfAConnectionWithAnotherCharacterSetCount(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		db.SetMaxOpenConns(1)
		counters := database.StoreOn(t, db).Periods()
		database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) CHARACTER SET latin1 NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, "+
			"step int NOT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))")
		for _, names := range []string{"latin1", "utf8mb4"} {
			database.Exec(t, db, "SET NAMES "+names)
			n := openNumbers(t, today(counters, nil))
			for _, key := range []string{"shop7", names + " ö"} {
				if number, err := n.Next(t.Context(), key); err != nil {
					t.Errorf("%s: %q: %v, %v", names, key, number, err)
				}
			}
		}
	})
}

// cureOf returns the remedy in the error of a refused key.
func cureOf(t *testing.T, n *periodic.Numbers) string {
	t.Helper()
	_, err := n.Next(t.Context(), "shop")
	var setup *keygen.SetupError
	if !errors.As(err, &setup) {
		t.Fatal(err)
	}
	return setup.Cure
}

// Two processes whose clocks differ by a second want the first number of a shop at midnight.
func TestThePeriodBeforeTheNewestOneBeginsLateInRedisButNotASecondTime(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	reserve := func(period string) (int64, error) {
		p, err := redisgen.NewPeriods(c, "shop") // of another process, which remembers nothing
		if err != nil {
			t.Fatal(err)
		}
		span, err := p.Reserve(t.Context(), "order/shop7", period, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), 10)
		return span.First, err
	}
	for _, v := range []struct {
		period string
		first  int64
	}{{"2026-11-26", 1}, {"2026-11-28", 1}, {"2026-11-27", 1}, {"2026-11-28", 11}, {"2026-11-27", 11}} {
		if first, err := reserve(v.period); err != nil || first != v.first {
			t.Errorf("%s: %d, %v; want %d", v.period, first, err, v.first)
		}
	}
	for _, period := range []string{"2026-11-26", "2026-11-27", "2026-11-28"} {
		if err := c.Del(t.Context(), "{shop:order/shop7}:"+period).Err(); err != nil {
			t.Fatal(err)
		}
		if first, err := reserve(period); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%s, whose counter was lost: %d, %v", period, first, err)
		}
	}
	if first, err := reserve("2026-11-25"); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("a period of which nothing is known: %d, %v", first, err)
	}
}
