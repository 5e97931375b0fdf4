// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
)

func openSegment(t *testing.T, store *sqlstore.Store, step int64) *segment.Generator {
	t.Helper()
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: step})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}
