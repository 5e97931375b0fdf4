// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"; nothing is opened

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

var update = flag.Bool("update", false, "write the plans that are made into testdata")

// The files in testdata/plans are the planner's documentation: a statement, its
// arguments, and what becomes of it. A section is
//
//	# what it is about
//	the statement, on one line
//	args: 5, "a", NULL            where there are any
//	→ one b                       the plan, or why there is none
//	    the text that is sent, where it is another one
func TestPlansAreTheOnesInTheFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			made := rewrite(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(made), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, string(text), made)
		})
	}
}

// compare reports the sections that differ.
func compare(t *testing.T, want, got string) {
	t.Helper()
	old, made := strings.Split(want, "\n\n"), strings.Split(got, "\n\n")
	for i := range min(len(old), len(made)) {
		if strings.TrimSpace(old[i]) != strings.TrimSpace(made[i]) {
			t.Errorf("the file says\n%s\n\nand the planner\n%s", old[i], made[i])
		}
	}
}

// rewrite returns the file with the present plans.
func rewrite(t *testing.T, text string) string {
	t.Helper()
	w := newWorld(t)
	dialect := "mysql"
	var out []string
	for section := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var kept []string
		var statement string
		var args []any
		for line := range strings.SplitSeq(section, "\n") {
			switch {
			case strings.HasPrefix(line, "dialect: "):
				dialect = strings.TrimPrefix(line, "dialect: ")
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "args: "):
				args = values(t, strings.TrimPrefix(line, "args: "))
			case strings.HasPrefix(line, "→"), strings.HasPrefix(line, "    "):
				continue
			default:
				statement = line
			}
			kept = append(kept, line)
		}
		if statement != "" {
			kept = append(kept, w.explain(dialect, statement, args)...)
		}
		out = append(out, strings.Join(kept, "\n"))
	}
	return strings.Join(out, "\n\n") + "\n"
}

// values reads the arguments of a section: numbers, "texts", NULL and times.
func values(t *testing.T, list string) (args []any) {
	t.Helper()
	for item := range strings.SplitSeq(list, ", ") {
		switch n, err := strconv.ParseInt(item, 10, 64); {
		case err == nil:
			args = append(args, n)
		case item == "NULL":
			args = append(args, nil)
		case strings.HasPrefix(item, `"`):
			args = append(args, strings.Trim(item, `"`))
		default:
			if f, err := strconv.ParseFloat(item, 64); err == nil {
				args = append(args, f)
				continue
			}
			at, err := time.Parse(time.RFC3339, item)
			if err != nil {
				t.Fatalf("%q is no argument", item)
			}
			args = append(args, at)
		}
	}
	return args
}

var dialects = map[string]sqlparse.Dialect{
	"mysql":    {Family: sqlparse.MySQL},
	"mariadb":  {Family: sqlparse.MariaDB},
	"sqlite":   {Family: sqlparse.SQLite},
	"postgres": {Family: sqlparse.PostgreSQL},
}

// world is the tables of the files.
type world struct{ router *sharding.Router }

