// SPDX-License-Identifier: Apache-2.0

package statuspage_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

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

// shop is a service with two generators, a sharded table and a migration.
type shop struct {
	server    *httptest.Server
	west      *sql.DB
	snowflake *snowflake.Generator
}

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), name+".db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// halfway is a migration that has copied half of its rows.
type halfway struct{ err error }

func (h halfway) Status(context.Context) (migrate.Status, error) {
	lag, left := int64(4), int64(390)
	return migrate.Status{
		Progress: migrate.Progress{Job: "shop", Phase: "copying", Backlog: 3, Tables: []migrate.TableProgress{{Name: "invoices", Rows: 1234567, Copied: .5}}},
		Runner:   &migrate.Runner{Host: "db1", PID: 77, Leads: true, Does: "copies invoices and follows changes", Copied: 1580, Cause: "replica2 is 9s behind"},
		Lag:      &lag, Left: &left,
		Switches: []migrate.PastSwitch{
			{Way: "rollback", Ended: time.Unix(1700000000, 0), Made: true, PauseMS: 41.5, Drained: 12},
			{Way: "cutover", Ended: time.Unix(1690000000, 0), PauseMS: 150, OverMS: 7},
		},
	}, h.err
}

func newShop(t *testing.T) shop {
	t.Helper()
	ids, east, west := open(t, "ids"), open(t, "east"), open(t, "west")
	must(t, schema.Apply(t.Context(), ids))
	_, err := schema.Seed(t.Context(), ids, "<items>", 1, 1000)
	must(t, err)
	store, err := sqlstore.New(t.Context(), ids)
	must(t, err)
	items, err := segment.New(t.Context(), segment.Config{Source: store.Tag("<items>")})
	must(t, err)
	t.Cleanup(func() { must(t, items.Close()) })
	leased, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders", Instance: "pod-0"})
	must(t, err)
	orders, err := snowflake.New(t.Context(), snowflake.Config{Worker: leased})
	must(t, err)
	t.Cleanup(func() { must(t, orders.Close()) })

	tables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	must(t, err)
	dbs := sharding.DBs{"east": east, "west": west}
	for _, at := range tables.Targets() {
		_, err := dbs[at.DB].ExecContext(t.Context(), "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id INTEGER)")
		must(t, err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(1024), Map: tables})
	must(t, err)
	var statements observe.Statements
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: east, Observer: statements.Observer()})
	t.Cleanup(func() { must(t, db.Close()) })
	for user := range 6 {
		_, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (?, ?)", user, user)
		must(t, err)
	}
	_, err = db.ExecContext(t.Context(), "DELETE FROM orders WHERE id < 2")
	if err == nil {
		t.Fatal("a DELETE without a key")
	}

	service, err := observe.New(observe.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"orders": orders, "items": items}},
		Statements: &statements, Router: router,
	})
	must(t, err)
	handler, err := statuspage.New(statuspage.Config{Service: service, Store: store, Migrations: map[string]observe.Migration{"shop": halfway{}, "lost": halfway{errors.New("the job is gone")}}})
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/debug/shardid/", handler)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", handler))
	mux.Handle("/bare", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return shop{server, west, orders}
}

// answer is the server's response.
type answer struct {
	code   int
	header http.Header
	text   string
}

func (s shop) get(t *testing.T, path string) answer {
	t.Helper()
	response, err := http.Get(s.server.URL + path)
	must(t, err)
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s shop) status(t *testing.T, query string) (status statuspage.Status) {
	t.Helper()
	must(t, json.Unmarshal([]byte(s.get(t, "/debug/shardid/status.json"+query).text), &status))
	return status
}

func TestThePageShowsTheService(t *testing.T) {
	s := newShop(t)
	page := s.get(t, "/debug/shardid/?rows")
	if page.code != http.StatusOK {
		t.Fatalf("%+v", page)
	}
	for _, want := range []string{
		"generator items", "database west", "pod-0", "orders_3", "missing_key", "invoices", "50.0 %", "1\u202f234\u202f567", "the job is gone", "&lt;items&gt;",
		"db1 pid 77 copies invoices and follows changes", "the oldest for at most 4s", "about 6m30s of copying left", "throttled: replica2 is 9s behind",
		"2023-11-14 22:13:20", "41.5ms", "given up", "7ms",
		`<rect x="0" y="0" width="1" height="1" opacity="1">`,
	} {
		if !strings.Contains(page.text, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if strings.Contains(page.text, "<script") || strings.Contains(page.text, "style=") || strings.Contains(page.text, "<items>") {
		t.Error("the page has what its policy forbids, or a name that is not escaped")
	}
}

func TestThePageIsReadOnlyAndLoadsNothing(t *testing.T) {
	s := newShop(t)
	posted, err := http.Post(s.server.URL+"/debug/shardid/", "", nil)
	must(t, err)
	must(t, posted.Body.Close())
	if posted.StatusCode != http.StatusMethodNotAllowed {
		t.Error(posted.Status)
	}
	page := s.get(t, "/debug/shardid/")
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Error(policy)
	}
	for _, m := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(page.text, -1) {
		if strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
			t.Errorf("the page leads to %s", m[1])
		}
	}
}

