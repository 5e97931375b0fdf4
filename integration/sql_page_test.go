// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// pageStatement is a statement of docs/sql.md, and what the page says of it.
type pageStatement struct {
	dialects   string // the title with the names of the databases that understand it, or ""
	text, goes string
}

var statementRow = regexp.MustCompile("(?m)^\\| `([A-Z][^`]+)` \\| ([^|]+) \\|")

// sqlPage returns the tables and the statements of docs/sql.md.
func sqlPage(t *testing.T) (tables []string, all []pageStatement) {
	t.Helper()
	text, err := os.ReadFile("../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
		tables = append(tables, strings.TrimSuffix(line, ";"))
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		for i, part := range strings.Split(section, "\n### ") {
			dialects, _, _ := strings.Cut(part, "\n")
			if i == 0 {
				dialects = ""
			}
			for _, row := range statementRow.FindAllStringSubmatch(part, -1) {
				all = append(all, pageStatement{dialects, row[1], row[2]})
			}
		}
	}
	return tables, all
}

// pageShop is the page's shop with rows: routed, and as one database.
func pageShop(t *testing.T, open namedDatabase, tables []string) (routed, whole *sql.DB) {
	t.Helper()
	whole = open(t, "sqlpage_whole")
	dbs := sharding.DBs{"east": open(t, "sqlpage_east"), "west": open(t, "sqlpage_west")}
	home := open(t, "sqlpage_home")
	keys := map[string]string{"users": "id", "orders": "user_id", "items": "order_id"}
	var options []sharding.Option
	for _, create := range tables {
		name := strings.Fields(create)[2]
		database.Exec(t, whole, create)
		key := keys[name]
		if key == "" {
			database.Exec(t, home, create)
		}
		if name == "products" {
			options = append(options, sharding.Broadcast(name))
			database.Exec(t, dbs["east"], create)
			database.Exec(t, dbs["west"], create)
		}
		if key == "" {
			continue
		}
		spread, err := sharding.Spread([]string{"east", "west"}, 8, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range spread.Targets() {
			database.Exec(t, dbs[at.DB], strings.Replace(create, name, at.Table, 1))
		}
		table := sharding.Table{Name: name, Key: key, Rule: sharding.Low(3), Map: spread, Group: "shop"}
		if name == "orders" {
			table.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(3)}}
		}
		options = append(options, table)
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	for _, db := range []*sql.DB{routed, whole} {
		fillPageShop(t, db)
	}
	return routed, whole
}

func fillPageShop(t *testing.T, db *sql.DB) {
	t.Helper()
	database.Exec(t, db, "INSERT INTO settings (name, value) VALUES ('beta', 'off')")
	for i := range 6 {
		database.Exec(t, db, fmt.Sprintf("INSERT INTO products (id, name, price) VALUES (%d, 'product %d', %d.25)", i, i, 9*i))
	}
	var orders []int
	for user := range 20 {
		database.Exec(t, db, fmt.Sprintf("INSERT INTO users (id, email, country) VALUES (%d, 'u%d@x.example', '%s')", user, user, []string{"CN", "DE"}[user%2]))
		for i := range user % 4 {
			n := 8*(4*user+i) + user%8 // an id with the slot of its user
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders (id, user_id, status, total, created_at) VALUES (%d, %d, '%s', %d.50, '2026-01-%02d 12:00:00')",
				n, user, []string{"open", "paid", "void"}[n/8%3], 10+n%90, 1+n%5))
			orders = append(orders, n)
		}
	}
	for i := range 60 {
		database.Exec(t, db, fmt.Sprintf("INSERT INTO items (id, order_id, product_id, quantity) VALUES (%d, %d, %d, %d)", i, orders[i%len(orders)], i%5, 1+i%3))
	}
}

// pageKinds are the page's words for where a statement goes, with the kinds that they mean and the number of shards, if that is said.
var pageKinds = map[string]struct {
	kinds  []shardsql.Kind
	shards int
}{
	"one shard":      {[]shardsql.Kind{shardsql.One}, 1},
	"two shards":     {[]shardsql.Kind{shardsql.Scatter, shardsql.Several}, 2},
	"all shards":     {[]shardsql.Kind{shardsql.Scatter}, 8},
	"a search for":   {[]shardsql.Kind{shardsql.Lookup}, 0},
	"every database": {[]shardsql.Kind{shardsql.Copies}, 0},
	"home":           {[]shardsql.Kind{shardsql.Home}, 0},
	"refused":        {[]shardsql.Kind{shardsql.Refused}, 0},
}

