// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
	"github.com/shardid/shardid/sharding"
)

// MySQL answers numbers of rows from a cache that may be a day old, unless the session says otherwise.
func TestThePageShowsHowManyRowsMySQLHasNow(t *testing.T) {
	db := server.RunMySQL(t).Open(t, "rows")
	database.Exec(t, db, "CREATE TABLE orders_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	m, err := sharding.Spread([]string{"east"}, 1, "orders_%d")
	must(t, err)
	router, err := sharding.New(sharding.DBs{"east": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: m})
	must(t, err)
	service, err := observe.New(observe.Config{Router: router})
	must(t, err)
	page, err := statuspage.New(statuspage.Config{Service: service})
	must(t, err)
	rows := func() int64 {
		t.Helper()
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/shardid/status.json?rows=1", nil))
		var status statuspage.Status
		must(t, json.Unmarshal(answer.Body.Bytes(), &status))
		if len(status.Errors) > 0 || status.Tables[0].Shards[0].Rows == nil {
			t.Fatalf("%s", answer.Body)
		}
		return *status.Tables[0].Shards[0].Rows
	}
	if n := rows(); n != 0 {
		t.Errorf("an empty table has about %d rows", n)
	}
	database.Exec(t, db, "INSERT INTO orders_0 VALUES (0, 0)")
	for range 10 {
		database.Exec(t, db, "INSERT INTO orders_0 SELECT id + (SELECT COUNT(*) FROM orders_0), user_id FROM orders_0")
	}
	if n := rows(); n < 500 || n > 2000 {
		t.Errorf("a table of 1,024 rows has about %d", n)
	}
	var expiry int
	must(t, db.QueryRowContext(t.Context(), "SELECT @@SESSION.information_schema_stats_expiry").Scan(&expiry))
	if expiry != 86400 {
		t.Errorf("the session has the expiry %d now", expiry)
	}
}
