// SPDX-License-Identifier: Apache-2.0

package gatesuite

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// Ticket is a row of the migrated table.
type Ticket struct {
	ID     int64  `db:"id" keygen:""`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

// Harness is a source with a table of tickets that moves to four tables in two other databases.
type Harness struct {
	*sqlxhook.Hook
	DB    *sqlx.DB     // routed
	DBs   sharding.DBs // source, a and b
	Table sharding.Table
	// Preview collects the statements that the shards will execute otherwise.
	Preview sharding.Preview

	router *sharding.Router
	done   atomic.Int64 // the number of changes and reads of the workers
}

// New creates the harness. The driver's name determines the form of placeholders, create creates
// the table in the source, and key is the sharding key.
func New(t *testing.T, driver string, dbs sharding.DBs, create, key string) *Harness {
	t.Helper()
	h := &Harness{DBs: dbs}
	_, err := dbs["source"].ExecContext(t.Context(), create)
	must(t, err)
	m, err := sharding.Spread([]string{"a", "b"}, 4, "tickets_%d")
	must(t, err)
	h.Table = sharding.Table{Name: "tickets", Key: key, Rule: sharding.Low(2), Map: m}
	h.router, err = sharding.New(dbs, h.Table, sharding.Migration{Source: "source", Tables: map[string]string{"tickets": "id"}, Patience: 15 * time.Minute, Preview: &h.Preview})
	must(t, err)
	h.Hook, err = sqlxhook.New(sqlxhook.Config{
		// After a rollback the source numbers from the highest id on, so the generator's ids must
		// be far above it, like those of a clock.
		Generators: keygen.Set{Default: keygen.Counting(1<<40, 1<<20)},
		Router:     h.router,
	})
	must(t, err)
	h.DB = sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: h.router, Home: dbs["source"]}), driver)
	t.Cleanup(func() { _ = h.DB.Close() })
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Job is the migration of the tickets.
func (h *Harness) Job(t *testing.T) *migrate.Job {
	t.Helper()
	j, err := migrate.New(migrate.Config{
		Source: h.DBs["source"], Shards: sharding.DBs{"a": h.DBs["a"], "b": h.DBs["b"]},
		Tables: []migrate.Table{{Table: h.Table}}, ChunkRows: 50,
	})
	must(t, err)
	return j
}

// longPause is long enough for busy machines.
const longPause = 10 * time.Minute

// Cutover copies the tickets and switches to the shards.
func (h *Harness) Cutover(t *testing.T, j *migrate.Job) {
	t.Helper()
	must(t, j.Run(t.Context()))
	done, err := j.Cutover(t.Context(), longPause)
	must(t, err)
	t.Logf("cutover: pause %s, %d changes drained", done.Pause, done.Drained)
}

func (h *Harness) rollback(t *testing.T, j *migrate.Job) {
	t.Helper()
	done, err := j.Rollback(t.Context(), longPause)
	must(t, err)
	t.Logf("rollback: pause %s, %d changes drained", done.Pause, done.Drained)
}

// ThereAndBack migrates to the shards and back twice, and to the shards once more, while workers
// run. No worker may get an error or read a ticket that differs from its last write.
func (h *Harness) ThereAndBack(t *testing.T, workers int) {
	t.Helper()
	j := h.Job(t)
	closed := h.open(t, workers)
	h.more(t)
	for range 2 {
		h.Cutover(t, j)
		h.more(t)
		h.rollback(t, j)
		h.more(t)
	}
	h.Cutover(t, j)
	h.more(t)
	want := closed()
	if got := h.All(t); !maps.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	t.Logf("%d changes and reads, %d rows", h.done.Load(), len(want))
}

// All reads the rows from the serving tables, and checks that each is on its shard.
func (h *Harness) All(t *testing.T) map[int64]Ticket {
	t.Helper()
	found := map[int64]Ticket{}
	for _, at := range h.router.Targets("tickets") {
		var rows []Ticket
		must(t, sqlx.NewDb(h.DBs[at.DB], h.DB.DriverName()).SelectContext(t.Context(), &rows, "SELECT id, user_id, note FROM "+at.Table))
		for _, row := range rows {
			if _, twice := found[row.ID]; twice {
				t.Errorf("row %d is on two shards", row.ID)
			}
			found[row.ID] = row
			if want, err := h.router.Target("tickets", map[string]int64{"id": row.ID, "user_id": row.UserID}[h.Table.Key]); err != nil || want != at {
				t.Errorf("row %d is on %s, not %s (%v)", row.ID, at, want, err)
			}
		}
	}
	return found
}
