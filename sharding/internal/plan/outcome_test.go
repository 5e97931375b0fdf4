// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Statements for one target go there; statements for several shards do not.
func TestStatementsOfTheCorpusGoWhereTheyAreExpectedTo(t *testing.T) {
	var one, missed, scatter, refused int
	for _, f := range acceptance(t) {
		db := open(t)
		if err := f.CreateTables(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		options := analysis.Options{Schema: schemaOf(t, db, f), Home: "db0", Merge: merge.Dialect{Engine: merge.MySQL}, Quote: func(name string) string { return "`" + name + "`" }}
		for _, carry := range []bool{true, false} {
			r := routerOf(t, f, carry)
			for _, s := range f.Statements {
				want, got := outcomeOf(s, carry), planned(r, f, s, options)
				if want == corpus.One {
					one++
				}
				if want == corpus.Scatter {
					scatter++
					if got == "" {
						refused++
					}
				}
				switch {
				case got == want, got == "" && (want == corpus.Scatter || want == corpus.Refused):
				case want == corpus.One && got == "":
					missed++
					t.Logf("%s.sql:%d, carry %v: %s is not known to lie in one shard: %s", f.Name, s.Line, carry, s.Name, s.Text)
				default:
					t.Errorf("%s.sql:%d, carry %v: %s: the plan is %q, want %s: %s", f.Name, s.Line, carry, s.Name, got, want, s.Text)
				}
			}
		}
	}
	t.Logf("%d of %d are known to lie in one shard, %d of %d are combined", one-missed, one, scatter-refused, scatter)
	if missed > 0 {
		t.Errorf("%d of %d are not", missed, one)
	}
	if refused > 2 {
		t.Errorf("%d of %d are not combined, which were 2", refused, scatter)
	}
}

// planned returns the planner's target of a statement, "" if it has none or several.
func planned(r *sharding.Router, f corpus.File, s corpus.Statement, options analysis.Options) corpus.Outcome {
	reads := sqlparse.Dialect{Family: sqlparse.MySQL}
	if s.Dialect == corpus.SQLite {
		reads.Family = sqlparse.SQLite
	}
	st := sqlparse.Parse(s.Text, reads)
	p := plan.Of(st, r.Snapshot(), options)
	p, args := plan.Sampled(p, s.Args, sharding.Hint{})
	if o := plan.OwnersOf(p, args, sharding.Hint{}, false); o != nil { // all shards are asked before
		assumed, _ := o.Assumed(args)
		if _, err := assumed.Bind(args, sharding.Hint{}); err != nil {
			return ""
		}
		return corpus.Scatter
	}
	route, err := p.Bind(args, sharding.Hint{})
	if err != nil {
		return ""
	}
	lookups, err := p.Searches(args, route, writehint.Hint{})
	switch {
	case err != nil:
		return ""
	case len(lookups) > 0: // the other shards are asked before
		return corpus.Scatter
	case route.Kind == plan.One:
		return corpus.One
	case spans(route):
		return "" // it is refused where transactions do not span databases, as without an option
	case route.Kind == plan.Scatter, route.Kind == plan.Several:
		return corpus.Scatter
	case route.Kind == plan.Copies:
		return corpus.Everywhere
	}
	for _, table := range f.Tables {
		if table.Placement == corpus.Home && slices.Contains(st.Names, table.Name) {
			return corpus.AtHome
		}
	}
	if slices.ContainsFunc(st.Names, r.IsBroadcast) {
		return corpus.Everywhere
	}
	return corpus.AtHome
}

// spans reports whether a statement writes or locks rows of several databases.
func spans(to *plan.Route) bool {
	var targets []sharding.Target
	switch {
	case to.Kind == plan.Several:
		for _, part := range to.Writes.Parts {
			targets = append(targets, part.Target)
		}
	case to.Kind == plan.Scatter && to.Shards.Locks:
		for _, shard := range to.Shards.Targets {
			targets = append(targets, shard.Target)
		}
	}
	return slices.ContainsFunc(targets, func(t sharding.Target) bool { return t.DB != targets[0].DB })
}

// schemaOf returns a database's description of the tables of a file.
func schemaOf(t *testing.T, db *sql.DB, f corpus.File) catalog.Schema {
	t.Helper()
	schema := catalog.Schema{}
	for _, table := range f.Tables {
		columns := map[string]catalog.Column{}
		rows, err := db.Query("SELECT name, type FROM pragma_table_info(?)", table.Name)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var name, kind string
			if err := rows.Scan(&name, &kind); err != nil {
				t.Fatal(err)
			}
			columns[strings.ToLower(name)] = catalog.Column{Holds: heldBy(kind), Value: catalog.Value{Type: merge.Type{Kind: sortedBy(kind)}}}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // of each table in turn
			t.Fatal(err)
		}
		keys, err := dialect.UniqueKeys(t.Context(), db, dialect.SQLite{}, table.Name)
		if err != nil {
			t.Fatal(err)
		}
		found := catalog.Table{Columns: columns}
		for _, key := range keys {
			found.Unique, found.Primary = append(found.Unique, key.Columns), found.Primary || key.Primary
			if key.Total {
				found.Total = append(found.Total, key.Columns)
			}
		}
		schema[table.Name] = found
	}
	return schema
}

func heldBy(kind string) catalog.Holding {
	switch {
	case strings.Contains(kind, "INT"):
		return catalog.Integers
	case strings.Contains(kind, "CHAR"), strings.Contains(kind, "TEXT"):
		return catalog.Bytes
	}
	return catalog.Other
}

func sortedBy(kind string) merge.Kind {
	for word, k := range map[string]merge.Kind{"INT": merge.Integer, "DECIMAL": merge.Decimal, "DATE": merge.Time, "CHAR": merge.Bytes, "TEXT": merge.Bytes} {
		if strings.Contains(kind, word) {
			return k
		}
	}
	return 0
}

func TestAConditionOfHavingMayBeInParentheses(t *testing.T) {
	w := newWorld(t)
	const groups = "SELECT id, COUNT(*) FROM orders GROUP BY id HAVING "
	for dialect := range dialects {
		flat := w.explain(dialect, groups+"id IN (1, 2) AND COUNT(*) > 1 AND COUNT(*) < 9", nil)
		nested := w.explain(dialect, groups+"(id IN (1, 2) AND COUNT(*) > 1) AND COUNT(*) < 9", nil)
		if !strings.HasPrefix(flat[0], "→ scatter") || !slices.Equal(flat, nested) {
			t.Errorf("%s: with parentheses the plan is %q, without them %q", dialect, nested, flat)
		}
	}
}
