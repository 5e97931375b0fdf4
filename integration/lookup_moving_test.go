// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// One text asks all tables of a database for the row. While slots move, a copy may be in another table, and the row in another database.
func TestTheRowOfAUniqueValueIsFoundOnceIfItsSlotMovesWhileTheQueryWaitsForAConnection(t *testing.T) {
	for name, open := range onThree(t) {
		for how, why := range map[string]string{
			"a/guests_2": "its copy is not complete", "b/guests": "it has moved", "a/guests_2 prepared": "its copy is not complete", "b/guests prepared": "it has moved",
		} {
			to, isPrepared := strings.CutSuffix(how, " prepared")
			t.Run(name+"/"+how, func(t *testing.T) {
				kind := strings.NewReplacer("/", "_", " ", "_").Replace(how)
				dbs, home := sharding.DBs{"a": open(t, kind+"_a"), "b": open(t, kind+"_b")}, open(t, kind+"_home")
				at := func(second sharding.Target, version int64) sharding.Map {
					m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "guests_0"}, second, sharding.Target{DB: "a", Table: "guests_2"})
					if err != nil {
						t.Fatal(err)
					}
					return m.At(version).Patient(time.Minute).While(func() bool { return true })
				}
				before := sharding.Target{DB: "a", Table: "guests_1"}
				router, err := sharding.New(dbs, sharding.Table{Name: "guests", Key: "id", Rule: sharding.Mod(3), Map: at(before, 1), Lookups: []sharding.Lookup{{Column: "email", Table: "guests_by_email", Unique: true}}})
				if err != nil {
					t.Fatal(err)
				}
				for table, db := range map[string]*sql.DB{"guests_0": dbs["a"], "guests_1": dbs["a"], "guests_2": dbs["a"], "guests": dbs["b"]} {
					database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100) NOT NULL, UNIQUE (email))")
				}
				if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: home, Table: "guests", Column: "email"}); err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
				t.Cleanup(func() { _ = routed.Close() })
				database.Exec(t, routed, "INSERT INTO guests (id, email) VALUES (1, 'a@x')")
				const query = "SELECT id, email FROM guests WHERE email = 'a@x'"
				if got := answerOf(t, routed, query); strings.Count(got, "row ") != 1 {
					t.Fatal(got)
				}
				var on asker = routed
				if isPrepared {
					st, err := routed.PrepareContext(t.Context(), query)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = st.Close() })
					on = preparedOnce{st}
				}
				dbs["a"].SetMaxOpenConns(1)
				held, err := dbs["a"].Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waits, answered := dbs["a"].Stats().WaitCount, make(chan string, 1)
				go func() { answered <- answerOf(t, on, query) }()
				testwait.Until(t, "the query waits for a connection", func() bool { return dbs["a"].Stats().WaitCount > waits })
				next := at(before, 2).Sharing(1)
				if to == "b/guests" {
					database.Exec(t, dbs["b"], "INSERT INTO guests VALUES (1, 'a@x')")
					database.Exec(t, held, "DELETE FROM guests_1")
					next = at(sharding.Target{DB: "b", Table: "guests"}, 2)
				} else {
					database.Exec(t, held, "INSERT INTO guests_2 VALUES (1, 'a@x')")
				}
				if err := errors.Join(router.Swap(map[string]sharding.Map{"guests": next}), held.Close()); err != nil {
					t.Fatal(err)
				}
				if got := <-answered; strings.Count(got, "row ") != 1 {
					t.Errorf("%s, and the query returns\n%s", why, got)
				}
			})
		}
	}
}
