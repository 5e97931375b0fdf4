// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// The runbook's Go blocks are the bodies of the functions below, without their
// last statements.

type Order struct {
	ID     int64  `db:"id" keygen:"orders"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
	Items  []Item `db:"-"`
}

type Item struct {
	ID      int64 `keygen:"items"`
	UserID  int64
	OrderID int64
}

// runbookRouter is what a program begins with.
func runbookRouter(ctx context.Context, legacy, idDB, east, west *sql.DB) (keygen.Set, *sharding.Router, *sharding.Preview) {
	store, err := sqlstore.New(ctx, idDB) // a second pool of the source
	check(err)
	orders, err := segment.New(ctx, segment.Config{Source: store.Tag("orders")}) // that seed has raised
	check(err)
	items, err := segment.New(ctx, segment.Config{Source: store.Tag("items")})
	check(err)
	ids := keygen.Set{Named: map[string]keygen.Generator[int64]{"orders": orders, "items": items}}

	orderTables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d") // as in shards.json
	check(err)
	itemTables, err := sharding.Spread([]string{"east", "west"}, 4, "items_%d")
	check(err)
	collected := new(sharding.Preview)
	router, err := sharding.New(sharding.DBs{"legacy": legacy, "east": east, "west": west},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orderTables, Group: "orders"},
		sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Low(2), Map: itemTables, Group: "orders",
			Parents: []sharding.Parent{{Column: "order_id", Table: "orders"}}}, // so that they are joined by it: old ids carry no slot
		sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id", "items": "id"}, Patience: 10 * time.Second, Preview: collected})
	check(err)
	check(router.Load(ctx)) // who serves now?
	return ids, router, collected
}

func runbookGORM(ctx context.Context, db *gorm.DB, ids keygen.Set, router *sharding.Router) error {
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: ids, Router: router})))

	check(db.WithContext(ctx).Create(&Order{UserID: 5, Note: "alone", Items: []Item{{UserID: 5}}}).Error)

	err := sharding.ErrRouteMoved // a transaction that the switch has undone begins again
	for errors.Is(err, sharding.ErrRouteMoved) {
		err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			order := Order{UserID: 5} // new each time, without an id
			if err := tx.Create(&order).Error; err != nil {
				return err
			}
			return tx.Model(&Order{}).Where("id = ? AND user_id = ?", order.ID, 5).Update("note", "twice").Error
		})
	}
	return err
}

func runbookSQLX(ctx context.Context, driverName string, home *sql.DB, ids keygen.Set, router *sharding.Router) (found []Order) {
	h, err := sqlxhook.New(sqlxhook.Config{Generators: ids, Router: router})
	check(err)
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), driverName)

	_, err = h.Insert(ctx, db, "orders", &Order{UserID: 5, Note: "by sqlx"})
	check(err)
	check(db.SelectContext(ctx, &found, "SELECT * FROM orders WHERE user_id = 5 ORDER BY id DESC LIMIT 3"))
	return found
}

func runbookPreview(ctx context.Context, legacy *sql.DB, collected *sharding.Preview) bool {
	recorder, err := preview.Start(ctx, preview.Config{Source: legacy, Preview: collected})
	check(err)
	defer func() { check(recorder.Close(ctx)) }() // when the program ends
	return true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// One program that runs before and after the switch, which the runbook's commands
// make, and does not have to know.
func TestTheRunbooksProgramIsTheSameBeforeAndAfterTheSwitch(t *testing.T) {
	ctx := t.Context()
	m := newRunbookShop(t)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "10000")
	ids, router, collected := runbookRouter(ctx, m.source, openFile(t, m.file("shop.db")), openFile(t, m.file("east.db")), openFile(t, m.file("west.db")))
	for name, counter := range ids.Named {
		closer, is := counter.(*segment.Generator)
		if !is {
			t.Fatalf("%s: %T", name, counter)
		}
		t.Cleanup(func() { check(closer.Close()) })
	}
	write := func() string {
		db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: m.source}, &gorm.Config{Logger: logger.Discard})
		check(err)
		check(runbookGORM(ctx, db, ids, router))
		return fmt.Sprint(runbookSQLX(ctx, "sqlite", m.source, ids, router))
	}
	if got := write(); got != "[{53 5 by sqlx []} {52 5 twice []} {51 5 alone []}]" {
		t.Errorf("before the switch: %s", got)
	}
	m.must(t, 0, "run", "--once")
	m.must(t, 6, "preview", "--check")
	runbookPreview(ctx, m.source, collected)
	if said := m.must(t, 0, "preview", "--check"); !strings.Contains(said.stdout, ": 0 will be refused, 0 will be executed differently") {
		t.Errorf("the shards will do otherwise:\n%s", said.stdout)
	}
	m.must(t, 0, "cutover", "--max-pause", "10m")
	if got := write(); got != "[{10053 5 by sqlx []} {10052 5 twice []} {10051 5 alone []}]" {
		t.Errorf("after the switch: %s", got)
	}
	var item Item
	check(openFile(t, m.file("west.db")).QueryRowContext(ctx, "SELECT id, user_id, order_id FROM items_1 ORDER BY id DESC").Scan(&item.ID, &item.UserID, &item.OrderID))
	if item != (Item{10001, 5, 10051}) {
		t.Errorf("the last item of user 5 is %+v", item)
	}
	var n int
	check(sqlx.NewDb(openFile(t, m.file("west.db")), "sqlite").GetContext(ctx, &n, "SELECT COUNT(*) FROM orders_1 WHERE user_id = 5"))
	if n != 11 {
		t.Errorf("%d rows of user 5 on their shard", n)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: m.source})
	defer func() { check(routed.Close()) }()
	check(routed.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders o JOIN items i ON i.order_id = o.id WHERE o.user_id = 5").Scan(&n))
	var items int
	check(routed.QueryRowContext(ctx, "SELECT COUNT(*) FROM items WHERE user_id = 5").Scan(&items))
	if n == 0 || n != items {
		t.Errorf("%d of %d items of user 5 are joined with their orders", n, items)
	}
}

// On a machine that is busy a switch takes longer, and run is to come to an end. After
// a rollback the job is switched once more, as a source that serves is not finalized.
func TestTheReadmesMigrationIsCarriedOut(t *testing.T) {
	m := newMovable(t, 50)
	readme := readFile(t, "../../README.md")
	m.writeLayout(t, codeBlock(t, readme, "json"), `"env": "SHOP_EAST"`, `"env": "SHOP_WEST"`)
	check(os.WriteFile(m.file("queries"), []byte("SELECT * FROM orders WHERE user_id = 5\n"), 0o600))
	_, block, _ := strings.Cut(readme, "alias migrate='shardid migrate --config shards.json --tables orders'\n")
	block, _, _ = strings.Cut(block, "```\n")
	carriedOut := 0
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, "#")
		if command == "" { // what no command does
			continue
		}
		words := strings.Fields(command)[1:]
		switch words[0] {
		case "preview": // no program has a recorder
			words = append(words, "--log", m.file("queries"))
		case "run":
			words = append(words, "--once")
		case "cutover", "rollback":
			words[len(words)-1] = "10m"
		}
		m.must(t, 0, words[0], append(words[1:], "--tables", "orders")...)
		if words[0] == "rollback" {
			m.must(t, 0, "run", "--once", "--tables", "orders")
			m.must(t, 0, "cutover", "--max-pause", "10m", "--tables", "orders")
		}
		carriedOut++
	}
	if carriedOut != 11 {
		t.Errorf("%d commands", carriedOut)
	}
	var rows int
	check(openFile(t, m.file("west.db")).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders_1").Scan(&rows))
	if rows == 0 {
		t.Error("no order came to its shard")
	}
}

