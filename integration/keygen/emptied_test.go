// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/ticket"
)

// What the pages say of a counter whose table was emptied: a process that has had its ids gets none again.
func TestAProcessGetsNoIDAgainFromACounterWhoseTableWasEmptied(t *testing.T) {
	tickets := ticketServer(t, 1, 1)
	shared := database.MariaDB(server.ShareMariaDB(t))
	db, store := shared.Store(t)
	tinyIDDatabase(t, db, 1, 1, 0)
	cosIDDatabase(t, db)
	// Each attempt raises the counter. From a low value a generator would be above its ids again before anybody waits for one.
	database.Exec(t, db, "UPDATE leaf_alloc SET max_id = 1000000000 WHERE biz_tag = 'orders'")
	database.Exec(t, db, "UPDATE cosid SET last_max_id = 1000000000")
	of := func(s keygen.Source) keygen.Generator[int64] {
		g, err := segment.New(t.Context(), segment.Config{Source: s})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		return g
	}
	for name, c := range map[string]struct {
		ids  keygen.Generator[int64]
		lose func()
	}{
		"single tickets": {openTickets(t, ticket.Config{Servers: []ticket.Server{ticketTable(t, tickets, 1, 1, 0)}, Step: 1}), func() { database.Exec(t, tickets.Open(t, "other"), "TRUNCATE tickets.Tickets64") }},
		"periods":        {openNumbers(t, today(store.Periods(), func(c *periodic.Config) { c.Step = 10 })).IDs("shop7"), func() { database.Exec(t, db, "DELETE FROM leaf_alloc WHERE biz_tag LIKE 'order/%'") }},
		"a tag":          {of(store.Tag("orders")), func() { database.Exec(t, db, "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = 'orders'") }},
		"CosId":          {of(store.CosID("shop.order")), func() { database.Exec(t, db, "UPDATE cosid SET last_max_id = 0") }},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []int64
			lost := false
			for len(ids) < 100_000 {
				id, err := c.ids.Next(t.Context())
				if errors.Is(err, keygen.ErrRegressed) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if ids = append(ids, id); len(ids) == 50 {
					c.lose()
					lost = true
				}
			}
			if id, twice := keygentest.Duplicate(ids); twice || !lost || len(ids) == 100_000 {
				t.Errorf("%d came twice: %v, of %d", id, twice, len(ids))
			}
		})
	}
}
