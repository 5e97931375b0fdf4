// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// refusedPage lists the statements of the acceptance corpus that are refused.
const refusedPage = "../../../docs/refused-statements.md"

// refused is a statement of the corpus, and why it is refused.
type refused struct {
	statement corpus.Statement
	file      string
	err       error
	always    bool // with ids that carry the slot as well
}

func TestThePageOfRefusedStatementsIsUpToDate(t *testing.T) {
	all, list := refusedStatements(t)
	made := page(all, list)
	if *update {
		if err := os.WriteFile(refusedPage, []byte(made), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(refusedPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != made {
		t.Errorf("%s is not the page that is made; run go test ./sharding/internal/plan -run TestThePageOfRefusedStatements -update and read the difference", refusedPage)
	}
}

// refusedStatements returns the number of statements, and those that are refused without ids that
// carry the slot. All statements that are refused with such ids are among them.
func refusedStatements(t *testing.T) (all int, list []refused) {
	t.Helper()
	for _, f := range acceptance(t) {
		db := open(t)
		if err := f.CreateTables(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		options := analysis.Options{Schema: schemaOf(t, db, f), Home: "db0", Merge: merge.Dialect{Engine: merge.MySQL}, Quote: func(name string) string { return "`" + name + "`" }}
		with, without := routerOf(t, f, true), routerOf(t, f, false)
		all += len(f.Statements)
		for _, s := range f.Statements {
			err := refusal(without, s, options)
			always := refusal(with, s, options)
			if always != nil {
				err = always
			}
			var route *sharding.RouteError
			if err == nil {
				continue
			}
			if !errors.As(err, &route) {
				t.Errorf("%s.sql:%d is refused by %v, which is no RouteError", f.Name, s.Line, err)
				continue
			}
			if route.Hint == "" {
				t.Errorf("%s.sql:%d is refused without a hint: %v", f.Name, s.Line, err)
			}
			list = append(list, refused{s, f.Name, err, always != nil})
		}
	}
	slices.SortStableFunc(list, func(a, b refused) int { return cmp.Compare(order(a), order(b)) })
	return all, list
}

// order puts statements first that are refused whatever the ids are.
func order(r refused) int {
	if r.always {
		return 0
	}
	return 1
}

// refusal returns why a statement is refused outside of transactions and with the default options.
func refusal(r *sharding.Router, s corpus.Statement, options analysis.Options) error {
	reads := sqlparse.Dialect{Family: sqlparse.MySQL}
	if s.Dialect == corpus.SQLite {
		reads.Family = sqlparse.SQLite
	}
	p := plan.Of(sqlparse.Parse(s.Text, reads), r.Snapshot(), options)
	p, args := plan.Sampled(p, s.Args, sharding.Hint{})
	if o := plan.OwnersOf(p, args, sharding.Hint{}, false); o != nil {
		p, _ = o.Assumed(args)
	}
	route, err := p.Bind(args, sharding.Hint{})
	if err != nil {
		return err
	}
	if _, err := p.Searches(args, route, writehint.Hint{}); err != nil {
		return err
	}
	if spans(route) {
		return route.Spanning("a database", "another") // as shardsql does
	}
	return nil
}

// page is the page of the statements.
func page(all int, list []refused) string {
	always := 0
	for _, r := range list {
		if r.always {
			always++
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Which everyday statements are refused

This page is generated: go test ./sharding/internal/plan -run TestThePageOfRefusedStatements -update

[The acceptance corpus](../sharding/internal/plan/testdata/acceptance) has %d statements of a
shop, a SaaS and a chat, based on the schemas of public projects. The test plans them for shards in two
databases, with default options and outside of transactions. %d of them are accepted if
ids carry the slot (Also), and %d if they do not. This page lists the others. Each error
says what to do instead.

`, all, all-always, all-len(list))
	heading := ""
	for _, r := range list {
		next := "## Refused if ids do not carry the slot\n\n"
		if r.always {
			next = "## Refused in both cases\n\n"
		}
		if next != heading {
			heading = next
			out.WriteString(heading)
		}
		fmt.Fprintf(&out, "### %s (%s)\n\n```sql\n%s\n```\n\n> %v\n\n", r.statement.Name, r.file, r.statement.Text, r.err)
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