// pageReasons are the page's words for refusals, and the errors that they mean.
var pageReasons = map[string]error{
	"no key": sharding.ErrMissingKey, "would belong to another": sharding.ErrKeyChange, "two databases": sharding.ErrCrossDatabase, "carries slot": sharding.ErrMisplaced,
	"copies": sharding.ErrCopies, "physical name": sharding.ErrRawTable,
}

func (s pageStatement) goesAs(e shardsql.Explanation) bool {
	searches := e.Kind == shardsql.One && len(e.Lookups) > 0
	for words, of := range pageKinds {
		if strings.HasPrefix(s.goes, words) {
			return slices.Contains(of.kinds, e.Kind) && (of.shards == 0 || len(e.Shards) == of.shards) && searches == strings.Contains(s.goes, "after a search")
		}
	}
	return false
}

// reason returns the error of a refusal.
func (s pageStatement) reason() error {
	for words, err := range pageReasons {
		if strings.Contains(s.goes, words) {
			return err
		}
	}
	return sharding.ErrUnmergeable
}

// leftBy returns the result of a statement, and the rows of all tables after a write.
func (s pageStatement) leftBy(ctx context.Context, db *sql.DB) (string, error) {
	if !strings.Contains(s.text, "INSERT") && (strings.HasPrefix(s.text, "SELECT") || strings.HasPrefix(s.text, "WITH")) {
		_, orders, isOrdered := cutLast(s.text, " ORDER BY ")
		rows, err := selects.Query{Text: s.text, Open: !isOrdered || strings.Contains(orders, ")")}.Answer(ctx, db, nil)
		return strings.Join(rows, "\n"), err
	}
	done, err := db.ExecContext(ctx, s.text)
	if err != nil {
		return "", err
	}
	n, err := done.RowsAffected()
	out := strconv.FormatInt(n, 10)
	for _, table := range []string{"users", "orders", "items", "products", "settings"} {
		rows, failed := selects.Query{Text: "SELECT * FROM " + table, Open: true}.Answer(ctx, db, nil)
		out, err = out+"\n"+strings.Join(rows, "\n"), errors.Join(err, failed)
	}
	return out, err
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

func TestEveryStatementOfTheSQLPageIsAnsweredAsThePageSays(t *testing.T) {
	tables, statements := sqlPage(t)
	if len(tables) != 5 || len(statements) < 50 {
		t.Fatalf("%d tables and %d statements", len(tables), len(statements))
	}
	all := onThree(t)
	all["SQLite"] = func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		return opened(tb, "sqlite", "file:"+filepath.Join(tb.TempDir(), name+".db")+"?_pragma=busy_timeout(10000)")
	}
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			routed, whole := pageShop(t, open, tables)
			for _, s := range statements {
				if s.dialects != "" && !strings.Contains(s.dialects, name) {
					continue
				}
				e, err := shardsql.Explain(t.Context(), routed, s.text)
				if err != nil {
					t.Fatalf("%s: %v", s.text, err)
				}
				if !s.goesAs(e) {
					t.Errorf("%s: %s, %v, %d shards, searches %v\nwant %s", s.text, e.Kind, e.Err, len(e.Shards), e.Lookups, s.goes)
				}
				got, err := s.leftBy(t.Context(), routed)
				if strings.HasPrefix(s.goes, "refused") {
					var refused *sharding.RouteError
					if !errors.As(err, &refused) || !errors.Is(err, s.reason()) {
						t.Errorf("%s: %v\nwant %s: %v", s.text, err, s.goes, s.reason())
					}
					continue
				}
				want, failed := s.leftBy(t.Context(), whole)
				if err != nil || failed != nil || got != want {
					t.Errorf("%s: %v, %v\n%s\nwant\n%s", s.text, err, failed, got, want)
				}
				if lines := strings.Count(want, "\n"); lines == 0 {
					t.Errorf("%s: no rows, so it shows nothing", s.text)
				}
			}
		})
	}
}
