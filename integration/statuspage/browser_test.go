// SPDX-License-Identifier: Apache-2.0

// Package statuspage tests the status page of a service on real databases in a real
// browser.
package statuspage

import (
	"context"
	"database/sql"
	"flag"
	"image/color"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

var update = flag.Bool("update", false, "write the pictures of docs/operating.md anew")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestThePageIsReadInABrowser takes pictures of the page at two widths, light and dark.
func TestThePageIsReadInABrowser(t *testing.T) {
	url := serve(t)
	for _, look := range []struct {
		name, size string
		dark       bool
		picture    string // in docs
	}{
		{"wide and light", "1280,2150", false, "statuspage.png"},
		{"wide and dark", "1280,2150", true, ""},
		{"narrow and light", "390,2500", false, ""},
		{"narrow and dark", "390,2500", true, "statuspage-narrow-dark.png"},
	} {
		t.Run(look.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.png")
			shoot(t, url, look.size, look.dark, file)
			inspect(t, file, look.dark)
			if *update && look.picture != "" {
				picture, err := os.ReadFile(file)
				must(t, err)
				must(t, os.WriteFile(filepath.Join("..", "..", "docs", "images", look.picture), picture, 0o600))
			}
		})
	}
}

// shoot makes Chromium take a picture of the page, and fails if the browser's console has an error.
func shoot(t *testing.T, url, size string, dark bool, file string) {
	t.Helper()
	scheme := "preferredColorScheme=1"
	if dark {
		scheme = "preferredColorScheme=0"
	}
	said, err := exec.CommandContext(testwait.Context(t), "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--enable-logging=stderr", "--user-data-dir="+t.TempDir(), "--window-size="+size, "--blink-settings="+scheme, "--screenshot="+file, url).CombinedOutput()
	if err != nil || strings.Contains(string(said), "CONSOLE") {
		t.Fatalf("%v\n%s", err, said)
	}
}

// inspect finds a background that is dark or light, and enough on it that differs.
func inspect(t *testing.T, file string, dark bool) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer func() { _ = f.Close() }()
	picture, err := png.Decode(f)
	must(t, err)
	grey := func(x, y int) int { return int(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y) }
	paper, written := grey(0, 0), 0
	if is := paper < 64; is != dark || !is && paper < 192 {
		t.Errorf("the background has a brightness of %d of 255", paper)
	}
	size := picture.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			if d := grey(x, y) - paper; d > 64 || d < -64 {
				written++
			}
		}
	}
	if part := float64(written) / float64(size.Dx()*size.Dy()); part < .005 || part > .3 {
		t.Errorf("%.2f %% of the page differ from its background", 100*part)
	}
}

// serve starts a service with two generators, orders on two databases and two migrations,
// and returns the address of its page.
func serve(t *testing.T) string {
	t.Helper()
	m := server.ShareMariaDB(t)
	ids, east, west := m.Open(t, "page_ids"), m.Open(t, "page_east"), m.Open(t, "page_west")
	must(t, schema.Apply(t.Context(), ids))
	_, err := schema.Seed(t.Context(), ids, "items", 1_000_000, 1000)
	must(t, err)
	store, err := sqlstore.New(t.Context(), ids)
	must(t, err)
	items, err := segment.New(t.Context(), segment.Config{Source: store.Tag("items")})
	must(t, err)
	t.Cleanup(func() { must(t, items.Close()) })
	leased, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "shop", Instance: "shop-0"})
	must(t, err)
	orders, err := snowflake.New(t.Context(), snowflake.Config{Worker: leased})
	must(t, err)
	t.Cleanup(func() { must(t, orders.Close()) })

	tables, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%d")
	must(t, err)
	dbs := sharding.DBs{"east": east, "west": west}
	for _, at := range tables.Targets() {
		_, err := dbs[at.DB].ExecContext(t.Context(), "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
		must(t, err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(64), Map: tables})
	must(t, err)
	var statements observe.Statements
	trade(t, shardsql.OpenDB(shardsql.Config{Router: router, Home: east, Observer: statements.Observer()}), orders, items)
	service, err := observe.New(observe.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"orders": orders, "items": items}},
		Statements: &statements, Router: router,
	})
	must(t, err)
	page, err := statuspage.New(statuspage.Config{Service: service, Store: store, Migrations: map[string]observe.Migration{
		"invoices": switched(t, m.Open(t, "page_source"), dbs), "payments": halfway(t, m.Open(t, "page_source"), dbs),
	}})
	must(t, err)
	web := httptest.NewServer(page)
	t.Cleanup(web.Close)
	return web.URL + "/?rows&id=541815603606036480"
}

// trade sends statements of all kinds.
func trade(t *testing.T, db *sql.DB, orders, items keygen.Generator[int64]) {
	t.Helper()
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, keygen.Fill(t.Context(), items, make([]int64, 700)))
	for user := range 200 {
		id, err := orders.Next(t.Context())
		must(t, err)
		_, err = db.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (?, ?)", id, user%7)
		must(t, err)
	}
	var n int
	must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n))
	if _, err := db.ExecContext(t.Context(), "DELETE FROM orders WHERE id < 2"); err == nil || n != 200 {
		t.Fatal(n, err)
	}
}

// migration makes a table with rows and a job that moves them to two shards.
func migration(t *testing.T, source *sql.DB, dbs sharding.DBs, table string, rows int, also func(*migrate.Config)) *migrate.Job {
	t.Helper()
	exec := func(db *sql.DB, query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		must(t, err)
	}
	exec(source, "CREATE TABLE "+table+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL)")
	exec(source, "INSERT INTO "+table+" (user_id) SELECT seq FROM seq_1_to_100000 LIMIT ?", rows)
	exec(source, "ANALYZE TABLE "+table)
	exec(dbs["east"], "CREATE TABLE "+table+"_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	exec(dbs["west"], "CREATE TABLE "+table+"_1 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	targets, err := sharding.Spread([]string{"east", "west"}, 2, table+"_%d")
	must(t, err)
	cfg := migrate.Config{Source: source, Shards: dbs, Name: table, Tables: []migrate.Table{{Table: sharding.Table{Name: table, Key: "user_id", Rule: sharding.Mod(2), Map: targets}}}}
	if also != nil {
		also(&cfg)
	}
	job, err := migrate.New(cfg)
	must(t, err)
	return job
}

// switched is a migration after a cutover and a rollback.
func switched(t *testing.T, source *sql.DB, dbs sharding.DBs) *migrate.Job {
	t.Helper()
	job := migration(t, source, dbs, "invoices", 2000, nil)
	must(t, job.Run(t.Context()))
	_, err := job.Cutover(t.Context(), time.Minute)
	must(t, err)
	_, err = job.Rollback(t.Context(), time.Minute)
	must(t, err)
	return job
}

// halfway is a migration that has copied a part of its rows and is throttled.
func halfway(t *testing.T, source *sql.DB, dbs sharding.DBs) *migrate.Job {
	t.Helper()
	chunks := 0
	job := migration(t, source, dbs, "payments", 100_000, func(c *migrate.Config) {
		c.ChunkRows, c.Copiers = 1000, 1
		c.Throttle = func(ctx context.Context) error {
			if chunks++; chunks <= 30 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		c.Cause = func() string { return "replica2 is 9s behind" }
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = job.Run(ctx) // it ends with its context
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	testwait.Until(t, "the runner tells how fast it is", func() bool {
		status, err := job.Status(t.Context())
		must(t, err)
		return status.Left != nil
	})
	return job
}
