// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

// usurp puts maps of other versions into a router that follows a store.
func usurp(t *testing.T, r *sharding.Router, version int64) {
	t.Helper()
	maps := map[string]sharding.Map{}
	for _, table := range r.Tables() {
		maps[table.Name] = table.Map.At(version)
	}
	must(t, r.Swap(maps))
}

func TestARouterThatRefusesAVersionDelaysOthersForATermAtMost(t *testing.T) {
	w := newWorld(t)
	w.term = 300 * time.Millisecond
	_, operator := w.created(t)
	r := w.router(t)
	f := w.follow(t, w.store(t, r))
	usurp(t, r, 100)
	must(t, operator.Copy(t.Context(), 1, 1))
	eventually(t, "the error shows", func() bool { return errors.Is(f.Err(), sharding.ErrStaleMap) })
	must(t, operator.Settle(t.Context())) // which waits for leases on versions before
	must(t, operator.Fence(t.Context(), 1))
	must(t, operator.Settle(t.Context()))
	eventually(t, "the router refuses", func() bool {
		_, err := r.Target("orders", 1)
		return errors.Is(err, sharding.ErrStaleMap)
	})
}

func TestAStoreWhoseMapTheRouterRefusesIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	w.created(t)
	r := w.router(t)
	usurp(t, r, 100)
	if _, err := w.store(t, r).Follow(t.Context()); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("got %v", err)
	}
}
