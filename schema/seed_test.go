// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema"
)

func TestSeedRaisesNeverLowersAndKeepsTheStep(t *testing.T) {
	db := newDB(t)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, seed := range []struct{ next, step, want int64 }{
		{500, 10, 500}, {400, 20, 500}, {501, 20, 501}, {1, 1, 501}, {math.MaxInt64, math.MaxInt32, math.MaxInt64},
	} {
		if now, err := schema.Seed(t.Context(), db, "order", seed.next, seed.step); err != nil || now != seed.want {
			t.Errorf("Seed(%d) = %d, %v; want %d", seed.next, now, err, seed.want)
		}
	}
	if step := scan[int64](t, db, "SELECT step FROM leaf_alloc"); step != 10 {
		t.Errorf("step is %d", step)
	}
}

func TestSeedThatRaisesNothingWritesNothing(t *testing.T) {
	db := newDB(t)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "INSERT INTO leaf_alloc VALUES ('order', 500, 10, NULL, '2000-01-01 00:00:00')")
	for next, touched := range map[int64]bool{500: false, 501: true} {
		exec(t, db, "UPDATE leaf_alloc SET max_id = 500, update_time = '2000-01-01 00:00:00'")
		if _, err := schema.Seed(t.Context(), db, "order", next, 10); err != nil {
			t.Fatal(err)
		}
		if now := scan[string](t, db, "SELECT CAST(update_time AS TEXT) FROM leaf_alloc"); strings.HasPrefix(now, "2000-") == touched {
			t.Errorf("after a seed of %d the update time is %s", next, now)
		}
	}
}

func TestSeedFromManyPoolsAtOnceEndsAtTheHighest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	if err := schema.Apply(t.Context(), open(t, file)); err != nil {
		t.Fatal(err)
	}
	atOnce(t, 16, func(i int) error {
		next := int64(1000 + i)
		now, err := schema.Seed(t.Context(), open(t, file), "order", next, 10)
		if err == nil && now < next {
			err = fmt.Errorf("seeded %d, now %d", next, now)
		}
		return err
	})
	if now := scan[int64](t, open(t, file), "SELECT max_id FROM leaf_alloc"); now != 1015 {
		t.Errorf("max_id is %d", now)
	}
}

func TestSeedRefusesArgumentsOutOfRange(t *testing.T) {
	db := newDB(t)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag        string
		next, step int64
	}{
		{"", 1, 1},
		{strings.Repeat("é", 129), 1, 1},
		{"\xff", 1, 1},
		{"order", 0, 1},
		{"order", -1, 1},
		{"order", 1, 0},
		{"order", 1, math.MaxInt32 + 1},
	} {
		if _, err := schema.Seed(t.Context(), db, c.tag, c.next, c.step); !errors.Is(err, schema.ErrSeed) {
			t.Errorf("Seed(%q, %d, %d): %v", c.tag, c.next, c.step, err)
		}
	}
	if n := scan[int](t, db, "SELECT COUNT(*) FROM leaf_alloc"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if _, err := schema.Seed(t.Context(), db, strings.Repeat("é", 128), 1, 1); err != nil {
		t.Errorf("the longest tag: %v", err)
	}
}

func TestSeedWithoutTheTableNamesApply(t *testing.T) {
	if _, err := schema.Seed(t.Context(), newDB(t), "order", 1, 1); err == nil || !strings.Contains(err.Error(), "Apply") {
		t.Errorf("Seed: %v", err)
	}
}

func TestSeedWaitsForAnotherWriterUntilItsContextEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	writer, db := open(t, file), open(t, file)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	writer.SetMaxOpenConns(1)
	exec(t, writer, "BEGIN IMMEDIATE")
	expectLocked(t, func(ctx context.Context) error {
		_, err := schema.Seed(ctx, db, "order", 500, 10)
		return err
	})
	exec(t, writer, "COMMIT")
	if now, err := schema.Seed(t.Context(), db, "order", 500, 10); err != nil || now != 500 {
		t.Errorf("Seed = %d, %v", now, err)
	}
}

// A reader lets a writer begin but not commit, and SQLite keeps the writer's
// transaction open then. The pool's only connection must come back usable.
func TestSeedLeavesNoTransactionOpenWhenAReaderStopsItsCommit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	reader, db := open(t, file), open(t, file)
	db.SetMaxOpenConns(1)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	reader.SetMaxOpenConns(1)
	exec(t, reader, "BEGIN")
	_ = scan[int](t, reader, "SELECT COUNT(*) FROM leaf_alloc")
	expectLocked(t, func(ctx context.Context) error {
		_, err := schema.Seed(ctx, db, "order", 500, 10)
		return err
	})
	exec(t, reader, "COMMIT")
	if n := scan[int](t, db, "SELECT COUNT(*) FROM leaf_alloc"); n != 0 {
		t.Errorf("%d rows in spite of the error", n)
	}
	if now, err := schema.Seed(t.Context(), db, "order", 500, 10); err != nil || now != 500 {
		t.Errorf("Seed = %d, %v", now, err)
	}
}

// expectLocked runs f, which cannot succeed, until its context ends.
func expectLocked(t *testing.T, f func(context.Context) error) {
	t.Helper()
	for limit := 200 * time.Millisecond; ; limit *= 2 { // until it has time for a look at the lock
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := f(ctx)
		cancel()
		switch {
		case !errors.Is(err, context.DeadlineExceeded) || limit > testwait.Limit:
			t.Fatalf("error is %v", err)
		case strings.Contains(err.Error(), "locked"):
			return
		}
	}
}
