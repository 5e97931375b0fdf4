// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// portions counts the rows that were read at once.
type portions struct {
	mu   sync.Mutex
	rows []int64
}

func (p *portions) observe(s migrate.Step) {
	if s.Name == migrate.StepSnapshot {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rows = append(p.rows, s.Rows)
	}
}

// check fails unless the rows were read in at least so many portions.
func (p *portions) check(t *testing.T, rows int64, least int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := int64(0)
	for _, n := range p.rows {
		sum += n
	}
	if sum != rows || len(p.rows) < least {
		t.Errorf("%d rows in portions of %v", sum, p.rows)
	}
}

// Of 20 rows, 10 have 2 MB each as they are written down, and one has 20 MB, which is
// more than all that a job may hold.
const (
	largeNotes  = "UPDATE %s SET note = hex(zeroblob(512 * 1024)) WHERE id %% 2 = 0"
	hugeNote    = "UPDATE %s SET note = hex(zeroblob(5 * 1024 * 1024)) || id WHERE id = 7"
	fewestLarge = 3
)

func TestLargeRowsMoveInPortions(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string]migrate.IDs{"kept ids": migrate.KeepIDs(), "new ids": migrate.Affine(8, 3)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 20)
			exec(t, s.source, fmt.Sprintf(largeNotes+"; "+hugeNote, "orders", "orders"))
			var read portions
			j := s.job(t, "user_id", func(c *migrate.Config) { c.Observe, c.IDs, c.ChunkRows = read.observe, ids, 1000 })
			mustRun(t, j)
			read.check(t, 20, fewestLarge)
			if v := verify(t, j); !v.Clean() {
				t.Errorf("%+v", v)
			}
			exec(t, s.source, "UPDATE orders SET user_id = user_id + 1, total = 1")
			mustRun(t, j)
			if v := verify(t, j); !v.Clean() {
				t.Errorf("%+v", v)
			}
			mustCutover(t, j)
			for _, at := range orders(t, "user_id").Map.Targets() {
				exec(t, s.shards[at.DB], "UPDATE "+at.Table+" SET user_id = user_id + 4, note = note || 'x'")
			}
			mustRun(t, j)
			if v := verify(t, j); !v.Clean() {
				t.Errorf("%+v", v)
			}
			if n := count(t, s.source, "SELECT COUNT(*) FROM orders_old WHERE note LIKE '%x'"); n != 20 {
				t.Errorf("%d rows were carried back", n)
			}
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
		})
	}
}