func newWorld(t *testing.T) *world {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		db, err := sql.Open("sqlite", "file::memory:")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		dbs[name] = db
	}
	spread := func(pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"a", "b"}, 4, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	stocks, err := sharding.Spread([]string{"a", "b"}, 2, "stocks")
	if err != nil {
		t.Fatal(err)
	}
	guests, err := sharding.Spread([]string{"b"}, 3, "guests_%d") // all in one database
	if err != nil {
		t.Fatal(err)
	}
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	router, err := sharding.New(dbs,
		sharding.Table{
			Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: spread("orders_%d"), Group: "shop",
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4), From: 1000}}, OnMissing: sharding.FanOutReads,
		},
		sharding.Table{
			Name: "items", Key: "user_id", Rule: sharding.Mod(4), Map: spread("items_%d"), Group: "shop",
			Also: []sharding.Alt{{Column: "order_id", Rule: sharding.Mod(4), From: 1000}}, OnMissing: sharding.FanOutReads,
		},
		sharding.Table{Name: "events", Key: "at", Rule: sharding.Interval(day(1), day(5), 24*time.Hour), Map: spread("events_%d")},
		sharding.Table{Name: "accounts", Key: "id", Rule: sharding.Ranges(100, 200, 300), Map: spread("accounts_%d")},
		sharding.Table{Name: "pages", Key: "slug", Rule: sharding.HashText(4), Map: spread("pages_%d")},
		sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: spread("members_%d")},
		sharding.Table{Name: "seats", Key: "user_id", Rule: sharding.Mod(4), Map: spread("seats_%d")},
		sharding.Table{
			Name: "invoices", Key: "user_id", Rule: sharding.Mod(4), Map: spread("invoices_%d"), Group: "shop",
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}},
		},
		sharding.Table{Name: "logins", Key: "user_id", Rule: sharding.Mod(4), Map: spread("logins_%d"), OnMissing: sharding.Refuse},
		sharding.Table{Name: "stocks", Key: "shop_id", Rule: sharding.Mod(2), Map: stocks},
		sharding.Table{Name: "people", Key: "id", Rule: sharding.Mod(4), Map: spread("people_%d"), Group: "people", Lookups: []sharding.Lookup{
			{Column: "email", Table: "people_by_email", Unique: true}, {Column: "city", Table: "people_by_city"}, {Column: "phone", Table: "people_by_phone", Building: true},
		}},
		sharding.Table{Name: "guests", Key: "id", Rule: sharding.Mod(3), Map: guests, Lookups: []sharding.Lookup{
			{Column: "email", Table: "guests_by_email", Unique: true}, {Column: "city", Table: "guests_by_city"},
		}},
		sharding.Table{Name: "devices", Key: "owner", Rule: sharding.Mod(4), Map: spread("devices_%d"), Group: "people"},
		sharding.Table{Name: "baskets", Key: "user_id", Rule: sharding.Mod(4), Map: spread("baskets_%d"), Group: "shop"},
		sharding.Table{
			Name: "lines", Key: "user_id", Rule: sharding.Mod(4), Map: spread("lines_%d"), Group: "shop",
			Parents: []sharding.Parent{{Column: "basket_id", Table: "baskets"}},
		},
		sharding.Table{
			Name: "gifts", Key: "user_id", Rule: sharding.Mod(4), Map: spread("gifts_%d"), Group: "shop",
			Parents: []sharding.Parent{{Column: "line", Table: "lines", ID: "number"}, {Column: "basket_id", Table: "baskets"}, {Column: "shelf", Table: "baskets", ID: "shelf"}},
		},
		sharding.Table{
			Name: "posts", Key: "author", Rule: sharding.Mod(4), Map: spread("posts_%d"),
			Parents: []sharding.Parent{{Column: "answers", Table: "posts"}},
		},
		sharding.Broadcast("countries", "rates"),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &world{router}
}

var (
	whole    = catalog.Column{Holds: catalog.Integers, Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}}}
	nullable = catalog.Column{Holds: catalog.Integers, Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}}, Empty: true}
)