func TestThePageWorksUnderAnyPrefix(t *testing.T) {
	s := newShop(t)
	for _, prefix := range []string{"/debug/shardid/", "/stripped/"} {
		for path, kind := range map[string]string{"": "text/html", "style.css": "text/css", "status.json": "application/json"} {
			if got := s.get(t, prefix+path); got.code != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), kind) {
				t.Errorf("%s%s: %+v", prefix, path, got)
			}
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	moved, err := client.Get(s.server.URL + "/bare?rows")
	must(t, err)
	must(t, moved.Body.Close())
	if to, err := moved.Location(); err != nil || to.Path != "/bare/" || to.RawQuery != "rows" {
		t.Error(to, err)
	}
}

func TestARedirectKeepsThePathAsTheClientWroteIt(t *testing.T) {
	service, err := observe.New(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := statuspage.New(statuspage.Config{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{
		"/debug/my%20shop?rows": "/debug/my%20shop/?rows", "/debug/100%25": "/debug/100%25/", "/a:b": "/a:b/", "/debug//evil.example": "/debug//evil.example/",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, asked, http.NoBody)
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, request)
		to, err := request.URL.Parse(answer.Header().Get("Location"))
		if err != nil || to.String() != want {
			t.Errorf("%s leads to %s (%v)", asked, to, err)
		}
	}
}

func TestTheStatusIsServedAsJSON(t *testing.T) {
	s := newShop(t)
	status := s.status(t, "")
	if status.Health.Status != observe.OK || len(status.Errors) > 0 {
		t.Errorf("%+v %v", status.Health, status.Errors)
	}
	items, orders := status.Generators[0], status.Generators[1]
	if items.Name != "items" || items.Worker != nil || items.Left != nil {
		t.Errorf("%+v", items)
	}
	if orders.Worker == nil || *orders.Worker != 0 || orders.LayoutEnds == nil || *orders.Left > 30 || *orders.Left <= 0 {
		t.Errorf("%+v", orders)
	}
	if tag := status.Tags[0]; tag.Tag != "<items>" || tag.Step != 1000 {
		t.Errorf("%+v", tag)
	}
	if lease := status.Leases[0]; lease.Holder != "pod-0" || !lease.Held || lease.Generation != 1 {
		t.Errorf("%+v", lease)
	}
	table := status.Tables[0]
	if len(table.Shards) != 4 || table.Slots != 1024 {
		t.Fatalf("%+v", table)
	}
	held := 0
	for _, shard := range table.Shards {
		held += shard.Held()
		if shard.Rows != nil {
			t.Error("rows are counted without being asked for")
		}
	}
	if held != 1024 {
		t.Errorf("%d slots of 1024 are held", held)
	}
}

func TestRowsAreCountedOnRequest(t *testing.T) {
	s := newShop(t)
	rows := int64(0)
	for _, shard := range s.status(t, "?rows").Tables[0].Shards {
		rows += *shard.Rows
	}
	if rows != 6 {
		t.Errorf("%d rows, of 6", rows)
	}
	must(t, s.west.Close())
	status := s.status(t, "?rows")
	if status.Health.Status != observe.Degraded || len(status.Errors) != 1 || !strings.Contains(status.Errors[0], "rows of database west") {
		t.Errorf("%+v", status)
	}
}

func TestAnIDIsDecoded(t *testing.T) {
	s := newShop(t)
	id, err := s.snowflake.Next(t.Context())
	must(t, err)
	d := s.status(t, "?id="+keygen.Decimal.Encode(id)).Decoded
	if d == nil || d.Generator != "orders" || d.Parts == nil || time.Since(d.Parts.Time).Abs() > time.Minute {
		t.Errorf("%+v", d)
	}
	for query, want := range map[string]string{
		"?id=-1": "no id", "?id=x": "no id", "?id=5&generator=items": "layout", "?id=5&generator=" + "no%22one": "layout", "?id=99999999999999999999": "no id",
	} {
		if d := s.status(t, query).Decoded; d == nil || !strings.Contains(d.Error, want) {
			t.Errorf("%s: %+v", query, d)
		}
	}
}

func TestAPageNeedsAService(t *testing.T) {
	if _, err := statuspage.New(statuspage.Config{}); err == nil {
		t.Error("no error")
	}
}

// A service without parts has an empty page, and not a broken one.
func TestAServiceOfNothingHasAPage(t *testing.T) {
	service, err := observe.New(observe.Config{})
	must(t, err)
	handler, err := statuspage.New(statuspage.Config{Service: service})
	must(t, err)
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "nothing is looked at") {
		t.Error(got.Code, got.Body)
	}
}