func TestTheReadmesAlsoLeadsNewIDsToOneShard(t *testing.T) {
	m := newMovable(t, 50)
	for _, page := range []string{"../../README.md", "../../README.zh-CN.md"} {
		readme := readFile(t, page)
		also := regexp.MustCompile("`(\"also\": .*?)`").FindStringSubmatch(readme)
		if also == nil {
			t.Fatal("the page has none: " + page)
		}
		layout := strings.Replace(codeBlock(t, readme, "json"), `"rule": `, also[1]+`, "rule": `, 1)
		m.writeLayout(t, layout, `"env": "SHOP_EAST"`, `"env": "SHOP_WEST"`)
		for id, want := range map[string]string{"9999999": "several shards\n", "10000002": "one shard\n  east/orders_2: "} {
			if o := succeed(t, "route", "--config", m.file("shards.json"), "SELECT user_id FROM orders WHERE id = "+id); !strings.HasPrefix(o.stdout, want) {
				t.Errorf("%s: id %s: %s", page, id, o.stdout)
			}
		}
	}
	m.must(t, 0, "inspect")
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "verify")
	m.must(t, 0, "cutover", "--max-pause", "10m")
}

// newRunbookShop has the runbook's file, and items without rows.
func newRunbookShop(t *testing.T) *movable {
	t.Helper()
	m := newMovable(t, 50)
	m.exec(t, "CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, order_id INTEGER NOT NULL REFERENCES orders (id))")
	m.writeLayout(t, codeBlock(t, readFile(t, "../../docs/runbook.md"), "json"), `"env": "SHOP_EAST"`, `"file": "/run/secrets/shop-west"`)
	return m
}

