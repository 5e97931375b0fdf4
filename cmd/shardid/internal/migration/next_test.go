// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
)

func TestOnlyATableWhoseRowsTheSourceNumbersNeedsASeed(t *testing.T) {
	source, err := database.OpenForWriting(t.Context(), filepath.Join(t.TempDir(), "shop.db"), database.Made)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	for _, text := range []string{"CREATE TABLE orders (id INTEGER PRIMARY KEY)", "CREATE TABLE carts (id BIGINT PRIMARY KEY)"} {
		if _, err := source.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]bool{"orders": true, "carts": false} {
		if needs, err := needsSeed(t.Context(), source, table); err != nil || needs != want {
			t.Errorf("%s: %t, %v", table, needs, err)
		}
	}
}