// texts compare as utf8mb4_general_ci does, and coupons by an unsupported collation.
var (
	texts   = catalog.Column{Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00 ", Prefix: 1024}, As: catalog.Weight}}
	pages   = catalog.Column{Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00 ", Prefix: 1024, Most: 1024}, As: catalog.Weight}}
	members = catalog.Column{Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}, Least: texts.Value}
	coupon  = catalog.Column{Unsorted: "its collation is utf8mb4_thai_520_w2"}
)

// schema is the databases' description of the tables.
var schema = catalog.Schema{
	"countries": {Columns: map[string]catalog.Column{"code": {}, "name": {}, "used": whole}, Unique: [][]string{{"code"}, {"name"}}, Total: [][]string{{"code"}}},
	"rates":     {Columns: map[string]catalog.Column{"id": {Numbered: true}, "rate": whole, "since": {Varies: true, Touched: true}}},
	"orders": {
		Namespace: "public",
		Columns: map[string]catalog.Column{
			"id": whole, "user_id": whole, "paid": whole, "number": {},
			"note": texts, "body": pages, "country": {}, "coupon": coupon, "state": members, "price": {Value: catalog.Value{Type: merge.Type{Kind: merge.Decimal}}}, "created_at": {Value: catalog.Value{Type: merge.Type{Kind: merge.Time}}},
		},
		Unique: [][]string{{"id"}, {"user_id", "number"}}, Primary: true, Total: [][]string{{"id"}, {"user_id", "number"}},
	},
	"members": {
		Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "email": texts, "paid": whole},
		Unique:  [][]string{{"id"}, {"email"}},
	},
	"invoices": {Columns: map[string]catalog.Column{"id": {Holds: catalog.Integers, Numbered: true}, "user_id": whole}, Unique: [][]string{{"id"}}},
	"stocks":   {Columns: map[string]catalog.Column{"id": whole, "shop_id": whole, "amount": whole}, Unique: [][]string{{"id"}}},
	"people": {
		Namespace: "public",
		Columns:   map[string]catalog.Column{"id": whole, "email": texts, "city": texts, "phone": texts, "note": texts},
		Unique:    [][]string{{"id"}, {"email"}},
	},
	"guests": {
		Columns: map[string]catalog.Column{"id": whole, "email": texts, "city": texts, "note": texts},
		Unique:  [][]string{{"id"}, {"email"}},
	},
	"devices": {Columns: map[string]catalog.Column{"id": whole, "owner": whole}, Unique: [][]string{{"owner", "id"}}},
	"seats":   {Columns: map[string]catalog.Column{"user_id": whole, "team": whole, "seat": whole}, Unique: [][]string{{"team", "seat"}}},
	"baskets": {
		Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "state": texts, "shelf": texts, "total": whole},
		Unique:  [][]string{{"id"}}, Primary: true, Total: [][]string{{"id"}},
	},
	"lines": {
		Columns: map[string]catalog.Column{"number": whole, "basket_id": whole, "user_id": whole, "sku": texts, "amount": whole},
		Unique:  [][]string{{"number"}, {"basket_id", "sku"}}, Primary: true, Total: [][]string{{"number"}},
	},
	"gifts": {
		Columns: map[string]catalog.Column{"id": whole, "line": whole, "basket_id": whole, "shelf": texts, "user_id": whole, "note": texts},
		Unique:  [][]string{{"id"}}, Primary: true, Total: [][]string{{"id"}},
	},
	"posts": {
		Columns: map[string]catalog.Column{"id": whole, "answers": whole, "author": whole, "text": texts},
		Unique:  [][]string{{"id"}}, Primary: true, Total: [][]string{{"id"}},
	},
	"items": {
		Columns: map[string]catalog.Column{"order_id": nullable, "user_id": whole, "paid": whole, "sku": {}, "price": {}},
		Unique:  [][]string{{"order_id", "sku"}, {"sku"}},
	},
}

// plan returns the plan of a statement.
func (w *world) plan(dialect, text string) *plan.Plan {
	quote, engine := func(name string) string { return `"` + name + `"` }, merge.SQLite
	switch dialect {
	case "mysql", "mariadb":
		quote, engine = func(name string) string { return "`" + name + "`" }, merge.MySQL
	case "postgres":
		engine = merge.PostgreSQL
	}
	return plan.Of(sqlparse.Parse(text, dialects[dialect]), w.router.Snapshot(), analysis.Options{Schema: schema, Quote: quote, Home: "a", Merge: merge.Dialect{Engine: engine, SortLength: merge.DefaultSortLength}, Reads: dialects[dialect]})
}

// explain returns the lines of a plan.
func (w *world) explain(dialect, text string, args []any) []string {
	p, args := plan.Sampled(w.plan(dialect, text), args, sharding.Hint{})
	if o := plan.OwnersOf(p, args, sharding.Hint{}, false); o != nil {
		return owned(text, args, o)
	}
	r, err := p.Bind(args, sharding.Hint{})
	var keeping *plan.LookupChanges
	if err == nil {
		keeping, err = plan.LookupChangesOf(p, args, r)
	}
	if err != nil {
		var refusal *sharding.RouteError
		if !errors.As(err, &refusal) {
			return []string{"→ ERROR " + err.Error()}
		}
		return []string{"→ refused: " + strings.TrimPrefix(err.Error(), "sharding: ")}
	}
	lookups, err := p.Searches(args, r, writehint.Hint{})
	if err != nil {
		return []string{"→ refused: " + strings.TrimPrefix(err.Error(), "sharding: ")}
	}
	return append(append(sent(text, r), asked(lookups)...), kept(keeping, r)...)
}

