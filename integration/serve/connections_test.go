// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema"
)

// However many tags are asked for at once, the database has connections left for others.
func TestManyTagsTakeFewConnections(t *testing.T) {
	const tags = 300
	maria := server.RunMariaDB(t)
	db := maria.Open(t, "serve")
	prepare(t, db)
	for i := range tags {
		if _, err := schema.Seed(t.Context(), db, fmt.Sprint("tag", i), 1, 100); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, maria.DSN("serve"), "--wait", "10m")
	var all sync.WaitGroup
	for i := range tags {
		all.Go(func() {
			body, status, err := get(t.Context(), fmt.Sprint(s.url, "/api/segment/get/tag", i), "")
			if err != nil || status != http.StatusOK || body != "1" {
				t.Errorf("tag %d: %d %s %v", i, status, body, err)
			}
		})
	}
	all.Wait()
	var name string
	var used int
	if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Max_used_connections'").Scan(&name, &used); err != nil {
		t.Fatal(err)
	}
	if used > 16+5 { // the test has its own
		t.Errorf("%d connections were open at once", used)
	}
}