// writeLayout writes the layout of a page, with files of SQLite in place of its two databases.
func (m *movable) writeLayout(t *testing.T, layout, east, west string) {
	t.Helper()
	for database, file := range map[string]string{east: "east.db", west: "west.db"} {
		if strings.Count(layout, database) != 1 {
			t.Fatalf("the layout does not have %s once:\n%s", database, layout)
		}
		layout = strings.Replace(layout, database, fmt.Sprintf(`"sqlite": %q`, file), 1)
	}
	check(os.WriteFile(m.file("shards.json"), []byte(layout), 0o600))
}

// codeBlock returns the first block of a language on a page.
func codeBlock(t *testing.T, page, language string) string {
	t.Helper()
	_, block, found := strings.Cut(page, "\n```"+language+"\n")
	if !found {
		t.Fatalf("there is no block of %s", language)
	}
	block, _, _ = strings.Cut(block, "```\n")
	return block
}

func TestTheRunbooksGoBlocksAreThoseThatRun(t *testing.T) {
	blocks := strings.Split(readFile(t, "../../docs/runbook.md"), "\n```go\n")[1:]
	want := []string{body(t, "runbookRouter"), body(t, "runbookGORM"), body(t, "runbookSQLX"), body(t, "runbookPreview")}
	if len(blocks) != len(want) {
		t.Fatalf("%d Go blocks, want %d", len(blocks), len(want))
	}
	for i := range want {
		if block, _, closed := strings.Cut(blocks[i], "```\n"); !closed || block != want[i] {
			t.Errorf("the runbook says:\n%s\nbut what runs is:\n%s", block, want[i])
		}
	}
}

// body returns a function's statements but the last, without their indentation.
func body(t *testing.T, name string) string {
	t.Helper()
	source := readFile(t, "runbook_test.go")
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			last := f.Body.List[len(f.Body.List)-1]
			lines := source[set.Position(f.Body.Lbrace).Offset+2 : set.Position(last.Pos()).Offset-1]
			return strings.TrimPrefix(strings.ReplaceAll(lines, "\n\t", "\n"), "\t")
		}
	}
	t.Fatalf("there is no function %s", name)
	return ""
}

// section is what follows a heading of the runbook, up to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, "../../docs/runbook.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the runbook has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func TestTheRunbooksFirstPageHasTenLinesAndCommandsThatThereAre(t *testing.T) {
	page := section(t, "When you are on call")
	if n := len(regexp.MustCompile(`(?m)^\d+\. `).FindAllString(page, -1)); n != 10 {
		t.Errorf("%d lines", n)
	}
	commands := 0
	for _, text := range []string{page, section(t, "Symptoms")} {
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(span[1])
			if words[0] != "migrate" || len(words) == 1 {
				continue
			}
			commands++
			if o := execute(t, append(words, "--help")...); o.code != 0 || !strings.Contains(o.stdout, "shardid migrate "+words[1]) {
				t.Errorf("%s: %d %s", span[1], o.code, o.stderr)
			}
		}
	}
	if commands < 20 {
		t.Errorf("%d commands", commands)
	}
}

// Texts of servers have their error numbers; all other texts must be in the code.
func TestTheRunbooksSymptomsAreTextsOfTheProgram(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"../../schema", "../../sharding", "."} {
		check(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				code.WriteString(readFile(t, path))
			}
			return err
		}))
	}
	symptoms := 0
	for line := range strings.Lines(section(t, "Symptoms")) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		symptoms++
		text := codeSpan.FindStringSubmatch(line)[1]
		if !strings.HasPrefix(text, "Error 1") && !strings.Contains(code.String(), text) {
			t.Errorf("nothing prints %q", text)
		}
	}
	if symptoms < 20 {
		t.Errorf("%d symptoms", symptoms)
	}
}

func TestTheRunbookKnowsEachErrorOfAMigration(t *testing.T) {
	known := map[string]error{
		"ErrConfig": migrate.ErrConfig, "ErrUnsupported": migrate.ErrUnsupported, "ErrLocked": migrate.ErrLocked, "ErrFenced": migrate.ErrFenced,
		"ErrNotReady": migrate.ErrNotReady, "ErrPhase": migrate.ErrPhase, "ErrChanged": migrate.ErrChanged, "ErrUnclear": migrate.ErrUnclear,
		"ErrNoID": migrate.ErrNoID, "ErrSession": migrate.ErrSession,
	}
	symptoms := section(t, "Symptoms")
	for _, name := range regexp.MustCompile(`(?m)^\t(Err\w+) += `).FindAllStringSubmatch(readFile(t, "../../schema/migrate/errors.go"), -1) {
		err := known[name[1]]
		if err == nil {
			t.Errorf("%s is not known here", name[1])
			continue
		}
		if !slices.ContainsFunc(codeSpan.FindAllStringSubmatch(symptoms, -1), func(span []string) bool { return strings.Contains(err.Error(), span[1]) }) {
			t.Errorf("the runbook has no symptom for %s: %v", name[1], err)
		}
	}
}