// owned returns the lines of the queries of lookup tables or of a search, and of the plan if they return the keys
// 5 and 9, whose rows are on one shard.
func owned(text string, args []any, o *plan.Owners) (lines []string) {
	for i, q := range o.Queries {
		if q.Search != nil {
			for _, asked := range q.Search.Questions(true) {
				lines = append(lines, fmt.Sprintf("→ searched for: %s %s %v", asked.Target.DB, asked.Text, asked.Args))
			}
		} else {
			lines = append(lines, fmt.Sprintf("→ lookup in %s: %v", q.Lookup.Table, q.Values))
		}
		o.SetKeys(i, []any{int64(5), int64(9)})
	}
	p := o.Plan()
	r, err := p.Bind(args, sharding.Hint{})
	if err != nil {
		return append(lines, "    with 5, 9: "+err.Error())
	}
	for _, line := range sent(text, r) {
		lines = append(lines, "    with 5, 9: "+strings.TrimSpace(line))
	}
	keeping, err := plan.LookupChangesOf(p, args, r)
	if err != nil {
		return append(lines, "    "+err.Error())
	}
	return append(lines, kept(keeping, r)...)
}

// kept returns the lines of the changes of lookup tables for a write.
func kept(k *plan.LookupChanges, r *plan.Route) (lines []string) {
	if k == nil {
		return nil
	}
	target := r.Target
	if r.Kind == plan.Several {
		target = r.Writes.Parts[0].Target
	}
	if text, args, ok := k.Before(target, 100); ok {
		lines = append(lines, fmt.Sprintf("    read before, with arguments %v: %s", args, text))
	}
	for _, of := range k.Changes {
		switch {
		case len(of.Rows) > 0:
			lines = append(lines, fmt.Sprintf("    entered into %s: %v", of.Lookup.Table, of.Rows))
		case of.Sets:
			lines = append(lines, fmt.Sprintf("    entered into %s: %v of each row that has it then", of.Lookup.Table, of.Set))
		}
	}
	return lines
}

// asked returns the lines of the searches that precede the statement.
func asked(lookups []*plan.Search) (lines []string) {
	for _, l := range lookups {
		for _, elsewhere := range []bool{false, true} {
			for _, q := range l.Questions(elsewhere) {
				line := "    asked first: "
				if elsewhere {
					line = "    and elsewhere: "
				}
				lines = append(lines, line+q.Target.DB+" "+q.Text+" "+fmt.Sprint(q.Args))
			}
		}
	}
	return lines
}

func sent(text string, r *plan.Route) []string {
	if r.Kind == plan.Scatter {
		return scattered(r.Shards)
	}
	if r.Kind == plan.Several {
		return divided(r.Writes)
	}
	if r.Kind != plan.One {
		return []string{"→ " + r.Kind.String()}
	}
	lines := []string{"→ one " + r.Target.DB}
	if r.Text != text {
		lines = append(lines, "    "+r.Text)
	}
	return lines
}

// scattered returns the lines of a plan for several targets, with the text of the
// first.
func scattered(s *combine.Shards) []string {
	targets := make([]string, len(s.Targets))
	for i, shard := range s.Targets {
		targets[i] = shard.Target.String()
	}
	lines := []string{"→ scatter " + strings.Join(targets, " "), "    " + s.Targets[0].Text}
	if how := s.String(); how != "" {
		lines = append(lines, "    merged: "+how)
	}
	return lines
}

// divided returns the lines of a plan for several targets that write.
func divided(w *plan.Writes) []string {
	lines := []string{"→ several"}
	for _, part := range w.Parts {
		lines = append(lines, fmt.Sprintf("    %s, arguments %v: %s", part.Target, part.Args, part.Text))
	}
	return lines
}
