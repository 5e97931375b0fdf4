// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/redisgen"
)

// wuidTable is that of wuid's mysql/db.sql.
const wuidTable = "CREATE TABLE IF NOT EXISTS `wuid` (" +
	"`h` int(10) NOT NULL AUTO_INCREMENT, `x` tinyint(4) NOT NULL DEFAULT '0'," +
	"PRIMARY KEY (`x`), UNIQUE KEY `h` (`h`)) ENGINE=InnoDB DEFAULT CHARSET=latin1"

// wuidLow is how many bits wuid counts by itself.
const wuidLow = 36

func wuidHighs(t *testing.T, db *sql.DB) keygen.Source {
	t.Helper()
	highs, err := database.StoreOn(t, db).WUID("wuid")
	if err != nil {
		t.Fatal(err)
	}
	return highs
}

func sectionsOf(t *testing.T, highs keygen.Source, low int) keygen.Source {
	t.Helper()
	s, err := keygen.Sections(highs, low)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSectionsOfWUIDsTableKeepTheContract(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		database.Exec(t, db, wuidTable)
		keygentest.Source(t, func(t *testing.T) keygen.Source { return sectionsOf(t, wuidHighs(t, db), 4) })
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
			return redisSegments(t, sectionsOf(t, wuidHighs(t, db), wuidLow), 0)
		})
	})
}

func TestSectionsOfWUIDsRedisKeyKeepTheContract(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	open := func(t *testing.T, low int) keygen.Source {
		return sectionsOf(t, redisCounter(t, c, redisgen.Config{Key: "wuid"}), low)
	}
	keygentest.Source(t, func(t *testing.T) keygen.Source { return open(t, 4) })
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return redisSegments(t, open(t, wuidLow), 0) })
}

// wuid takes its high bits by its own statement and its own command, and counts from
// there.
func TestWUIDAndOursHaveSectionsOfTheirOwn(t *testing.T) {
	const each = 200
	test := func(t *testing.T, highs func(t *testing.T) keygen.Source, theirs func() (int64, error)) {
		t.Helper()
		var mu sync.Mutex
		var all []int64
		add := func(high int64) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, high)
		}
		var wg sync.WaitGroup
		for range 2 {
			ours := sectionsOf(t, highs(t), wuidLow)
			wg.Go(func() {
				for range each {
					span, err := ours.Reserve(t.Context(), 1)
					if err != nil {
						t.Error(err)
						return
					}
					add(span.First >> wuidLow)
					if span.Last()>>wuidLow != span.First>>wuidLow {
						t.Errorf("%+v is not a section", span)
					}
				}
			})
			wg.Go(func() {
				for range each {
					high, err := theirs()
					for dialect.Contended(err) {
						high, err = theirs()
					}
					if err != nil {
						t.Error(err)
						return
					}
					add(high)
				}
			})
		}
		wg.Wait()
		if high, twice := keygentest.Duplicate(all); twice || len(all) != 4*each {
			t.Errorf("section %d was taken twice, of %d", high, len(all))
		}
	}
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "ids")
		database.Exec(t, db, wuidTable)
		test(t, func(t *testing.T) keygen.Source { return wuidHighs(t, db) }, func() (int64, error) {
			res, err := db.ExecContext(t.Context(), "REPLACE INTO wuid (x) VALUES (0)")
			if err != nil {
				return 0, err
			}
			return res.LastInsertId()
		})
	})
	t.Run("Redis", func(t *testing.T) {
		c := server.RunRedis(t).Open(t)
		if err := c.Incr(t.Context(), "wuid").Err(); err != nil { // by the first wuid
			t.Fatal(err)
		}
		test(t, func(t *testing.T) keygen.Source {
			return redisHandle(t, redis.UniversalClient(c), redisgen.Config{Key: "wuid"})
		},
			func() (int64, error) { return c.Incr(t.Context(), "wuid").Result() })
	})
}

func TestWUIDsTableThatIsMissingOrWentBackSaysSo(t *testing.T) {
	db := server.ShareMariaDB(t).Open(t, "ids")
	highs := wuidHighs(t, db)
	var setup *keygen.SetupError
	if span, err := highs.Reserve(t.Context(), 1); !errors.As(err, &setup) {
		t.Errorf("%+v, %v", span, err)
	}
	database.Exec(t, db, wuidTable)
	for range 3 {
		if _, err := highs.Reserve(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, db, "DROP TABLE wuid")
	database.Exec(t, db, wuidTable)
	if span, err := highs.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("%+v, %v", span, err)
	}
	database.Exec(t, db, "ALTER TABLE wuid ENGINE = MyISAM")
	if span, err := highs.Reserve(t.Context(), 1); !errors.As(err, &setup) {
		t.Errorf("MyISAM: %+v, %v", span, err)
	}
}

func TestNoSectionComesTwiceWhenProcessesAndTheServerAreKilled(t *testing.T) {
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	db := m.Open(t, "ids")
	database.Exec(t, db, wuidTable)
	var ids []int64
	for range 10 { // each is a process that begins
		g := redisSegments(t, sectionsOf(t, wuidHighs(t, db), 8), 0)
		ids = append(ids, someIDs(t, g, 700)...)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		m.Kill()
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}
