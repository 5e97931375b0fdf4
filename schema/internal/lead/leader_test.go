// SPDX-License-Identifier: Apache-2.0

package lead_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/sharding"
)

func TestALeaderThatWasOvertakenWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := file(t, dir, "source", ordersSQL)
	first := open(t, dir, "orders")
	was := take(t, first)
	is := take(t, open(t, dir, "orders"))
	if is.Epoch() <= was.Epoch() {
		t.Errorf("epoch %d follows %d", is.Epoch(), was.Epoch())
	}
	insert := func(s *backend.Session) error {
		return s.Exec(t.Context(), "INSERT INTO orders (id, user_id) VALUES (1, 1)")
	}
	if err := was.OnSource(t.Context(), insert); !errors.Is(err, lead.ErrFenced) {
		t.Errorf("on the source: %v", err)
	}
	if err := was.On(t.Context(), first.Shards[0], insert); !errors.Is(err, lead.ErrFenced) {
		t.Errorf("on a shard: %v", err)
	}
	var rows int
	if err := source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if err := is.OnSource(t.Context(), insert); err != nil {
		t.Errorf("the one that leads: %v", err)
	}
}

func TestATableOfAShardBelongsToOneJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "source", ordersSQL)
	if err := take(t, open(t, dir, "orders")).Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := take(t, open(t, dir, "others"))
	if err := other.Own(t.Context()); !errors.Is(err, backend.ErrNotReady) {
		t.Errorf("another job: %v", err)
	}
	if err := take(t, open(t, dir, "orders")).Disown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Own(t.Context()); err != nil {
		t.Errorf("after it was given free: %v", err)
	}
}

func TestAShardThatWasRestoredIsNotWhatItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "source", ordersSQL)
	shard := file(t, dir, "shard", shardSQL)
	job := open(t, dir, "orders")
	l := take(t, job)
	if err := errors.Join(l.Own(t.Context()), l.CheckTargets(t.Context())); err != nil { // which notes what it finds
		t.Fatal(err)
	}
	if err := l.CheckTargets(t.Context()); err != nil {
		t.Errorf("nothing happened: %v", err)
	}
	exec(t, shard, "UPDATE "+backend.OwnerTable+" SET beat = 0") // as it is in an older backup
	if err := l.CheckTargets(t.Context()); !errors.Is(err, openjob.ErrChanged) {
		t.Errorf("restored: %v", err)
	}
}

const (
	ordersSQL = "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)"
	shardSQL  = "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)"
)

// open opens a job of the table orders, from the file source to the file shard.
func open(t *testing.T, dir, name string) *openjob.Job {
	t.Helper()
	m, err := sharding.Spread([]string{"shard"}, 1, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	j, err := openjob.Open(t.Context(), openjob.Config{
		Name: name, Source: file(t, dir, "source", ""), Shards: sharding.DBs{"shard": file(t, dir, "shard", "")},
		Tables:  []openjob.TableConfig{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(0), Map: m}}},
		Observe: func(string, string, int64) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

func take(t *testing.T, j *openjob.Job) *lead.Leader {
	t.Helper()
	l, err := lead.Take(t.Context(), &lead.State{Job: j}, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func file(t *testing.T, dir, name, definition string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if definition != "" {
		exec(t, db, definition)
	}
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		t.Fatal(err)
	}
}
