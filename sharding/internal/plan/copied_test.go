// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestReplicasMayAnswerQueriesThatLockNothing(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]bool{
		"SELECT note FROM orders WHERE user_id = 5":                                                                                 true,
		"SELECT COUNT(*) FROM orders":                                                                                               true,
		"SELECT note FROM orders WHERE user_id = 5 FOR UPDATE":                                                                      false,
		"SELECT note FROM orders WHERE user_id = 5 FOR SHARE":                                                                       false,
		"SELECT note FROM orders WHERE user_id = 5 LOCK IN SHARE MODE":                                                              false,
		"SELECT * FROM (SELECT note FROM orders WHERE user_id = 5 FOR UPDATE) o":                                                    false,
		"WITH o AS (SELECT note FROM orders WHERE user_id = 5 FOR UPDATE) SELECT * FROM o":                                          false,
		"SELECT 1 FROM orders WHERE user_id = 5 AND EXISTS (SELECT 1 FROM items WHERE items.user_id = 5 FOR UPDATE)":                false,
		"(SELECT note FROM orders WHERE user_id = 5) UNION ALL (SELECT note FROM orders WHERE user_id = 5 AND paid = 1 FOR UPDATE)": false,
		"SELECT nextval(s), note FROM orders WHERE user_id = 5":                                                                     false,
		"SELECT note FROM orders WHERE user_id = 5 AND id > (SELECT pg_catalog.NEXTVAL('s'))":                                       false,
		"SELECT pg_advisory_xact_lock(5) FROM orders WHERE user_id = 5":                                                             false,
		"SELECT area(note) FROM orders WHERE user_id = 5":                                                                           true,
		"INSERT INTO orders (user_id, id) VALUES (5, 1005)":                                                                         false,
		"UPDATE orders SET note = 'x' WHERE user_id = 5":                                                                            false,
		"SELECT * FROM countries":                                                                                                   false,
		"SELECT * FROM coupons":                                                                                                     false,
	} {
		p := plan.Of(sqlparse.Parse(text, dialects["mysql"]), w.router.Snapshot(), analysis.Options{Schema: schema})
		if p.Copied() != want {
			t.Errorf("%s: %t", text, p.Copied())
		}
	}
}

func TestCopiesAreGivenWholeNumbersInAnyForm(t *testing.T) {
	w := newWorld(t)
	p := plan.Of(sqlparse.Parse("INSERT INTO rates (id, rate, since) VALUES (?, ?, 5)", dialects["mysql"]), w.router.Snapshot(), analysis.Options{Schema: schema})
	for _, c := range []struct {
		id   any
		want bool
	}{{7, true}, {int64(7), true}, {uint64(7), true}, {"7", true}, {[]byte("7"), true}, {-7, true}, {7.0, true},
		{0, false}, {"0", false}, {[]byte("0"), false}, {0.4, false}, {"0.4", false}, {"x", false}, {"inf", false}, {"0_1", false}, {nil, false}, {time.Time{}, false}} {
		if _, err := p.Bind([]any{c.id, 1}, sharding.Hint{}); (err == nil) != c.want || !c.want && !errors.Is(err, sharding.ErrCopies) {
			t.Errorf("%T %v: %v", c.id, c.id, err)
		}
	}
}

