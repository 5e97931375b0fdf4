// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
)

// tinyIDs makes tinyid's table with a row of which the statement names the numbers.
func tinyIDs(t *testing.T, maxID, step, delta, remainder int64) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db, store := database(t)
	exec(t, db, `CREATE TABLE tiny_id_info (id INTEGER PRIMARY KEY, biz_type TEXT NOT NULL UNIQUE, begin_id BIGINT NOT NULL DEFAULT 0,
		max_id BIGINT NOT NULL, step INT, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0,
		create_time TIMESTAMP, update_time TIMESTAMP, version BIGINT NOT NULL DEFAULT 0)`)
	exec(t, db, "INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES ('order', ?, ?, ?, ?)", maxID, step, delta, remainder)
	return db, store
}

func tinyID(t *testing.T, store *sqlstore.Store, delta, remainder int64) *sqlstore.TinyID {
	t.Helper()
	source, err := store.TinyID("order", delta, remainder)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestTinyIDsTableKeepsTheContractOfSources(t *testing.T) {
	for _, family := range [][2]int64{{1, 0}, {3, 0}, {3, 2}} {
		t.Run(fmt.Sprint(family), func(t *testing.T) {
			_, store := tinyIDs(t, 1, 1000, family[0], family[1])
			keygentest.Source(t, func(t *testing.T) keygen.Source { return tinyID(t, store, family[0], family[1]) })
		})
	}
}

// The ids are those that tinyid's SegmentId counts through: (old, new], from the
// first one that leaves the remainder.
func TestRangesOfTinyIDsTableAreTinyIDs(t *testing.T) {
	for _, c := range []struct {
		maxID, delta, remainder int64
		want                    keygen.Span
	}{
		{0, 1, 0, keygen.Span{First: 1, Count: 10, Step: 1}},
		{100, 1, 0, keygen.Span{First: 101, Count: 10, Step: 1}},
		{0, 2, 0, keygen.Span{First: 2, Count: 10, Step: 2}},
		{1, 2, 1, keygen.Span{First: 3, Count: 10, Step: 2}},
		{1, 2, 0, keygen.Span{First: 2, Count: 10, Step: 2}},
		{7, 3, 1, keygen.Span{First: 10, Count: 10, Step: 3}},
		{8, 3, 1, keygen.Span{First: 10, Count: 10, Step: 3}},
		{9, 3, 1, keygen.Span{First: 10, Count: 10, Step: 3}},
	} {
		db, store := tinyIDs(t, c.maxID, 1000, c.delta, c.remainder)
		span, err := tinyID(t, store, c.delta, c.remainder).Reserve(t.Context(), 10)
		if err != nil || span != c.want {
			t.Errorf("%+v: %+v, %v", c, span, err)
		}
		var maxID, version int64
		err = db.QueryRow("SELECT max_id, version FROM tiny_id_info").Scan(&maxID, &version)
		if err != nil || maxID != c.maxID+10*c.delta || version == 0 || span.Last() > maxID {
			t.Errorf("%+v: max_id %d, version %d, %v", c, maxID, version, err)
		}
	}
}

func TestTheStepOfTinyIDsTableIsALengthInNumbersAndNotInIDs(t *testing.T) {
	_, store := tinyIDs(t, 1, 1001, 2, 1)
	if step, err := tinyID(t, store, 2, 1).Step(t.Context()); err != nil || step != 501 {
		t.Errorf("%d, %v", step, err)
	}
}

func TestARowOfTinyIDsThatCountsOtherwiseIsRefusedEachTime(t *testing.T) {
	db, store := tinyIDs(t, 1, 1000, 2, 1)
	source := tinyID(t, store, 2, 1)
	if _, err := source.Reserve(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE tiny_id_info SET delta = 4")
	var setup *keygen.SetupError
	if span, err := source.Reserve(t.Context(), 10); !errors.As(err, &setup) || !strings.Contains(err.Error(), "delta 4 and remainder 1") {
		t.Errorf("%+v, %v", span, err)
	}
	var maxID int64
	if err := db.QueryRow("SELECT max_id FROM tiny_id_info").Scan(&maxID); err != nil || maxID != 21 {
		t.Errorf("max_id is %d, %v", maxID, err)
	}
}

func TestADeltaAndRemainderThatCannotBeAreRefused(t *testing.T) {
	_, store := tinyIDs(t, 1, 1000, 2, 1)
	for _, wrong := range [][2]int64{{0, 0}, {-1, 0}, {2, 2}, {2, -1}} {
		if source, err := store.TinyID("order", wrong[0], wrong[1]); err == nil || source != nil {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestUnusableCountersOfOtherSystemsSayWhy(t *testing.T) {
	db, store := tinyIDs(t, -500, 1000, 1, 0)
	source := tinyID(t, store, 1, 0)
	if span, err := source.Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("negative: %+v, %v", span, err)
	}
	exec(t, db, "UPDATE tiny_id_info SET max_id = ?", int64(math.MaxInt64-5))
	if span, err := source.Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("at the end: %+v, %v", span, err)
	}
	exec(t, db, "DELETE FROM tiny_id_info")
	if span, err := source.Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrUnknownTag) || !strings.Contains(err.Error(), "biz_type") {
		t.Errorf("without a row: %+v, %v", span, err)
	}
	var setup *keygen.SetupError
	if span, err := store.CosID("shop.order").Reserve(t.Context(), 10); !errors.As(err, &setup) || !strings.Contains(err.Error(), "the table cosid") {
		t.Errorf("without a table: %+v, %v", span, err)
	}
}

// Two databases take turns, and each is asked for as many ids as its row says.
func TestTinyIDsDatabasesTakeTurns(t *testing.T) {
	_, odd := tinyIDs(t, 1, 100, 2, 1)
	db, even := tinyIDs(t, 1, 100, 2, 0)
	g, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{tinyID(t, odd, 2, 1), tinyID(t, even, 2, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, 40)
	if err := keygen.Fill(t.Context(), g, ids); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	share := 0
	for _, id := range ids {
		share += int(id % 2)
	}
	if id, twice := keygentest.Duplicate(ids); twice || share != 20 {
		t.Errorf("%d came twice; %d of 40 are odd", id, share)
	}
	var maxID int64
	if err := db.QueryRow("SELECT max_id FROM tiny_id_info").Scan(&maxID); err != nil || maxID%100 != 1 || maxID > 301 {
		t.Errorf("max_id is %d, %v: ranges are not as long as the row's step", maxID, err)
	}
}

func cosIDs(t *testing.T) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db, store := database(t)
	exec(t, db, "CREATE TABLE cosid (name TEXT PRIMARY KEY, last_max_id BIGINT NOT NULL DEFAULT 0, last_fetch_time BIGINT NOT NULL)")
	exec(t, db, "INSERT INTO cosid VALUES ('shop.order', 0, 0)")
	return db, store
}

func TestCosIDsTableKeepsTheContractOfSourcesAndGenerators(t *testing.T) {
	_, store := cosIDs(t)
	keygentest.Source(t, func(*testing.T) keygen.Source { return store.CosID("shop.order") })
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		g, err := segment.New(t.Context(), segment.Config{Source: store.CosID("shop.order"), Step: 5000})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		return g
	})
}

func TestRangesOfCosIDsTableAreCosIDs(t *testing.T) {
	db, store := cosIDs(t)
	source := store.CosID("shop.order")
	for _, want := range []int64{1, 101, 201} {
		if span, err := source.Reserve(t.Context(), 100); err != nil || span != (keygen.Span{First: want, Count: 100, Step: 1}) {
			t.Errorf("%+v, %v", span, err)
		}
	}
	var last, fetched int64
	if err := db.QueryRow("SELECT last_max_id, last_fetch_time FROM cosid").Scan(&last, &fetched); err != nil || last != 300 || fetched < 1_700_000_000 {
		t.Errorf("last_max_id %d, last_fetch_time %d, %v", last, fetched, err)
	}
}