func TestAWriteOfCopiesHasAValueForEachColumnThatADatabaseWouldCompute(t *testing.T) {
	w := newWorld(t)
	known := catalog.Schema{"countries": {Columns: map[string]catalog.Column{"code": {}, "since": {Varies: true}}}, "rates": {Columns: map[string]catalog.Column{"code": {}, "day": {}}, Total: [][]string{{"code"}}}}
	for _, c := range []struct {
		dialect, text string
		want          bool
	}{
		{"mysql", "INSERT INTO countries VALUES ('DE', '2026-01-01')", true},
		{"mysql", "INSERT INTO countries VALUES ()", false},
		{"mariadb", "INSERT INTO countries VALUES ('DE')", false}, // of an invisible column since
		{"mysql", "INSERT INTO countries () VALUES (), ()", false},
		{"mariadb", "REPLACE INTO countries VALUES ()", false},
		{"sqlite", "INSERT INTO countries VALUES ('DE', '2026-01-01')", true},
		{"sqlite", "INSERT INTO countries SELECT * FROM rates", true},
		{"postgres", "INSERT INTO countries VALUES ('DE', '2026-01-01'), ('FR', '2026-01-02')", true},
		{"postgres", "INSERT INTO countries VALUES ('DE')", false}, // the other columns get their defaults
		{"postgres", "INSERT INTO countries VALUES ($1), ($2)", false},
		{"postgres", "INSERT INTO countries (code) VALUES ('DE')", false},
		{"postgres", "INSERT INTO countries SELECT code, day FROM rates", true},
		{"postgres", "INSERT INTO countries SELECT code FROM rates", false},
		{"postgres", "INSERT INTO countries SELECT * FROM rates", true},
		{"postgres", "INSERT INTO countries SELECT r.* FROM rates r", true},
		{"postgres", "INSERT INTO countries SELECT * FROM (SELECT code FROM rates) r", false},
		{"postgres", "INSERT INTO countries SELECT * FROM (SELECT code FROM rates) a JOIN (SELECT code FROM rates) b USING (code)", false}, // one column
		{"postgres", "INSERT INTO countries SELECT * FROM (SELECT code FROM rates) a NATURAL JOIN (SELECT code FROM rates) b", false},
		{"postgres", "INSERT INTO countries SELECT a.code, b.* FROM (SELECT code FROM rates) a JOIN (SELECT code FROM rates) b ON b.code = a.code", true},
		{"postgres", "INSERT INTO countries (SELECT code, day FROM rates)", true},
		{"postgres", "INSERT INTO countries TABLE rates", false},
		{"postgres", "INSERT INTO countries SELECT * FROM unknown", false},
		{"postgres", "INSERT INTO countries (code, since) SELECT * FROM rates", true},
		{"postgres", "INSERT INTO rates VALUES ('DE')", true}, // NULL in each copy
		{"postgres", "INSERT INTO countries (code, since) SELECT DISTINCT code, day FROM rates", true},
		{"postgres", "INSERT INTO countries (code, since) SELECT DISTINCT ON (code) code, day FROM rates", false}, // each has another first row
		{"postgres", "INSERT INTO countries (code, since) SELECT DISTINCT ON (day) code, day FROM rates ORDER BY day, code", true},
		{"postgres", "UPDATE countries SET since = (SELECT DISTINCT ON (code) day FROM rates) WHERE code = 'DE'", false},
		{"postgres", "DELETE FROM countries WHERE EXISTS (SELECT DISTINCT ON (code) day FROM rates)", true},
		{"postgres", "UPDATE countries SET (code, since) = ('FR', '2026-01-01') WHERE code = 'DE'", true},
		{"postgres", "UPDATE countries SET since = DEFAULT WHERE code = 'DE'", false},
		{"postgres", "UPDATE countries SET (code, since) = ('FR', DEFAULT) WHERE code = 'DE'", false},
		{"postgres", "INSERT INTO countries VALUES ('DE', '2026-01-01') ON CONFLICT (code) DO UPDATE SET (code, since) = ROW ('FR', DEFAULT)", false},
	} {
		engine := map[string]merge.Engine{"mysql": merge.MySQL, "mariadb": merge.MySQL, "sqlite": merge.SQLite, "postgres": merge.PostgreSQL}[c.dialect]
		p := plan.Of(sqlparse.Parse(c.text, dialects[c.dialect]), w.router.Snapshot(), analysis.Options{Schema: known, Reads: dialects[c.dialect], Merge: merge.Dialect{Engine: engine}})
		if _, err := p.Bind([]any{"DE", "FR"}[:p.Statement.Args], sharding.Hint{}); (err == nil) != c.want || !c.want && !errors.Is(err, sharding.ErrCopies) {
			t.Errorf("%s: %s: %v", c.dialect, c.text, err)
		}
	}
}
